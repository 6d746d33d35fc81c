"""Replace the values that may differ between two servers by placeholders.

Ids become ``<id:1>``, ``<id:2>``, ... in order of appearance, so that two
observations are equal only if the *same* ids stand in the same places.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from .world import system_assistant

_ID = re.compile(
    r"(?<![0-9a-f])(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})"
    r"(?![0-9a-f])"
)
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?",
)
# Stock gives one id to all events of a millisecond and adds a suffix to each.
_STREAM_ID = re.compile(r"(?<![\w-])\d{13}-\d+(?:\.\d+)?(?![\w-])")
# Clocks and durations: the keys must be present, but the values may differ.
_CLOCK_KEYS = frozenset({"__request_start_time_ms__", "timestamp", "run_created_at"})
# Stock counts the events of a connection, ours names places in the log of the thread.
_PLACE_KEYS = frozenset({"seq", "applied_through_seq"})
# Stock creates this id for each request; it must not count among the other ids.
_REQUEST_KEY = "langgraph_request_id"


class Normaliser:
    """Normalise one server's observation.

    :param url: the server's base URL; it becomes ``<url>`` wherever it appears.
    :param graphs: graph names; their system assistants' ids are known constants
        and become ``<assistant:NAME>``.
    """

    def __init__(self, url: str, graphs: list[str]) -> None:
        self._url = url
        self._names = {system_assistant(graph): f"<assistant:{graph}>" for graph in graphs}

    def __call__(self, observation: Any) -> Any:
        """Return a copy of ``observation`` (JSON-like) with ids, times and URL replaced."""
        self._ids: dict[str, str] = {}
        return self._value(observation)

    def _value(self, value: Any, key: str = "") -> Any:
        if isinstance(value, str):
            return self._text(value, key)
        if isinstance(value, Mapping):
            items = sorted(value.items(), key=_stable)
            return {self._text(str(k)): self._value(v, str(k)) for k, v in items}
        if isinstance(value, list | tuple):
            return [self._value(item) for item in value]
        if key in _CLOCK_KEYS and isinstance(value, int | float) and not isinstance(value, bool):
            return "<clock>"
        if key in _PLACE_KEYS and isinstance(value, int):
            return "<place>"
        return value

    def _text(self, text: str, key: str = "") -> str:
        if key == _REQUEST_KEY:
            return _ID.sub("<request-id>", text)
        text = text.replace(self._url, "<url>").replace(self._url.split("://")[1], "<host>")
        text = _TIME.sub("<time>", text)
        text = _STREAM_ID.sub("<stream-id>", text)
        return _ID.sub(self._id, text)

    def _id(self, match: re.Match[str]) -> str:
        found = match.group()
        if found in self._names:
            return self._names[found]
        return self._ids.setdefault(found, f"<id:{len(self._ids) + 1}>")


def _stable(item: tuple[Any, Any]) -> tuple[str, str]:
    """Return a sort key of normalised values, without random ids."""
    key, value = item
    return _masked(str(key)), _masked(json.dumps(value, sort_keys=True, default=str))


def _masked(text: str) -> str:
    return _ID.sub("#", _STREAM_ID.sub("#", _TIME.sub("#", text)))


def compare(left: Any, right: Any, path: str = "$") -> list[tuple[str, Any, Any]]:
    """Return every place where two normalised observations differ: (path, left, right).

    A key or item that one side lacks is reported with ``"<absent>"``.
    """
    if isinstance(left, dict) and isinstance(right, dict):
        found = []
        for key in [*left, *(k for k in right if k not in left)]:
            ours = right.get(key, "<absent>")
            found += compare(left.get(key, "<absent>"), ours, f"{path}.{key}")
        return found
    if isinstance(left, list) and isinstance(right, list):
        found = []
        for index in range(max(len(left), len(right))):
            a = left[index] if index < len(left) else "<absent>"
            b = right[index] if index < len(right) else "<absent>"
            found += compare(a, b, f"{path}[{index}]")
        return found
    same = type(left) is type(right) and left == right
    return [] if same else [(path, left, right)]


def path_matches(path: str, pattern: str) -> bool:
    """Return whether a pattern covers the path of a difference; ``*`` matches anything."""
    # Brackets are an index in a path, but a set of characters in a glob.
    return fnmatchcase(path, pattern.replace("[", "[[]"))
