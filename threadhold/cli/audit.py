"""Audit: list, verify and shorten the audit log (`threadhold audit`)."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from threadhold.cli.group import load_settings, pass_program
from threadhold.cli.options import database_option
from threadhold.program import Program

if TYPE_CHECKING:
    from langgraph_runtime_sql.audit.verify import Verdict

BROKEN, UNKEYED = 1, 3
"""Exit codes of `--verify`. Click itself exits with 2 if the options are wrong."""

_DATE = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"])


@click.command()
@database_option
@click.option("--tenant", help="Entries of this tenant.")
@click.option("--user", help="Entries of this user.")
@click.option("--object", "object_id", help="Entries about the object with this id.")
@click.option("--kind", help="Entries about this kind of object, such as thread.")
@click.option(
    "--decision", type=click.Choice(["allowed", "refused", "policy"]), help="Entries of this kind."
)
@click.option("--since", type=_DATE, help="Entries from this date (UTC) on.")
@click.option("--until", type=_DATE, help="Entries before this date (UTC).")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1), help="How many.")
@click.option("--verify", is_flag=True, help="Check all entries instead, and name a broken one.")
@click.option("--expect", metavar="HASH", help="With --verify: a hash that must still be there.")
@click.option(
    "--remove-older-than",
    "days",
    type=click.FloatRange(1),
    metavar="DAYS",
    help="Check all entries, then remove the old ones.",
)
@pass_program
def audit(
    program: Program,
    database_url: str | None,
    tenant: str | None,
    user: str | None,
    object_id: str | None,
    kind: str | None,
    decision: str | None,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    verify: bool,
    expect: str | None,
    days: float | None,
) -> None:
    """Print the audit log as JSON lines, the newest entry first; servers may run.

    --verify exits with 0 if a key proves all entries, with 1 if an entry was changed or removed, and
    with 3 if some entries have no key, or one that is not configured.
    """
    from threadhold.admin import audit as log

    url = load_settings(program.settings, database_url=database_url).database_url
    if expect is not None and not verify:
        raise click.UsageError("--expect needs --verify")
    if verify or days is not None:
        checked = log.verify(url, expected=expect)
        for line in _report(checked):
            click.echo(line)
        if checked.status == "broken":
            raise SystemExit(BROKEN)
        if days is not None:
            click.echo(f"Removed {log.remove(url, timedelta(days=days)):,} entries")
        elif checked.status == "unkeyed":
            raise SystemExit(UNKEYED)
        return
    wanted = log.Wanted(
        tenant=tenant,
        user=user,
        object_id=object_id,
        kind=kind,
        decision=decision,
        since=None if since is None else since.replace(tzinfo=UTC),
        until=None if until is None else until.replace(tzinfo=UTC),
        limit=limit,
    )
    for entry in log.find(url, wanted):
        click.echo(json.dumps(entry))


def _report(checked: "Verdict") -> Iterator[str]:
    """Yield the lines about a verification."""
    if checked.broken is not None:
        yield f"Entry {checked.broken.seq} is broken: {checked.broken.why}"
        return
    if not checked.count:
        yield "The log has no entries. A key proves nothing about an empty log"
        return
    yield (
        f"{checked.count:,} entries in {checked.chains:,} chains are {checked.status}, "
        f"newest hash {checked.newest}"
    )
    if (found := checked.sealed).count:
        yield (
            f"{found.count:,} of them, until entry {found.seq} of {found.at}, are from before the "
            f"log had a key. It protects them since {checked.sealed_at}"
        )
    if (found := checked.unkeyed).count:
        yield (
            f"{found.count:,} entries have no key, the last is entry {found.seq} of {found.at}. "
            "The database's role can forge them. AUDIT_KEY gives new entries a key"
        )
    for key, found in checked.unknown.items():
        yield (
            f"{found.count:,} entries have the key {key}, the last is entry {found.seq} of "
            f"{found.at}. They are not verified: AUDIT_KEY does not name this key"
        )
