"""Frames: what server and worker write to each other through pipes, with its length before it."""

import struct
from typing import BinaryIO

_LENGTH = struct.Struct(">Q")


class TooLarge(Exception):
    """The frame is larger than its reader accepts."""


def write(pipe: BinaryIO, *parts: bytes) -> None:
    """Write a frame that consists of the parts. Raises OSError if the reader is gone."""
    pipe.write(_LENGTH.pack(sum(map(len, parts))))
    pipe.writelines(parts)
    pipe.flush()


def read(pipe: BinaryIO, most: int) -> bytes:
    """Read a frame.

    Args:
        pipe: A buffered pipe.
        most: Its maximum length in bytes.

    Raises:
        EOFError: the writer is gone.
        TooLarge: the frame is longer.
    """
    (length,) = _LENGTH.unpack(_exactly(pipe, _LENGTH.size))
    if length > most:
        raise TooLarge
    return _exactly(pipe, length)


def _exactly(pipe: BinaryIO, length: int) -> bytes:
    found = pipe.read(length)
    if len(found) < length:
        raise EOFError
    return found
