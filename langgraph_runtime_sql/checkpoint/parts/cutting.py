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
        if cutter.skip(0) != len(data):
            raise _NotMsgpack
        cutter.visit(0, len(data), 0, shared=False)
    except _NotMsgpack:
        cutter = _Cutter(data)
        cutter.opaque(0, len(data))
    return cutter.pieces()


class _Cutter:
    """Collects cuts: the end of each piece, and whether it is shared."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._cuts: list[tuple[int, bool]] = []

    def pieces(self) -> list[bytes | list[bytes]]:
        """Return the pieces between the cuts."""
        found: list[bytes | list[bytes]] = []
        start, last = 0, len(self._cuts) - 1
        run: list[bytes] = []
        for at, (end, shared) in enumerate(self._cuts):
            if shared:
                run.append(self._data[start:end])
                start = end
                continue
            if run:
                found.append(_leaves(run))
                run = []
            if at == last or self._cuts[at + 1][1]:
                found.append(self._data[start:end])
                start = end
        if run:
            found.append(_leaves(run))
        return found

    def visit(self, start: int, end: int, depth: int, *, shared: bool) -> None:
        """Cut the value from `start` to `end`."""
        if end - start < BIG or depth > DEEPEST:
            self._cuts.append((end, shared))
            return
        body, count, step = self._header(start)
        if not count:
            self._visit_bytes(start, end, body, depth, shared=shared)
            return
        ends = [body]
        for _ in range(count):
            ends.append(self.skip(ends[-1], step))
        is_frame = len(ends) <= FEW and any(b - a >= BIG for a, b in pairwise(ends))
        # The header holds the number of elements: outside of the leaves, it changes none of them.
        self._cuts.append((body, shared))
        shared = shared or not is_frame
        for first, past in pairwise(ends):
            if past - first < BIG:
                self._cuts.append((past, shared))
                continue
            value = first
            if step == 2:
                value = self.skip(first)
                self._cuts.append((value, shared))
            self.visit(value, past, depth + 1, shared=shared)

    def _visit_bytes(self, start: int, end: int, body: int, depth: int, *, shared: bool) -> None:
        if self._data[start] in _EXTENSIONS:
            mark = len(self._cuts)
            self._cuts.append((body, shared))
            try:
                if self.skip(body) != end:
                    raise _NotMsgpack
                self.visit(body, end, depth + 1, shared=shared)
            except _NotMsgpack:
                del self._cuts[mark:]
            else:
                return
        self.opaque(start, end)

    def opaque(self, start: int, end: int) -> None:
        """Cut bytes of unknown structure into blocks."""
        self._cuts.extend((at, True) for at in range(start + BLOCK, end, BLOCK))
        self._cuts.append((end, True))

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


def _leaves(pieces: list[bytes]) -> list[bytes]:
    """Join small neighbours. Which ones depends on their content, so that edits stay local."""
    found: list[bytes] = []
    joined: list[bytes] = []
    size = 0
    for piece in pieces:
        joined.append(piece)
        size += len(piece)
        if crc32(piece) % LEAF < len(piece) or size >= LARGEST_LEAF:
            found.append(b"".join(joined))
            joined, size = [], 0
    if joined:
        found.append(b"".join(joined))
    return found
