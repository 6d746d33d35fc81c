"""JSON as the platform writes it, with a 422 for values that cannot be written."""

from functools import cache
from typing import Any, cast

import orjson
from starlette.exceptions import HTTPException


class Unstorable(HTTPException):
    """The value cannot be written as JSON: it is nested too deeply, or is not data. Answers 422."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(422, f"The value cannot be stored as JSON: {cause}")


# Levels that responses add around a stored value. The encoder stops at 254 levels: a value that
# could be stored but not returned would fail every list that contains it.
AROUND = 16
# The platform's encoder replaces escaped NUL characters, and texts that look like one.
_ESCAPED_NUL = r"\u0000"


@cache
def _encoder() -> Any:
    # Imported late, because the import of langgraph_api reads the environment.
    from langgraph_api.serde import json_dumpb

    return json_dumpb


def dumps(value: Any) -> str:
    """Write `value` as JSON text. Messages, models, ids and dates are allowed.

    Raises:
        Unstorable: nested too deeply, or an integer beyond 64 bits.
    """
    nested = value
    for _ in range(AROUND):
        nested = [nested]
    try:
        return cast(bytes, _encoder()(nested)).decode()[AROUND:-AROUND]
    except (TypeError, RecursionError) as error:
        raise Unstorable(error) from error


def encoded(value: Any) -> bytes:
    """Return `value`, which was stored once, as JSON.

    Raises:
        Unstorable: as in `dumps`.
    """
    try:
        return cast(bytes, _encoder()(value))
    except (TypeError, RecursionError) as error:
        raise Unstorable(error) from error


def finished(value: Any) -> orjson.Fragment:
    """Return `value`, which was stored once, as JSON that is written as it is.

    Raises:
        Unstorable: as in `dumps`.
    """
    return orjson.Fragment(encoded(value))


def loads(document: str | bytes) -> Any:
    """Read a JSON document."""
    return orjson.loads(document)


def plain(value: Any) -> Any:
    """Return a copy of `value` as it would be read back: dicts, lists and scalars only."""
    return loads(dumps(value))


def as_stored(text: str) -> str:
    """Return `text` as it would be read back: the encoder replaces some characters.

    Convert a text before you compare it with a stored one.
    """
    unchanged = text.isprintable() and _ESCAPED_NUL not in text
    return text if unchanged else str(plain(text))
