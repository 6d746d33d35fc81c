"""Canonical form: encode equal values of both databases to the same bytes.

Postgres sorts the keys of JSON and writes 1e2 as 100. So the canonical form sorts keys and
writes the exact value of each number.
"""

import json
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from hashlib import blake2b
from typing import Any
from uuid import UUID

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_BYTES = 16
_MODULUS = 2 ** (8 * _BYTES)
# Maximum digits of a number in JSON: Python's limit, and far below Postgres's.
_DIGITS = 4000
_EXACT = Context(prec=_DIGITS)


class Unstorable(ValueError):
    """Postgres cannot hold a value."""


class Json(str):
    """A JSON document as text."""

    __slots__ = ()


class Checksum:
    """Count of rows and sum of their digests, independent of their order.

    Attributes:
        rows: Number of rows.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._sum = 0

    def add(self, digest: bytes) -> None:
        self.rows += 1
        self._sum = (self._sum + int.from_bytes(digest)) % _MODULUS

    def __str__(self) -> str:
        return f"{self._sum:032x}"


def digest(row: Sequence[Any]) -> bytes:
    """Return the digest of a row.

    Raises:
        Unstorable: a value is invalid JSON.
    """
    found = blake2b(digest_size=_BYTES)
    for value in row:
        part = encoded(value)
        found.update(b"%d:" % len(part))
        found.update(part)
    return found.digest()


def encoded(value: Any) -> bytes:
    """Return the canonical form of one value."""
    if value is None:
        return b"-"
    if isinstance(value, Json):
        return b"j" + _text(loads(value)).encode(errors="surrogatepass")
    if isinstance(value, dict):
        return encoded(Json(json.dumps(value)))
    if isinstance(value, str):
        return b"s" + value.encode(errors="surrogatepass")
    if isinstance(value, bytes):
        return b"b" + value
    if isinstance(value, int | float):
        # SQLite stores booleans, and may store floats without a fraction, as integers.
        return b"n" + repr(int(value) if value == value // 1 else value).encode()
    if isinstance(value, UUID):
        return b"u" + value.bytes
    if isinstance(value, datetime):
        return b"d" + repr((value - _EPOCH) // _MICROSECOND).encode()
    raise TypeError(f"No canonical form of {type(value).__name__}")


def loads(document: str | bytes) -> Any:
    """Parse a JSON document with exact numbers.

    Raises:
        Unstorable: the text is invalid JSON.
    """
    try:
        return json.loads(document, parse_float=_number, parse_constant=_refuse)
    except Unstorable:
        raise
    except (ValueError, RecursionError) as error:
        raise Unstorable(f"holds invalid JSON ({error})") from error


def _text(document: Any) -> str:
    """Return the canonical text of a document from `loads`."""
    return json.dumps(document, sort_keys=True, ensure_ascii=False, default=_encode_decimal)


def _number(written: str) -> int | Decimal:
    number = _EXACT.normalize(Decimal(written))
    if number.adjusted() > _DIGITS:
        raise Unstorable(f"holds the number {written[:40]}, which is too large")
    return int(number) if number == number.to_integral_value() else number


def _refuse(constant: str) -> Any:
    raise Unstorable(f"holds {constant}, which is no JSON")


def _encode_decimal(value: Any) -> Any:
    if isinstance(value, Decimal):
        return {"number": str(value)}
    raise TypeError(f"{type(value).__name__} is no JSON")


def strings(document: Any) -> Iterable[str]:
    """Yield every string in a document, including keys."""
    if isinstance(document, str):
        yield document
    elif isinstance(document, dict):
        for key, each in document.items():
            yield from strings(key)
            yield from strings(each)
    elif isinstance(document, list | tuple):
        for each in document:
            yield from strings(each)


def check_text(value: str) -> None:
    """Check that Postgres can hold a text.

    Raises:
        Unstorable: it cannot.
    """
    if "\0" in value:
        raise Unstorable("holds the character NUL")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise Unstorable("holds half a character, or bytes that are no UTF-8") from error


def check_json(document: Any) -> None:
    """Check that Postgres's jsonb can hold a document from `loads`.

    Raises:
        Unstorable: it cannot.
    """
    for each in strings(document):
        check_text(each)


def check_number(value: Any, low: float, high: float) -> None:
    """Check that a value is a number in the range of its column.

    Raises:
        Unstorable: it is not.
    """
    if not isinstance(value, int | float) or math.isnan(value) or not low <= value <= high:
        raise Unstorable(f"has {value!r} where only numbers from {low} to {high} go")
