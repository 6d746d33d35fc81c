"""`python -m bench.embedding`: measure the CPU time of embedding a passage, by size of the batch."""

import sys
import time

from bench.report import Line, table
from bench.retrieval import CORPUS, HELD_OUT
from my_agent import embedding
from my_agent.chat.documents import reading
from my_agent.chat.documents.chunking import chunk

PASSAGES = 64
SIZES = (1, 8, 32)


def passages() -> list[str]:
    """Return passages of the documents of this folder."""
    files = [*(HELD_OUT / "documents").iterdir(), *(CORPUS / "documents").rglob("*.md")]
    found = [chunk(reading.parse(path, path.read_bytes())) for path in sorted(files)]
    return [each.in_context for passages in found for each in passages][:PASSAGES]


def measure(texts: list[str], size: int) -> float:
    """Return the milliseconds of CPU time of a passage, in batches of `size`."""
    began = time.process_time()
    for start in range(0, len(texts), size):
        list(embedding.of_passages(texts[start : start + size]))
    return (time.process_time() - began) / len(texts) * 1000


def main() -> int:
    """Run the measurement, and return the exit status."""
    embedding.BATCH = max(SIZES)
    texts = passages()
    # The first call loads the model.
    measure(texts[:1], 1)
    rows = []
    for order, given in (("as they come", texts), ("by length", sorted(texts, key=len))):
        for size in SIZES:
            name = f"CPU of a passage, {order}, batches of {size}"
            rows.append(Line(name, measure(given, size), "ms"))
    print(table(rows))
    print(f"{len(texts)} passages of {sum(map(len, texts)) // len(texts)} characters on average")
    return 0


if __name__ == "__main__":
    sys.exit(main())
