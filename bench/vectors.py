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

import numpy as np

from bench.report import Line, table
from my_agent import database
from my_agent.chat.documents import index, ranking
from my_agent.chat.documents.chunking import Passage
from my_agent.chat.documents.search import candidates
from my_agent.chat.documents.vectors import VectorCache
from my_agent.embedding import DIMENSIONS, Vectors

TENANT = "bench"
SEED = 11
PASSAGES = 200_000
QUESTIONS = 100
# Milliseconds of a search, p95.
OWED = 150.0
_TOPICS, _VOCABULARY, _WORDS, _IN_DOCUMENT = 2_000, 20_000, 40, 200


class Maker:
    """Makes passages with vectors.

    Args:
        seed: of all random numbers.
    """

    def __init__(self, seed: int) -> None:
        self._topics = np.random.default_rng(SEED).normal(size=(_TOPICS, DIMENSIONS))
        self._rng = np.random.default_rng(seed)

    def vector(self) -> Vectors:
        """Return a vector near a random topic."""
        made = self._topics[self._rng.integers(_TOPICS)] + self._rng.normal(size=DIMENSIONS) / 2
        vector: Vectors = (made / np.linalg.norm(made)).astype("f4")
        return vector

    def text(self, count: int) -> str:
        """Return words, of which low numbers are common and high ones rare."""
        numbers = np.minimum(self._rng.zipf(1.3, count), _VOCABULARY)
        return " ".join(f"word{number}" for number in numbers)

    def store(self, name: str, count: int) -> None:
        """Store a document with `count` passages."""
        made = {
            Passage(number, name, "", self.text(_WORDS)): self.vector()
            for number in range(1, count + 1)
        }
        with database.database().write(TENANT) as connection:
            index.add(connection, TENANT, name, name, made)


def add_until_killed(url: str) -> None:
    """Add documents, as another process that ingests does."""
    database.use(url)
    maker, number = Maker(SEED + 1), 0
    while True:
        number += 1
        maker.store(f"more {time.time()} {number}", 20)
        # Embedding takes longer than this.
        time.sleep(0.2)


def measure(url: str, passages: int) -> tuple[float, list[float]]:
    """Return the seconds of the first question and of all others.

    Args:
        url: a database without passages.
        passages: how many are stored before.
    """
    database.use(url)
    maker = Maker(SEED)
    for number in range(passages // _IN_DOCUMENT):
        maker.store(f"document {number}", _IN_DOCUMENT)
    cache = VectorCache(2**28)

    def ask() -> float:
        question, vector = maker.text(8), maker.vector()
        began = time.perf_counter()
        with database.database().read(TENANT) as connection:
            found, nearness = candidates(connection, cache, question, vector, TENANT)
        ranking.rank(question, found, nearness, 6)
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
        database.close()
        database.use(None)


def main() -> int:
    """Run the measurement. Return the exit status: 0, or 1 if a search takes too long."""
    parser = argparse.ArgumentParser(prog="python -m bench.vectors", description=__doc__)
    parser.add_argument("--passages", type=int, default=PASSAGES)
    parser.add_argument("--postgres", action="store_true", help="also measure a new Postgres")
    options = parser.parse_args()
    rows = []
    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-"))
        urls = {"SQLite": f"sqlite:///{Path(scratch)}/data.db"}
        if options.postgres:
            from bench.backends import postgres

            urls["Postgres"] = stack.enter_context(postgres(Path(scratch))).create("vectors")
        for name, url in urls.items():
            first, others = measure(url, options.passages)
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
