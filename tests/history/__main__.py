"""`make history`: play a history, check it, and print the verdict."""

import asyncio
import pickle
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import click

from tests.history.checker import check
from tests.history.claims import late_steps
from tests.history.evidence import Evidence
from tests.history.nemesis import FAULTS, WITHOUT_REDIS
from tests.history.play import Plan, play
from tests.history.tenants import TENANTS, fuzz
from tests.support import databases, reaper
from tests.support.redis import Valkey

# Number of violations that are printed.
SHOWN = 20
EVIDENCE = "evidence.pickle"


@click.command()
@click.option(
    "--seconds",
    default=60.0,
    show_default=True,
    help="Seconds during which faults happen; 0: until each kind of fault has happened once.",
)
@click.option("--seed", type=int, help="Seed of requests and faults; random if not given.")
@click.option("--processes", default=3, show_default=True, help="Number of servers.")
@click.option("--clients", default=20, show_default=True, help="Clients on shared threads.")
@click.option("--lease", default=4.0, show_default=True, help="Length of a claim in seconds.")
@click.option("--without-redis", is_flag=True, help="Connect the servers by Postgres alone.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    type=click.Choice(FAULTS),
    help="Only faults of this kind; may be repeated.",
)
@click.option(
    "--tenant-seconds",
    type=float,
    help="Seconds during which tenants ask for each other's data afterwards; 0: never "
    "(default: a third of --seconds, at least 20).",
)
@click.option(
    "--tenants",
    "tenants_alone",
    is_flag=True,
    help="Only let tenants ask for each other's data, on each database for --seconds.",
)
@click.option(
    "--database",
    "kinds",
    multiple=True,
    type=click.Choice(databases.KINDS),
    help="With --tenants, only on this database; may be repeated.",
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the history and the logs of the servers.",
)
@click.option(
    "--judge",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Check a history that was kept in this folder, and play none.",
)
def main(
    seconds: float,
    seed: int | None,
    processes: int,
    clients: int,
    lease: float,
    without_redis: bool,
    faults: tuple[str, ...],
    tenant_seconds: float | None,
    tenants_alone: bool,
    kinds: tuple[str, ...],
    keep: Path | None,
    judge: Path | None,
) -> None:
    """Play a history on servers that are killed, frozen and disconnected, and check it.

    Exits with 1 if a promise is broken.
    """
    if judge is not None:
        sys.exit(verdict(pickle.loads((judge / EVIDENCE).read_bytes())))
    reaper.start()
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    if tenants_alone:
        sys.exit(_tenants(_folder(keep), seed, seconds, kinds or databases.KINDS))
    possible = WITHOUT_REDIS if without_redis else FAULTS
    if impossible := set(faults).difference(possible):
        raise click.UsageError(
            f"Servers without Redis do not have: {', '.join(sorted(impossible))}"
        )
    plan = Plan(
        *(seed, seconds or None, processes, clients, lease, faults or possible),
        with_redis=not without_redis,
    )
    how_long = f"{seconds:g} s" if seconds else "every fault once"
    wires = "Postgres alone" if without_redis else "Postgres and Redis"
    click.echo(f"{processes} servers on {wires}, {clients} clients, {how_long}, seed {seed}")
    folder = _folder(keep)
    try:
        evidence = asyncio.run(play(plan, folder))
        tenant_seconds = max(20.0, seconds / 3) if tenant_seconds is None else tenant_seconds
        if tenant_seconds:
            found = _fuzzed(folder / "tenants", seed, tenant_seconds, "postgresql")
            names = ("received", "canaries", "traces", "kinds")
            evidence = replace(evidence, **{name: getattr(found, name) for name in names})
    finally:
        databases.stop()
    sys.exit(_judged(evidence, folder, seed))


def _folder(keep: Path | None) -> Path:
    folder = Path(keep or tempfile.mkdtemp(prefix="history-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _tenants(folder: Path, seed: int, seconds: float, kinds: tuple[str, ...]) -> int:
    """Let tenants ask for each other's data on some databases; return the exit status."""
    broken = 0
    try:
        for kind in kinds:
            evidence = _fuzzed(folder / kind, seed, seconds, kind)
            broken |= _judged(evidence, folder / kind, seed)
    finally:
        databases.stop()
    return broken


def _fuzzed(folder: Path, seed: int, seconds: float, kind: str) -> Evidence:
    """Let tenants ask for each other's data, on Postgres two servers, and return the evidence."""
    servers = 1 if kind == "sqlite" else 2
    click.echo(f"{len(TENANTS)} tenants, {servers} servers on {kind}, {seconds:g} s")
    folder.mkdir()
    with ExitStack() as stack:
        stack.enter_context(databases.on(kind))
        url = None
        if servers > 1:
            redis = folder / "valkey"
            redis.mkdir()
            valkey = Valkey(redis)
            stack.callback(valkey.stop)
            valkey.start()
            url = valkey.url
        return asyncio.run(fuzz(folder, seed, seconds, redis_url=url, servers=servers))


def _judged(evidence: Evidence, folder: Path, seed: int) -> int:
    """Keep the evidence and print the verdict; return the exit status."""
    (folder / EVIDENCE).write_bytes(pickle.dumps(evidence))
    broken = verdict(evidence)
    click.echo(f"Seed {seed}; everything is in {folder}")
    return broken


def verdict(evidence: Evidence) -> int:
    """Print a summary and every broken promise; return the exit status."""
    click.echo(summary(evidence))
    found = check(evidence)
    for violation in found[:SHOWN]:
        click.echo(f"\n{violation}")
    for promise, count in Counter(each.promise for each in found).items():
        click.echo(f"\nBroken {count} times: {promise}")
    click.echo(f"\n{len(found)} violations" if found else "\nEvery promise was kept.")
    return 1 if found else 0


def summary(evidence: Evidence) -> str:
    """Summarise what was played."""
    kinds = Counter((each.kind, each.outcome) for each in evidence.history)
    faults = Counter(each.asked["what"] for each in evidence.operations("fault"))
    statuses = Counter(run.status for run in evidence.runs.values())
    attempts = Counter(run.attempt for run in evidence.runs.values())
    lost = sum(
        any(name == "error" for _, name, _ in each.answer.get("events", ()))
        for each in evidence.operations("stream")
    )
    received = [
        f"what tenants received, by its kind and status: {len(evidence.received)}",
        *(f"    {line}" for line in _received(evidence)),
    ]
    if not evidence.history:
        return "\n".join(received)
    lines = [
        f"faults: {_listed(faults)}",
        *(
            f"{kind}: {_listed({o: n for (k, o), n in kinds.items() if k == kind})}"
            for kind in sorted({kind for kind, _ in kinds} - {"fault"})
        ),
        f"runs: {_listed(statuses)}; by attempts: {_listed(attempts)}",
        f"streams that reported lost events: {lost}",
        *received,
        f"{len(evidence.changes)} changes in the database",
        f"{len(evidence.steps)} steps, {len(late_steps(evidence))} by superseded attempts",
    ]
    return "\n".join(lines)


def _received(evidence: Evidence) -> Iterator[str]:
    """List what tenants received: of each kind the number, and those of each class of status."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for each in evidence.received:
        counts[each.kind][f"{each.status // 100}xx" if each.status else "without a status"] += 1
    for kind, statuses in sorted(counts.items()):
        yield f"{kind}: {statuses.total()} ({_listed(statuses)})"


def _listed(counts: "Counter[str] | Counter[int] | dict[str, int]") -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or "none"


if __name__ == "__main__":
    main()
