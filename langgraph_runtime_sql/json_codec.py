"""JSON as the platform writes it, with a clear answer where it cannot be written."""

from functools import cache
from typing import Any, cast

import orjson
from starlette.exceptions import HTTPException


class Unstorable(HTTPException):
    """A value cannot be written as JSON: it is nested too deeply or not data."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(422, f"The value cannot be stored as JSON: {cause}")


# Levels that answers put around what is stored; the encoder stops at 254. A document that could
# be written but not shown would fail every list it is on.
AROUND = 16
# The platform's encoder replaces a NUL by the letters that stand for it, and so these too.
_ESCAPED_NUL = r"\u0000"


@cache
def _encoder() -> Any:
    # langgraph_api reads the environment when it is imported, so not before first use.
    from langgraph_api.serde import json_dumpb

    return json_dumpb


def dumps(value: Any) -> str:
    """`value` as JSON text: messages, models, ids and dates included.

    Raises:
        Unstorable: (422) nested deeper than the encoder goes, or an integer past 64 bits.
    """
    nested = value
    for _ in range(AROUND):
        nested = [nested]
    try:
        return cast(bytes, _encoder()(nested)).decode()[AROUND:-AROUND]
    except (TypeError, RecursionError) as error:
        raise Unstorable(error) from error


def loads(document: str | bytes) -> Any:
    """The value of a JSON document."""
    return orjson.loads(document)


def plain(value: Any) -> Any:
    """A private copy of `value` as it would read back: dicts, lists and scalars only."""
    return loads(dumps(value))


def as_stored(text: str) -> str:
    """`text` as it would read back: some characters are stored as others.

    What is compared with something stored must go this way first.
    """
    unchanged = text.isprintable() and _ESCAPED_NUL not in text
    return text if unchanged else str(plain(text))
