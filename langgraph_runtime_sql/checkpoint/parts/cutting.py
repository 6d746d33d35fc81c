"""Cutting: find where the bytes of a value in msgpack can be cut.

The cuts only decide what checkpoints share. All pieces joined are the value's bytes, wherever the
cuts are, so bytes that are not msgpack are merely shared less.
"""

from itertools import pairwise
from zlib import crc32

# A smaller value inside another is not cut.
BIG = 1024
# A container with fewer elements, some of them big, is only the frame of these.
FEW = 16
# Opaque bytes are cut at multiples of this size.
BLOCK = 16 * 1024
# The expected and the largest size of a leaf that is made of small pieces.
LEAF, LARGEST_LEAF = 512, 4096
# Deeper containers are not cut.
DEEPEST = 32

# By the first byte of a value: the bytes after it that hold its length, the further bytes of its
# header, and how many values each element has (0: no container). -1: no value starts so.
_HEADERS = [(-1, 0, 0)] * 256
for _first in (*range(0x80), *range(0xE0, 0x100), 0xC0, 0xC2, 0xC3):
    _HEADERS[_first] = 0, 0, 0
for _first, _rest in zip(range(0xCA, 0xD4), (4, 8, 1, 2, 4, 8, 1, 2, 4, 8), strict=True):
    _HEADERS[_first] = 0, _rest, 0
for _first, _rest in zip(range(0xD4, 0xD9), (2, 3, 5, 9, 17), strict=True):
    _HEADERS[_first] = 0, _rest, 0
for _first in range(0xA0, 0xC0):
    _HEADERS[_first] = 0, _first & 0x1F, 0
for _first in range(0x80, 0xA0):
    _HEADERS[_first] = 0, 0, 2 if _first < 0x90 else 1
for _first, _width, _rest, _step in (
    *((0xC4, 1, 0, 0), (0xC5, 2, 0, 0), (0xC6, 4, 0, 0)),
    *((0xC7, 1, 1, 0), (0xC8, 2, 1, 0), (0xC9, 4, 1, 0)),
    *((0xD9, 1, 0, 0), (0xDA, 2, 0, 0), (0xDB, 4, 0, 0)),
    *((0xDC, 2, 0, 1), (0xDD, 4, 0, 1), (0xDE, 2, 0, 2), (0xDF, 4, 0, 2)),
):
    _HEADERS[_first] = _width, _rest, _step
_EXTENSIONS = frozenset({0xC7, 0xC8, 0xC9})
_EXT_16, _NEVER = 0xC8, 0xC1


class _NotMsgpack(Exception):
    """The bytes are not msgpack."""


def cut(data: bytes) -> list[bytes | list[bytes]]:
    """Cut the bytes of a value.

    Args:
        data: The value in msgpack. Others are cut into blocks.

    Returns:
        Consecutive pieces of `data`: bytes that stay together with the checkpoint, and lists of
        leaves to be shared.
    """
    cutter = _Cutter(data)
    try:
        if cutter.parse(0) != len(data):
            raise _NotMsgpack
        cutter.visit(0, len(data), 0, shared=False)
    except _NotMsgpack:
        cutter = _Cutter(data)
        cutter.opaque(0, len(data))
    return cutter.pieces()


