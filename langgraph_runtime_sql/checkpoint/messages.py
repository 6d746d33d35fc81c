"""Messages: decode and encode each message of a long conversation once.

Each run loads all messages of its thread, and stores them again with each step. Building and writing
them takes most of that time. A memo by their bytes saves the one, a memo by their content the other.
Each caller gets messages of its own, which share no changeable object.

Only langchain_core's own classes take part: they have no other state, and every serializer may
decode them. A message with other than plain data is decoded and encoded as before.
"""

import marshal
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import ormsgpack
from langchain_core import messages
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.serde.jsonplus import EXT_PYDANTIC_V2

from langgraph_runtime_sql.memo import Memo

Hook = Callable[[int, bytes], Any]
Dumps = Callable[[Any], tuple[str, bytes]]

# Shorter lists are encoded with what is around them.
_FEW = 8
# Messages that are looked up together.
_TOGETHER = 128
# marshal's version without references: equal content gives equal bytes.
_VERSION = 2
# Bytes of each memo, and what an entry takes beside its content.
SIZE, ENTRY = 32 * 2**20, 500

_CLASSES: tuple[type[BaseMessage], ...] = tuple(
    each
    for each in (getattr(messages, name) for name in messages.__all__)
    if isinstance(each, type) and issubclass(each, BaseMessage) and each is not BaseMessage
)
NUMBERS = {each: at for at, each in enumerate(_CLASSES)}
"""langchain_core's own classes of messages."""
SCALARS: frozenset[type] = frozenset({str, int, float, bool, type(None)})
_WITH_BYTES: frozenset[type] = SCALARS | {bytes}

# It has bytes only: the garbage collector would visit other objects again and again.
decoded: Memo[bytes, bytes] = Memo(SIZE)


def remembering(inner: Hook) -> Hook:
    """Wrap the hook that decodes msgpack's extension types."""

    def hook(code: int, data: bytes) -> Any:
        if code != EXT_PYDANTIC_V2:
            return inner(code, data)
        found = decoded.get(data)
        if found is not None:
            return _restored(found)
        obj = inner(code, data)
        if (content := _content(obj)) is not None:
            decoded.put(data, content, len(data) + len(content) + ENTRY)
        return obj

    return hook


# By the content of a message.
_encoded: Memo[bytes, bytes] = Memo(SIZE)


def encoded(dumps: Dumps, checkpoint: Checkpoint) -> bytes:
    """Return the bytes of a checkpoint as `dumps` writes them, but of known messages without it."""
    values = checkpoint["channel_values"]
    known = {
        name: ormsgpack.Fragment(_list(dumps, each))
        for name, each in values.items()
        if type(each) is list and len(each) >= _FEW and type(each[0]) in NUMBERS
    }
    if not known:
        return dumps(checkpoint)[1]
    return dumps({**checkpoint, "channel_values": {**values, **known}})[1]


def _list(dumps: Dumps, messages: list[Any]) -> bytes:
    """Return the msgpack of a list, most of which are messages."""
    full = len(messages) - len(messages) % _TOGETHER
    pieces = [_header(len(messages))]
    for at in range(0, full, _TOGETHER):
        pieces.append(_run(dumps, messages[at : at + _TOGETHER]))
    pieces += [_one(dumps, each) for each in messages[full:]]
    return b"".join(pieces)


def _header(count: int) -> bytes:
    """Return how msgpack begins a list of at least `_FEW` elements."""
    if count < 16:
        return bytes((0x90 | count,))
    return b"\xdc" + count.to_bytes(2) if count < 2**16 else b"\xdd" + count.to_bytes(4)


def _run(dumps: Dumps, messages: list[Any]) -> bytes:
    """Return the msgpack of messages that stand together: one look-up for all of them."""
    try:
        parts = [(NUMBERS[type(m)], m.__dict__, m.__pydantic_extra__) for m in messages]
        content = marshal.dumps(parts, _VERSION)
    except (KeyError, ValueError):
        return b"".join(_one(dumps, each) for each in messages)
    data = _encoded.get(content)
    if data is None:
        data = b"".join(_one(dumps, each) for each in messages)
        if all(is_plain(list(each[1:]), SCALARS) for each in parts):
            _encoded.put(content, data, len(content) + len(data) + ENTRY)
    return data


def _one(dumps: Dumps, message: Any) -> bytes:
    """Return the msgpack of an element of a list of a channel."""
    number, content = NUMBERS.get(type(message)), None
    if number is not None:
        fields, extra = message.__dict__, message.__pydantic_extra__
        with suppress(ValueError):
            content = marshal.dumps((number, fields, extra), _VERSION)
    data = None if content is None else _encoded.get(content)
    if data is None:
        # As deep as it stands, for the limit of depth. A list of one element is one byte before it.
        data = dumps([[[message]]])[1][3:]
        # marshal writes arrays of bytes as bytes, so that equal content may be another message.
        if content is not None and is_plain([fields, extra], SCALARS):
            _encoded.put(content, data, len(content) + len(data) + ENTRY)
    return data


def _content(obj: Any) -> bytes | None:
    """Return all that a message consists of, or None if it cannot be restored exactly."""
    number = NUMBERS.get(type(obj))
    if number is None or obj.__pydantic_private__ is not None:
        return None
    parts = obj.__dict__, obj.__pydantic_extra__, obj.__pydantic_fields_set__
    if not is_plain(list(parts[:2]), _WITH_BYTES):
        return None
    return marshal.dumps((number, *parts))


def _restored(content: bytes) -> BaseMessage:
    """Return a new message that shares nothing with others."""
    number, fields, extra, given = marshal.loads(content)
    kind = _CLASSES[number]
    made: BaseMessage = kind.__new__(kind)
    # As pydantic's own copies are made: a message refuses assignments to these names.
    object.__setattr__(made, "__dict__", fields)
    object.__setattr__(made, "__pydantic_fields_set__", given)
    object.__setattr__(made, "__pydantic_extra__", extra)
    object.__setattr__(made, "__pydantic_private__", None)
    return made


def is_plain(value: Any, scalars: frozenset[type]) -> bool:
    """Return whether a value is a tree of lists and of mappings with texts as keys.

    Args:
        value: The value. Nothing changeable may occur twice in it.
        scalars: The types of its leaves.
    """
    return _is_plain(value, scalars, set())


def _is_plain(value: Any, scalars: frozenset[type], seen: set[int]) -> bool:
    if type(value) in scalars:
        return True
    if id(value) in seen or type(value) not in (dict, list):
        return False
    seen.add(id(value))
    if type(value) is list:
        return all(_is_plain(each, scalars, seen) for each in value)
    return all(type(key) is str and _is_plain(each, scalars, seen) for key, each in value.items())
