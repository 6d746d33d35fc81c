"""`make history`: plays a history, checks it, and prints the verdict."""

import asyncio
import pickle
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

import click

from tests.history.checker import check
from tests.history.claims import late_steps
from tests.history.evidence import Evidence
from tests.history.nemesis import FAULTS
from tests.history.play import Plan, play
from tests.support import databases

# Of the violations, so many are shown.
SHOWN = 20
EVIDENCE = "evidence.pickle"


@click.command()
@click.option(
    "--seconds",
    default=60.0,
    show_default=True,
    help="How long things go wrong; 0: until each kind of fault has been, once.",
)
@click.option("--seed", type=int, help="Of what is done and what goes wrong; drawn, if not given.")
@click.option("--processes", default=3, show_default=True, help="Servers of one database.")
@click.option("--clients", default=20, show_default=True, help="Clients on shared threads.")
@click.option("--lease", default=4.0, show_default=True, help="Seconds that a claim lasts.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    type=click.Choice(FAULTS),
    help="Only such faults; may be repeated.",
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the history and what the servers print.",
)
@click.option(
    "--judge",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Check a history that was kept in this folder again, and play none.",
)
def main(
    seconds: float,
    seed: int | None,
    processes: int,
    clients: int,
    lease: float,
    faults: tuple[str, ...],
    keep: Path | None,
    judge: Path | None,
) -> None:
    """Play a history on servers that are killed, frozen and cut off, and check it.

    Exits with 1 if a promise is broken.
    """
    if judge is not None:
        sys.exit(verdict(pickle.loads((judge / EVIDENCE).read_bytes())))
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    plan = Plan(seed, seconds or None, processes, clients, lease, faults or FAULTS)
    how_long = f"{seconds:g} s" if seconds else "every fault once"
    click.echo(f"{processes} servers, {clients} clients, {how_long}, seed {seed}")
    folder = Path(keep or tempfile.mkdtemp(prefix="history-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        evidence = asyncio.run(play(plan, folder))
    finally:
        databases.stop()
    (folder / EVIDENCE).write_bytes(pickle.dumps(evidence))
    broken = verdict(evidence)
    click.echo(f"Seed {seed}; everything is in {folder}")
    sys.exit(broken)


def verdict(evidence: Evidence) -> int:
    """Print what was played and every broken promise; the exit status."""
    click.echo(summary(evidence))
    found = check(evidence)
    for violation in found[:SHOWN]:
        click.echo(f"\n{violation}")
    for promise, count in Counter(each.promise for each in found).items():
        click.echo(f"\nBroken {count} times: {promise}")
    click.echo(f"\n{len(found)} violations" if found else "\nEvery promise was kept.")
    return 1 if found else 0


def summary(evidence: Evidence) -> str:
    """What was played, in figures."""
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
        f"streams that were told of lost events: {lost}",
        f"{len(evidence.changes)} changes in the database",
        f"{len(evidence.steps)} steps, {len(late_steps(evidence))} by who had been superseded",
    ]
    return "\n".join(lines)


def _listed(counts: "Counter[str] | Counter[int] | dict[str, int]") -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or "none"


if __name__ == "__main__":
    main()
