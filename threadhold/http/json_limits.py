"""Limits of JSON: how many values a document holds and how deep, counted before it is parsed.

A parser makes objects that take up to 30 times the bytes they come from, and every later step
visits each of them: the check of the schema, the copy into the database, each read. The size
in bytes therefore says little about the cost. Both numbers are counted here in the raw bytes,
without making any of those objects.

The counting uses methods of `bytes`, which take nanoseconds a byte but hold the interpreter's
lock. Large documents are counted in a thread, in pieces, so that the event loop gets its turn.
"""

import asyncio
from array import array
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

T = TypeVar("T")

DEFAULT_BYTES = 2**20
DEFAULT_VALUES = 20_000
MAX_DEPTH = 200
"""The deepest limit there may be. Answers put more levels around what is stored, and the encoder stops at 254."""

INLINE_BYTES = 64 * 1024
"""Smaller bodies are checked and parsed at once: a thread would cost more."""

PIECE_BYTES = 32 * 1024
WORKERS = 2

_SPACE = b" \t\n\r"
# What stands for a string, so that `[""]` does not look empty.
_STRING = b"0"
_EMPTY = (b"[]", b"{}")
_BRACKETS = b"[]{}"
_NO_BRACKETS = bytes(set(range(256)) - set(_BRACKETS))
# Signed bytes: a bracket that opens is a step down, one that closes a step back.
_STEPS = bytes.maketrans(_BRACKETS, b"\x01\xff\x01\xff")


@dataclass(frozen=True)
class Limits:
    """What a JSON document may hold.

    Attributes:
        values: Most values, counting each object, array, string, number, boolean and null, and
            no keys.
        depth: Most objects and arrays inside one another, at most `MAX_DEPTH`.

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


def problem(text: bytes | bytearray, limits: Limits) -> str | None:
    """Say which limit a JSON document exceeds, or None.

    Args:
        text: The document. Of text that is not JSON the count is at least that of what a parser
            reads before it stops.
    """
    opening = text.count(b"[") + text.count(b"{")
    # Both numbers at most, as if nothing were inside of strings: enough for nearly every body.
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


async def find_problem(text: bytes | bytearray, limits: Limits) -> str | None:
    """Say the same as `problem`, and leave the event loop to others if `text` is large."""
    return await off_loop(len(text), lambda: problem(text, limits))


async def off_loop(size: int, work: Callable[[], T]) -> T:
    """Do what concerns a document: in a thread if it is large, or at once.

    Args:
        size: Bytes of the document.
        work: What to do. It gets none of the caller's context variables.
    """
    if size < INLINE_BYTES:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_pool, work)


# Few, because they take turns with the event loop at the interpreter's lock.
_pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="json-limits")


def measure(text: bytes | bytearray, piece_bytes: int = PIECE_BYTES) -> tuple[int, int]:
    """Count the values of a JSON document, and the levels of its deepest one.

    A document has one value for itself, one more for each comma, and one for the first entry of
    each object and array that is not empty.

    Args:
        text: The document.
        piece_bytes: How much of it is looked at without letting other threads run.
    """
    values, depth, deepest = 1, 0, 0
    last = b""
    for piece in _without_strings(text, piece_bytes):
        brackets = piece.translate(_STEPS, _NO_BRACKETS)
        values += piece.count(b",") + brackets.count(b"\x01")
        # An empty one may begin in the piece before.
        seam = last + piece
        values -= sum(seam.count(empty) for empty in _EMPTY)
        last = seam[-1:]
        levels = list(accumulate(array("b", brackets), initial=depth))
        depth, deepest = levels[-1], max(deepest, *levels)
    return values, deepest


def _without_strings(text: bytes | bytearray, size: int) -> Iterator[bytes]:
    """Pieces of a JSON document without white space and with `_STRING` for each string."""
    if b"\\" in text:
        # Escaped backslashes first: in `\\"` the quote ends the string.
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    inside = False
    for start in range(0, len(text), size):
        parts = bytes(text[start : start + size]).split(b'"')
        outside = parts[inside::2]
        if inside:
            # The rest of a string that was cut in two.
            outside.insert(0, b"")
        inside ^= len(parts) % 2 == 0
        yield _STRING.join(outside).translate(None, _SPACE)


def too_large(limit: int, size: int | None = None) -> str:
    """Say that a body is larger than `limit` bytes.

    Args:
        size: Its bytes, if the client has declared them.
    """
    found = "" if size is None else f"{size} bytes "
    return f"Request body too large: {found}(limit: {limit} bytes, set by max_body_bytes)"
