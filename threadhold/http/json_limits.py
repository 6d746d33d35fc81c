"""JSON limits: count the values and levels of a document before it is parsed.

Parsed objects take up to 30 times the bytes of their text, and each later step visits all of
them, so the size in bytes says little about the cost.

`bytes` methods do the counting. They take nanoseconds a byte but hold the interpreter's lock,
so a thread counts large documents in pieces, and the event loop runs in between.
"""

import asyncio
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

from langgraph_runtime_sql.tenancy import scope
from langgraph_runtime_sql.thread_pool import ThreadPool

T = TypeVar("T")

DEFAULT_BYTES = 2**20
DEFAULT_VALUES = 20_000
MAX_DEPTH = 200
"""The largest allowed limit: answers add levels around stored values, and the encoder stops at 254."""

INLINE_BYTES = 64 * 1024
"""Bodies below this size are checked on the event loop: a thread would cost more."""

PIECE_BYTES = 32 * 1024
# A tenant leaves one of them to the others.
WORKERS = 3
MOST_WAITING = 100
"""The large bodies of a tenant that may wait for a thread."""

_SPACE = b" \t\n\r"
# Replaces a string, so that `[""]` does not look empty.
_STRING = b"0"
_EMPTY = (b"[]", b"{}")
_BRACKETS = b"[]{}"
_NO_BRACKETS = bytes(set(range(256)) - set(_BRACKETS))
# Signed bytes: +1 for an opening bracket, -1 for a closing one.
_STEPS = bytes.maketrans(_BRACKETS, b"\x01\xff\x01\xff")


@dataclass(frozen=True)
class JsonLimits:
    """Limits of a JSON document.

    Attributes:
        values: Maximum number of objects, arrays, strings, numbers, booleans and nulls; keys
            are not counted.
        depth: Maximum nesting of objects and arrays, at most `MAX_DEPTH`.

    Raises:
        ValueError: a limit is out of range.
    """

    values: int = DEFAULT_VALUES
    depth: int = MAX_DEPTH

    def __post_init__(self) -> None:
        if self.values < 1:
            raise ValueError(f"max_json_nodes must be at least 1, not {self.values}")
        if not 1 <= self.depth <= MAX_DEPTH:
            raise ValueError(f"max_json_depth must be from 1 to {MAX_DEPTH}, not {self.depth}")


def problem(text: bytes | bytearray, limits: JsonLimits) -> str | None:
    """Return a message about the limit that a JSON document exceeds, or None.

    Args:
        text: The document. For invalid JSON, the count is at least that of the part that a
            parser reads before it stops.
    """
    opening = text.count(b"[") + text.count(b"{")
    # Upper bounds, which count characters inside strings too: enough for nearly every body.
    if 1 + opening + text.count(b",") <= limits.values and opening <= limits.depth:
        return None
    values, depth = measure(text)
    if values > limits.values:
        return (
            f"The JSON holds too many values: {values} "
            f"(limit: {limits.values}, set by max_json_nodes)"
        )
    if depth > limits.depth:
        return (
            f"The JSON is nested too deeply: {depth} levels "
            f"(limit: {limits.depth}, set by max_json_depth)"
        )
    return None


async def find_problem(text: bytes | bytearray, limits: JsonLimits) -> str | None:
    """Return the same as `problem`, without blocking the event loop if `text` is large."""
    return await off_loop(len(text), lambda: problem(text, limits))


async def off_loop(size: int, work: Callable[[], T]) -> T:
    """Call `work`, in a thread if the document that it handles is large.

    Args:
        size: Bytes of the document.
        work: The function. In a thread, it does not see the caller's context variables.

    Raises:
        TooManyWaiting: `MOST_WAITING` bodies of the tenant wait already.
    """
    if size < INLINE_BYTES:
        return work()
    most = MOST_WAITING
    return await asyncio.wrap_future(_pool.submit(work, tenant=scope.turn(), most=most))


# Few threads, because they compete with the event loop for the interpreter's lock.
_pool = ThreadPool(WORKERS, "json-limits")


def measure(text: bytes | bytearray, piece_bytes: int = PIECE_BYTES) -> tuple[int, int]:
    """Count the values of a JSON document and its deepest nesting.

    A document is one value itself. Each comma adds one, and so does the first entry of each
    object and array that is not empty.

    Args:
        text: The document.
        piece_bytes: Bytes to count before other threads may run.
    """
    values, depth, deepest = 1, 0, 0
    last = b""
    for piece in _without_strings(text, piece_bytes):
        brackets = piece.translate(_STEPS, _NO_BRACKETS)
        values += piece.count(b",") + brackets.count(b"\x01")
        # An empty object or array may begin in the previous piece.
        seam = last + piece
        values -= sum(seam.count(empty) for empty in _EMPTY)
        last = seam[-1:]
        levels = list(accumulate(array("b", brackets), initial=depth))
        depth, deepest = levels[-1], max(deepest, *levels)
    return values, deepest


def _without_strings(text: bytes | bytearray, size: int) -> Iterator[bytes]:
    """Yield pieces of a JSON document without white space and with `_STRING` for each string."""
    if b"\\" in text:
        # Escaped backslashes first: the quote in `\\"` ends the string.
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    inside = False
    for start in range(0, len(text), size):
        parts = bytes(text[start : start + size]).split(b'"')
        outside = parts[inside::2]
        if inside:
            # The piece starts inside of a string.
            outside.insert(0, b"")
        inside ^= len(parts) % 2 == 0
        yield _STRING.join(outside).translate(None, _SPACE)


def too_large(limit: int, size: int | None = None) -> str:
    """Return the message about a body that is larger than `limit` bytes.

    Args:
        size: Its bytes, if the client has declared them.
    """
    found = "" if size is None else f"{size} bytes "
    return f"Request body too large: {found}(limit: {limit} bytes, set by max_body_bytes)"
