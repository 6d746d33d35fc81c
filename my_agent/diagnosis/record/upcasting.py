"""Upcasting: convert the content of an older version to the current one, step by step.

Each function is pure and converts one version to the next. None may ever be removed.
"""

import hashlib
from collections.abc import Callable
from typing import Any

from my_agent.diagnosis.record.events import CONTENTS

Data = dict[str, Any]


class UnknownEvent(RuntimeError):
    """A stored event has a type or version that this code does not know. The message names it.

    A RuntimeError, since the API hides from its callers the message of any class it does not know.
    """


def _source_with_format(data: Data) -> Data:
    return {**data, "format": "unknown"}


def _source_with_name(data: Data) -> Data:
    return {**data, "name": ""}


def _source_with_sum(data: Data) -> Data:
    digest = hashlib.sha256(data["text"].encode("utf-8", "replace")).hexdigest()
    return {**data, "chars": len(data["text"]), "sha256": digest}


def _hypothesis_with_service(data: Data) -> Data:
    service, _, fault = data["cause"].partition(": ")
    rest = {key: value for key, value in data.items() if key != "cause"}
    return {**rest, "service": service, "fault": fault or "unknown"}


UPCASTERS: dict[tuple[str, int], Callable[[Data], Data]] = {
    ("source_added", 1): _source_with_format,
    ("source_added", 2): _source_with_name,
    ("source_added", 3): _source_with_sum,
    ("hypothesis_proposed", 1): _hypothesis_with_service,
}
"""The function that converts a type from this version to the next."""


def current(kind: str, version: int, data: Data) -> Data:
    """Return the content of an event in the current version of its type.

    Args:
        kind: The event's type.
        version: The version in which it was stored.
        data: Its content in that version.

    Raises:
        UnknownEvent: the type or the version is unknown.
    """
    content = CONTENTS.get(kind)
    if content is None:
        raise UnknownEvent(f"Unknown event type {kind!r}")
    while version != content.VERSION:
        convert = UPCASTERS.get((kind, version))
        if convert is None:
            raise UnknownEvent(f"Unknown version {version} of event type {kind!r}")
        data, version = convert(data), version + 1
    return data
