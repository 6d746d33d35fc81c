"""Invalid input that clients may send, and checks of the answers to it."""

import copy
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote_plus

import httpx

MARK = "@@garbage@@"


def nested(depth: int, opening: str, closing: str) -> str:
    """Return JSON of this nesting depth."""
    return opening * depth + "1" + closing * depth


# JSON texts, because an encoder cannot write many of these.
GARBAGE = {
    "null": "null",
    "true": "true",
    "negative": "-1",
    "zero": "0",
    "fraction": "1.5",
    "whole float": "2.0",
    "past 31 bits": "2147483648",
    "past 63 bits": "9223372036854775808",
    "past 64 bits": "18446744073709551616",
    "a googol and more": "1" + "0" * 400,
    "past floats": "1e400",
    "NaN": "NaN",
    "infinity": "-Infinity",
    "empty text": '""',
    "NUL": '"a\\u0000b"',
    "lone surrogate": '"\\ud800"',
    "a word": '"garbage"',
    "sql": '"\' OR 1=1; DROP TABLE threads; --"',
    "way up": '"../../etc/passwd"',
    "long text": '"' + "x" * 20_000 + '"',
    "unknown id": '"00000000-0000-4000-8000-00000000abcd"',
    "emoji": '"\U0001f600"',
    "no list": "[]",
    "no object": "{}",
    "list of null": "[null]",
    "list of numbers": "[1]",
    "list of text": '["x"]',
    "list of lists": "[[]]",
    "list of objects": "[{}]",
    "object": '{"a": 1}',
    "NUL in a key": '{"a\\u0000": 1}',
    "odd keys": '{"$eq": 1, "a.b": 2, "[0]": 3, "\\"": 4, "\'": 5, "": 6}',
    "duplicate keys": '{"a": 1, "a": 2}',
    "long key": '{"' + "k" * 20_000 + '": 1}',
    "lone surrogate in a key": '{"\\ud800": 1}',
    "past 64 bits inside": '{"a": 18446744073709551616}',
    "operators": '{"a": {"$gt": {"x": 1}}}',
    "combination": '{"$or": [{"a": 1}, {}]}',
    "240 deep": nested(240, "[", "]"),
    "300 deep": nested(300, '{"a":', "}"),
    "10,000 deep": nested(10_000, "[", "]"),
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value inside a JSON value; the empty path is the whole value."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from places(inner, (*path, index))


def spoilt(body: Any) -> list[tuple[str, bytes]]:
    """Return every body with one value replaced by garbage, with a name of the replacement."""
    found = []
    for path in places(body):
        text = json.dumps(_put(body, path, MARK))
        where = ".".join(map(str, path)) or "body"
        for name, garbage in GARBAGE.items():
            found.append((f"{where} = {name}", text.replace(f'"{MARK}"', garbage).encode()))
    return found


def _put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    changed = copy.deepcopy(value)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return changed


LEAKS = re.compile(
    r"sqlite|traceback|site-packages|\.py\b|object at 0x|\bSELECT\b.*\bFROM\b|\bINSERT INTO\b",
    re.IGNORECASE | re.DOTALL,
)


def _leaks(text: str) -> list[str]:
    return [found.group().lower() for found in LEAKS.finditer(text)]


def _asked(request: httpx.Request) -> str:
    """Return the text of the request, which an answer may repeat."""
    return f"{unquote_plus(str(request.url))} {request.content.decode(errors='replace')}".lower()


def complaint(answer: httpx.Response) -> str | None:
    """Return what is wrong with an answer to garbage, or None.

    Args:
        answer: A response whose body has been read.
    """
    shown = f"{answer.status_code} {answer.text[:300]}"
    if answer.status_code >= 500:
        return shown
    if answer.status_code < 400:
        return None
    if any(found not in _asked(answer.request) for found in _leaks(answer.text)):
        return f"reveals internals: {shown}"
    try:
        body = answer.json()
    except ValueError:
        return f"is not JSON: {shown}"
    # The API answers with `detail`, MCP and A2A with `jsonrpc`, event streams with `type`, and a
    # few stock routes with `error`.
    said = isinstance(body, dict) and any(
        body.get(key) for key in ("detail", "jsonrpc", "error", "type")
    )
    return None if said else f"gives no reason: {shown}"
