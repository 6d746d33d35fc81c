"""Payloads: JSON documents that are compared by value, not by spelling."""

import hashlib
import json
from typing import Any

HASH_DIGITS = 16


def canonical(payload: Any) -> str:
    """Serialize a payload to JSON in a canonical form.

    The form depends neither on the order of keys nor on the spelling of numbers: 1.0 equals 1.

    Raises:
        ValueError: the payload is not JSON.
    """
    try:
        return json.dumps(_plain(payload), sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, RecursionError) as error:
        raise ValueError("the payload is not JSON") from error


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def payload_hash(payload: Any) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of the canonical payload.

    None has the same hash as an empty object.

    Raises:
        ValueError: the payload is not JSON.
    """
    text = canonical({} if payload is None else payload)
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]
