"""Lists: encode long lists of a state again only where they have changed.

A list of messages or plain data is divided into runs of elements. `marshal` writes the content of a
run many times faster than the serializer does. If that content was encoded before, its bytes are
known. The content is compared in full at each step, so an object that was changed in place is
encoded anew.
"""

import marshal
import os
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from operator import attrgetter
from typing import Any
from zlib import crc32

import ormsgpack
from langchain_core.messages import BaseMessage
from xxhash import xxh3_128

from langgraph_runtime_sql.checkpoint.messages import NUMBERS, SCALARS, is_plain
from langgraph_runtime_sql.checkpoint.parts import cutting
from langgraph_runtime_sql.memo import Memo

# Shorter lists are encoded with what is around them.
FEW = 16
# A run ends after an element of a certain hash (1 of 4) from `_SMALLEST` bytes on, or when it is full.
_SMALLEST, _LARGEST, _REMAINDERS, _MOST = 4096, 32 * 1024, 4, 256
# An element of more bytes is cut.
_BIG = 8 * 1024
# Bytes of the memo of runs, and what an entry takes beside its content.
_SIZE, _ENTRY = 48 * 2**20, 1000
_CONTAINERS: frozenset[type] = frozenset({dict, list})
# All of a message that is encoded.
_PARTS = attrgetter("__dict__"), attrgetter("__pydantic_extra__")
# Smaller frames are not cut.
_LONG_FRAME = 2048
# marshal's version without references: equal content gives equal bytes.
_VERSION = 2

KIND = "msgpack"

Dumps = Callable[[Any], tuple[str, bytes]]


class Run:
    """Encoded elements of a list, next to each other.

    Attributes:
        content: What marshal writes for the elements.
        data: The encoded elements.
        ends: Where each element ends in `data`.
        is_closed: Whether the next element belongs to another run.
        node: Its node in a tree of parts, if there was one: the key of the tree's hashes, the
            node's id and its content.
    """

    __slots__ = ("content", "data", "ends", "is_closed", "node")

    def __init__(self, content: bytes, data: bytes, ends: list[int], *, is_closed: bool) -> None:
        self.content = content
        self.data = data
        self.ends = ends
        self.is_closed = is_closed
        self.node: tuple[bytes, bytes, bytes] | None = None

    def leaves(self) -> list[bytes]:
        """Return the bytes of the run, cut into leaves."""
        pieces: list[bytes] = []
        for start, end in pairwise([0, *self.ends]):
            piece = self.data[start:end]
            if end - start < _BIG:
                pieces.append(piece)
                continue
            for each in cutting.cut(piece):
                pieces.extend([each] if isinstance(each, bytes) else each)
        return cutting.leaves(pieces)


class EncodedList:
    """An encoded list: its runs behind its header."""

    def __init__(self, count: int, runs: list[Run]) -> None:
        self.header = _header(count)
        self.runs = runs


class Encoded:
    """A value in msgpack with long lists in it.

    Args:
        frame: The value's bytes with marks instead of the lists.
        lists: The lists by their marks, in their order.
    """

    def __init__(self, frame: bytes, lists: Mapping[bytes, EncodedList] | None = None) -> None:
        self._frame = frame
        self._lists = lists or {}
        self.size = sum(map(len, self._pieces()))

    def whole(self) -> bytes:
        """Return the value's bytes."""
        return b"".join(self._pieces())

    def digest(self) -> bytes:
        """Return the hash of the value's bytes."""
        found = xxh3_128()
        for each in self._pieces():
            found.update(each)
        return found.digest()

    def cut(self) -> list[bytes | list[bytes] | EncodedList]:
        """Cut the value as `cutting.cut` does, and at its lists."""
        rest: list[bytes | list[bytes]] = [self._frame]
        if len(self._frame) >= _LONG_FRAME:
            rest = cutting.cut(self._frame)[::-1]
        found: list[bytes | list[bytes] | EncodedList] = []
        for mark, each in self._lists.items():
            piece = rest.pop()
            while not isinstance(piece, bytes) or mark not in piece:
                if isinstance(piece, bytes) or not any(mark in leaf for leaf in piece):
                    found.append(piece)
                else:
                    # The leaf with the mark is not shared.
                    at = next(n for n, leaf in enumerate(piece) if mark in leaf)
                    found.append(piece[:at])
                    rest += [piece[at + 1 :], piece[at]]
                piece = rest.pop()
            before, after = piece.split(mark)
            found += [before + each.header, each]
            rest.append(after)
        return [each for each in found + rest[::-1] if each]

    def _pieces(self) -> Iterator[bytes]:
        rest = self._frame
        for mark, each in self._lists.items():
            before, rest = rest.split(mark)
            yield before
            yield each.header
            for run in each.runs:
                yield run.data
        yield rest