class _Cutter:
    """Collects cuts: ends of pieces, and whether these are shared."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._cuts: list[tuple[list[int], bool]] = []
        # By its start: the body of a big container, its values in each element, their ends.
        self._containers: dict[int, tuple[int, int, list[int]]] = {}

    def pieces(self) -> list[bytes | list[bytes]]:
        """Return the pieces between the cuts."""
        found: list[bytes | list[bytes]] = []
        run: list[bytes] = []
        # Bytes up to `start` are in `found` or `run`, those up to `whole` stay together.
        start = whole = 0
        data = self._data
        for ends, shared in self._cuts:
            if not shared:
                if run:
                    found.append(leaves(run))
                    run = []
                whole = ends[-1]
                continue
            if whole > start:
                found.append(data[start:whole])
                start = whole
            run += [data[first:past] for first, past in pairwise([start, *ends])]
            start = ends[-1]
        if run:
            found.append(leaves(run))
        elif whole > start:
            found.append(data[start:whole])
        return found

    def visit(self, start: int, end: int, depth: int, *, shared: bool) -> None:
        """Cut the value from `start` to `end`, which `parse` has seen."""
        if end - start < BIG or depth > DEEPEST:
            self._cuts.append(([end], shared))
            return
        if start not in self._containers:
            self._visit_bytes(start, end, depth, shared=shared)
            return
        body, step, ends = self._containers[start]
        is_frame = len(ends) <= FEW and any(b - a >= BIG for a, b in pairwise(ends))
        # The header holds the number of elements: outside of the leaves, it changes none of them.
        self._cuts.append(([body], shared))
        shared = shared or not is_frame
        small: list[int] = []
        for first, past in pairwise(ends):
            if past - first < BIG:
                small.append(past)
                continue
            value = self.skip(first) if step == 2 else first
            if step == 2:
                small.append(value)
            if small:
                self._cuts.append((small, shared))
                small = []
            self.visit(value, past, depth + 1, shared=shared)
        if small:
            self._cuts.append((small, shared))

    def parse(self, start: int, depth: int = 0) -> int:
        """Return where the value at `start` ends, and note the big containers in it."""
        data, past = self._data, len(self._data)
        if start >= past:
            raise _NotMsgpack
        body, count, step = self._header(start)
        if not count or depth > DEEPEST:
            return self.skip(start)
        at, ends = body, [body]
        for _ in range(count):
            if step == 2:
                at = self.skip(at)
            first = data[at] if at < past else _NEVER
            if first == _EXT_16 and at + 2 < past:
                # Most messages. What follows is the general way.
                at += 4 + (data[at + 1] << 8 | data[at + 2])
            elif _HEADERS[first][2]:
                at = self.parse(at, depth + 1)
            else:
                at = self.skip(at)
            ends.append(at)
        if at > past:
            raise _NotMsgpack
        if at - start >= BIG:
            self._containers[start] = body, step, ends
        return at

    def _visit_bytes(self, start: int, end: int, depth: int, *, shared: bool) -> None:
        if self._data[start] in _EXTENSIONS:
            body, _, _ = self._header(start)
            mark = len(self._cuts)
            self._cuts.append(([body], shared))
            try:
                if self.parse(body) != end:
                    raise _NotMsgpack
                self.visit(body, end, depth + 1, shared=shared)
            except _NotMsgpack:
                del self._cuts[mark:]
            else:
                return
        self.opaque(start, end)

    def opaque(self, start: int, end: int) -> None:
        """Cut bytes of unknown structure into blocks."""
        self._cuts.append(([*range(start + BLOCK, end, BLOCK), end], True))

    def skip(self, at: int, todo: int = 1) -> int:
        """Return where the next `todo` values end, the first of which is at `at`."""
        data = self._data
        past = len(data)
        while todo:
            if at >= past:
                raise _NotMsgpack
            first = data[at]
            width, rest, step = _HEADERS[first]
            at += 1 + rest
            todo -= 1
            if width > 0:
                size = int.from_bytes(data[at - rest : at - rest + width])
                at += width
                if step:
                    todo += size * step
                else:
                    at += size
            elif step:
                todo += (first & 0x0F) * step
            elif width:
                raise _NotMsgpack
        if at > past:
            raise _NotMsgpack
        return at

    def _header(self, at: int) -> tuple[int, int, int]:
        """Return where the header at `at` ends, the number of elements, and values in each."""
        first = self._data[at]
        width, rest, step = _HEADERS[first]
        body = at + 1 + width
        if not step:
            return body + (rest if width else 0), 0, 1
        count = int.from_bytes(self._data[at + 1 : body]) if width else first & 0x0F
        return body, count, step


def leaves(pieces: list[bytes]) -> list[bytes]:
    """Join small neighbours among pieces of a value to leaves.

    Which ones depends on their content, so that edits stay local.
    """
    found: list[bytes] = []
    joined: list[bytes] = []
    size = 0
    for piece in pieces:
        joined.append(piece)
        size += len(piece)
        # A piece of the expected size ends a leaf in any case.
        if len(piece) >= LEAF or size >= LARGEST_LEAF or crc32(piece) % LEAF < len(piece):
            found.append(b"".join(joined) if len(joined) > 1 else piece)
            joined, size = [], 0
    if joined:
        found.append(b"".join(joined))
    return found
