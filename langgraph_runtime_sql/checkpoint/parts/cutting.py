"""Cutting: find where the bytes of a value in msgpack can be cut.

The cuts only decide what checkpoints share. All pieces joined are the value's bytes, wherever the
cuts are, so bytes that are not msgpack are merely shared less.
"""

from itertools import pairwise
from typing import NamedTuple
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

_SIZES = {
    # The first byte: the bytes of the length, and the bytes between length and payload.
    **{0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0)},
    **{0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1)},
    **{0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)},
}
_FIXED = {
    **{0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8},
    **{0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8},
    **{0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17},
}
_CONTAINERS = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}
_EXTENSIONS = frozenset({0xC7, 0xC8, 0xC9})


class _NotMsgpack(Exception):
    """The bytes are not msgpack."""


class _Token(NamedTuple):
    """One token: where its header ends, where it ends, and how many values follow inside."""

    body: int
    end: int
    children: int
    step: int


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
        token = self._token(start)
        if not token.children:
            self._visit_bytes(start, end, token.body, depth, shared=shared)
            return
        ends = [token.body]
        for _ in range(token.children // token.step):
            at = ends[-1]
            for _ in range(token.step):
                at = self.skip(at)
            ends.append(at)
        is_frame = len(ends) <= FEW and any(b - a >= BIG for a, b in pairwise(ends))
        # The header holds the number of elements: outside of the leaves, it changes none of them.
        self._cuts.append((token.body, shared))
        shared = shared or not is_frame
        for first, past in pairwise(ends):
            if past - first < BIG:
                self._cuts.append((past, shared))
                continue
            value = first
            if token.step == 2:
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

    def skip(self, at: int) -> int:
        """Return where the value at `at` ends."""
        todo = 1
        while todo:
            token = self._token(at)
            todo += token.children - 1
            at = token.body if token.children else token.end
        if at > len(self._data):
            raise _NotMsgpack
        return at

    def _token(self, at: int) -> _Token:
        data = self._data
        if at >= len(data):
            raise _NotMsgpack
        first = data[at]
        at += 1
        if first < 0x80 or first >= 0xE0:
            return _Token(at, at, 0, 1)
        if first < 0x90:
            return _Token(at, at, 2 * (first & 0x0F), 2)
        if first < 0xA0:
            return _Token(at, at, first & 0x0F, 1)
        if first < 0xC0:
            return _Token(at, at + (first & 0x1F), 0, 1)
        if first in _FIXED:
            return _Token(at, at + _FIXED[first], 0, 1)
        width, other = _SIZES.get(first) or _CONTAINERS.get(first) or (0, 0)
        if not width or at + width > len(data):
            raise _NotMsgpack
        size = int.from_bytes(data[at : at + width])
        body = at + width
        if first in _CONTAINERS:
            if size > len(data):
                raise _NotMsgpack
            return _Token(body, body, size * other, other)
        return _Token(body + other, body + other + size, 0, 1)


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
