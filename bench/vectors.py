"""`python -m bench.vectors`: time a search among many passages while another process adds some.

Texts are random words, and vectors lie around random topics. The time covers all of a search but
the embedding of the question, which does not depend on the number of passages.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.fill_passages import SEED, TENANT, Maker, fill
from bench.report import Line, table
from my_agent.chat.documents import background, ranking
from my_agent.chat.documents.search import candidates
from my_agent.chat.documents.vectors import VectorCache
from my_agent.tables import tables

PASSAGES = 200_000
QUESTIONS = 100
# Milliseconds of a search, p95.
OWED = 150.0


def add_until_killed(url: str) -> None:
    """Add documents, as another process that ingests does."""
    tables.use(url)
    maker, number = Maker(SEED + 1), 0
    while True:
        number += 1
        maker.store(f"more {time.time()} {number}", 20)
        # Embedding takes longer than this.
        time.sleep(0.2)


def measure(url: str, passages: int, owner: str | None) -> tuple[float, list[float]]:
    """Return the seconds of the first question and of all others.

    Args:
        url: a database without passages.
        passages: how many are stored before.
        owner: the superuser's URL to the same Postgres database; None on SQLite.
    """
    tables.use(url)
    maker = Maker(SEED)
    fill(maker, passages, owner)
    cache = VectorCache(2**28)

    def ask() -> float:
        question, vector = maker.texts(1, 8)[0], maker.vectors(1)[0]
        began = time.perf_counter()
        found, held = tables.read(
            lambda connection: candidates(connection, cache, question, vector, TENANT), TENANT
        )
        ranking.rank(question, found, background.nearness(vector, held), 6)
        return time.perf_counter() - began

    first = ask()
    code = f"from bench.vectors import add_until_killed; add_until_killed({url!r})"
    other = subprocess.Popen([sys.executable, "-c", code])
    try:
        time.sleep(3)
        return first, [ask() for _ in range(QUESTIONS)]
    finally:
        other.kill()
        other.wait()
        tables.close()
        tables.use(None)


def main() -> int:
    """Run the measurement. Return the exit status: 0, or 1 if a search takes too long."""
    parser = argparse.ArgumentParser(prog="python -m bench.vectors", description=__doc__)
    parser.add_argument("--passages", type=int, default=PASSAGES)
    parser.add_argument("--postgres", action="store_true", help="also measure a new Postgres")
    options = parser.parse_args()
    rows = []
    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-"))
        urls: dict[str, tuple[str, str | None]] = {
            "SQLite": (f"sqlite:///{Path(scratch)}/data.db", None)
        }
        if options.postgres:
            from bench.backends import postgres

            server = stack.enter_context(postgres(Path(scratch)))
            urls["Postgres"] = server.create("vectors"), server.as_owner("vectors")
        for name, (url, owner) in urls.items():
            first, others = measure(url, options.passages, owner)
            p95 = statistics.quantiles(others, n=20)[-1] * 1000
            what = f"search among {options.passages:,} passages on {name}"
            rows.append(Line(f"{what}, first", first * 1000, "ms"))
            rows.append(Line(f"{what}, p50", statistics.median(others) * 1000, "ms"))
            rows.append(Line(f"{what}, p95", p95, "ms", limit=OWED))
    print(table(rows))
    print(f"seed {SEED}, {QUESTIONS} questions")
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
