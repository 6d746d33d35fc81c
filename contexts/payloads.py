"""Payloads: JSON documents that are compared by what they say, not by how they are written."""

import hashlib
import json
from typing import Any

HASH_DIGITS = 16


def canonical(payload: Any) -> str:
    """A payload as JSON that does not depend on the order of keys or the form of numbers.

    Raises:
        ValueError: it is not JSON.
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
    """The first digits of the SHA-256 of the canonical payload; no payload is an empty one."""
    text = canonical({} if payload is None else payload)
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]
