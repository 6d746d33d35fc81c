"""`make history`: play a history, check it, and print the verdict."""

import asyncio
import pickle
import random
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import click

from tests.history.checker import check
from tests.history.claims import late_steps
from tests.history.evidence import Evidence
from tests.history.nemesis import FAULTS, WITHOUT_REDIS
from tests.history.play import Plan, play
from tests.history.tenants import fuzz
from tests.support import databases
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
    keep: Path | None,
    judge: Path | None,
) -> None:
    """Play a history on servers that are killed, frozen and disconnected, and check it.

    Exits with 1 if a promise is broken.
    """
    if judge is not None:
        sys.exit(verdict(pickle.loads((judge / EVIDENCE).read_bytes())))
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
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
    folder = Path(keep or tempfile.mkdtemp(prefix="history-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        evidence = asyncio.run(play(plan, folder))
        tenant_seconds = max(20.0, seconds / 3) if tenant_seconds is None else tenant_seconds
        if tenant_seconds:
            evidence = _with_tenants(evidence, folder / "tenants", seed, tenant_seconds)
    finally:
        databases.stop()
    (folder / EVIDENCE).write_bytes(pickle.dumps(evidence))
    broken = verdict(evidence)
    click.echo(f"Seed {seed}; everything is in {folder}")
    sys.exit(broken)


def _with_tenants(evidence: Evidence, folder: Path, seed: int, seconds: float) -> Evidence:
    """Let tenants ask two servers, on Postgres, for each other's data; add what they received."""
    click.echo(f"4 tenants, 2 servers, {seconds:g} s")
    folder.mkdir()
    redis = folder / "valkey"
    redis.mkdir()
    valkey = Valkey(redis)
    valkey.start()
    try:
        with databases.on("postgresql"):
            found = asyncio.run(fuzz(folder, seed, seconds, redis_url=valkey.url, servers=2))
    finally:
        valkey.stop()
    return replace(evidence, received=found.received, canaries=found.canaries)


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
    lines = [
        f"faults: {_listed(faults)}",
        *(
            f"{kind}: {_listed({o: n for (k, o), n in kinds.items() if k == kind})}"
            for kind in sorted({kind for kind, _ in kinds} - {"fault"})
        ),
        f"runs: {_listed(statuses)}; by attempts: {_listed(attempts)}",
        f"streams that reported lost events: {lost}",
        f"{len(evidence.received)} texts that tenants received",
        f"{len(evidence.changes)} changes in the database",
        f"{len(evidence.steps)} steps, {len(late_steps(evidence))} by superseded attempts",
    ]
    return "\n".join(lines)


def _listed(counts: "Counter[str] | Counter[int] | dict[str, int]") -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or "none"


if __name__ == "__main__":
    main()