# By the content of a run's first element, and where the list belongs.
runs: Memo[tuple[str, bytes], Run] = Memo(_SIZE)


def encode(dumps: Dumps, value: Any, place: str) -> tuple[str, bytes | Encoded]:
    """Encode a value as `dumps` does, but known lists without it.

    Args:
        dumps: Returns the type of a value, and its bytes. It must not keep them.
        value: The value: a list, or a mapping with `channel_values`.
        place: Names the thread, and what the value is. Of lists at the same place that begin alike,
            only one is remembered.
    """
    if _is_long(value):
        long, marks, depth = {"": value}, {"": _new_mark()}, 1
        frame = marks[""]
    else:
        channels = value.get("channel_values") if type(value) is dict else None
        long = {name: each for name, each in (channels or {}).items() if _is_long(each)}
        if not channels or not long:
            return dumps(value)
        marks, depth = {name: _new_mark() for name in long}, 3
        around = {name: ormsgpack.Fragment(mark) for name, mark in marks.items()}
        kind, frame = dumps({**value, "channel_values": {**channels, **around}})
        if kind != KIND:
            return dumps(value)

    def element(each: Any) -> bytes:
        for _ in range(depth):
            each = [each]
        return dumps(each)[1][depth:]

    return KIND, Encoded(
        frame,
        {
            marks[name]: _encode_list(each, f"{place} {name}", element)
            for name, each in long.items()
        },
    )


def _new_mark() -> bytes:
    """Return msgpack that occurs nowhere else."""
    return b"\xc4\x10" + os.urandom(16)


def _is_long(value: Any) -> bool:
    """Return whether a value is a list that is encoded by runs."""
    if type(value) is not list or len(value) < FEW:
        return False
    kinds = set(map(type, value))
    if not (kinds <= _CONTAINERS or kinds <= NUMBERS.keys()):
        return False
    # Other objects deep in the elements are likely to be in these, too.
    return _is_exact(value[0]) and _is_exact(value[-1])


def _encode_list(value: list[Any], place: str, element: Callable[[Any], bytes]) -> EncodedList:
    found: list[Run] = []
    at = 0
    while at < len(value):
        run = _run(value, at, place, element)
        found.append(run)
        at += len(run.ends)
    return EncodedList(len(value), found)


def _run(value: list[Any], at: int, place: str, element: Callable[[Any], bytes]) -> Run:
    """Return the run that starts at an element."""
    key = None
    data, ends = bytearray(), list[int]()
    first = _content(value[at : at + 1])
    if first is not None:
        key = place, first
        known = runs.get(key)
        if known is not None and known.content == _content(value[at : at + len(known.ends)]):
            if known.is_closed or at + len(known.ends) == len(value):
                return known
            data += known.data
            ends += known.ends
    past, is_closed = at + len(ends), False
    while past < len(value) and not is_closed:
        piece = element(value[past])
        data += piece
        ends.append(len(data))
        past += 1
        is_closed = _ends_run(piece, len(data), len(ends))
    content = _content(value[at:past])
    made = Run(content or b"", bytes(data), ends, is_closed=is_closed)
    if key is not None and content is not None and all(map(_is_exact, value[at:past])):
        runs.put(key, made, len(key[1]) + len(content) + len(data) + 40 * len(ends) + _ENTRY)
    return made


def _ends_run(piece: bytes, size: int, count: int) -> bool:
    """Return whether a run ends after this element. Its content decides, so edits stay local."""
    if size >= _LARGEST or count >= _MOST:
        return True
    return size >= _SMALLEST and crc32(piece) % _REMAINDERS == 0


def _content(elements: list[Any]) -> bytes | None:
    """Return bytes that only these elements have, or None if there are none.

    Arrays of bytes look like `bytes` here. No run with either is kept (`_is_exact`).
    """
    try:
        if not isinstance(elements[0], BaseMessage):
            return marshal.dumps(elements, _VERSION)
        # One loop in C for each attribute; this is the only work on an element that is known.
        kinds = list(map(NUMBERS.__getitem__, map(type, elements)))
        return marshal.dumps((kinds, *(list(map(each, elements)) for each in _PARTS)), _VERSION)
    except (AttributeError, ValueError):
        return None


def _is_exact(element: Any) -> bool:
    """Return whether the content of an element says all that is encoded."""
    if isinstance(element, BaseMessage):
        return is_plain([element.__dict__, element.__pydantic_extra__], SCALARS)
    return is_plain(element, SCALARS)


def _header(count: int) -> bytes:
    """Return the header of a list."""
    if count < 16:
        return bytes([0x90 | count])
    if count < 2**16:
        return b"\xdc" + count.to_bytes(2)
    return b"\xdd" + count.to_bytes(4)
