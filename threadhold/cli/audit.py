"""Audit: list, verify and shorten the audit log (`threadhold audit`)."""

import json
from datetime import UTC, datetime, timedelta

import click

from threadhold.cli.group import load_settings, pass_program
from threadhold.cli.options import database_option
from threadhold.program import Program

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

    --verify exits with 1 if an entry was changed or removed.
    """
    from threadhold.admin import audit as log

    url = load_settings(program.settings, database_url=database_url).database_url
    if expect is not None and not verify:
        raise click.UsageError("--expect needs --verify")
    if verify or days is not None:
        checked = log.verify(url, expected=expect)
        if checked.broken is not None:
            click.echo(f"Entry {checked.broken.seq} is broken: {checked.broken.why}")
            raise SystemExit(1)
        newest = f", newest hash {checked.newest}" if checked.count else ""
        click.echo(f"{checked.count:,} entries in {checked.chains:,} chains are intact{newest}")
        if days is not None:
            click.echo(f"Removed {log.remove(url, timedelta(days=days)):,} entries")
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
