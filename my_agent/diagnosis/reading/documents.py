"""Documents: JSON over many lines, or with many objects in one, read object by object."""

import re
from collections.abc import Generator, Iterator
from json import JSONDecoder
from typing import Any, NamedTuple

_SPACE = re.compile(r"[ \t\r\n]*+")
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_LISTS = re.compile(
    r'"(?:Records|items|entries|logs|events|Events|result|hits|value|data|spans|logEvents)"\s*:\s*\[\s*[{\]]'
)
_CLOSING = re.compile(r"(?:[ \t\r\n,]*+[\]}])*+")
_DECODER = JSONDecoder(strict=False)
_DEEPEST = 6
_HOLDERS = re.compile(r'"(?:spans|scopeSpans|scopeLogs)"\s*:\s*\[\s*\{')
# Characters in which the list of an object begins.
_HEAD, _NEAR = 4_000, 400


class Element(NamedTuple):
    """An object in a document, and its offsets.

    Attributes:
        is_beside: Whether it is a value that stands beside a list, with its key.
    """

    start: int
    end: int
    value: dict[str, Any]
    is_beside: bool = False


def holds_list(line: str) -> bool:
    """Return whether a line with a whole object holds a list of others."""
    return line[:1] == "[" or _LISTS.search(line, 0, _HEAD) is not None


def elements(text: str, start: int) -> Iterator[Element]:
    """Yield the objects of the document at an offset, each with its place.

    The objects are those of its lists; a document without lists is one object.

    Raises:
        ValueError: the document is damaged. What was yielded before is right.
        RecursionError: it is nested too deeply.
    """
    place = _skip(text, start)
    if text[place : place + 1] == "[":
        yield from _list(text, place, 0)
    elif text[place : place + 1] == "{":
        yield from _object(text, place, 0)
    else:
        raise ValueError("no list and no object")


def close(text: str, place: int) -> int:
    """Return the offset behind the brackets that close a document after its last element."""
    found = _CLOSING.match(text, place)
    return place if found is None else found.end()


def _list(text: str, start: int, depth: int) -> Generator[Element, None, int]:
    place = _skip(text, start + 1)
    while text[place : place + 1] not in ("]", ""):
        if text[place : place + 1] == "{" and depth < _DEEPEST and _holds_spans(text, place):
            end = yield from _object(text, place, depth + 1)
        else:
            value, end = _DECODER.raw_decode(text, place)
            if isinstance(value, dict):
                yield Element(place, end, value)
        place = _after(text, end)
    if not text[place : place + 1]:
        raise ValueError("the list does not end")
    return place + 1


def _holds_spans(text: str, place: int) -> bool:
    """Return whether an object only holds others, as a trace of Jaeger does its spans."""
    return _HOLDERS.search(text, place, place + _NEAR) is not None


def _object(text: str, start: int, depth: int) -> Generator[Element, None, int]:
    if depth >= _DEEPEST or _LISTS.search(text, start, start + _HEAD) is None:
        value, end = _DECODER.raw_decode(text, start)
        yield Element(start, end, value)
        return end
    place = _skip(text, start + 1)
    while text[place : place + 1] == '"':
        key = _STRING.match(text, place)
        place = _skip(text, key.end()) if key is not None else len(text)
        if text[place : place + 1] != ":":
            raise ValueError("a key has no value")
        place = _skip(text, place + 1)
        opener = text[place : place + 1]
        if opener == "[":
            place = yield from _list(text, place, depth + 1)
        elif opener == "{" and _LISTS.search(text, place, place + _HEAD) is not None:
            place = yield from _object(text, place, depth + 1)
        else:
            value, place = _DECODER.raw_decode(text, place)
            name = _DECODER.raw_decode(key[0])[0] if key is not None else ""
            yield Element(key.start() if key is not None else place, place, {name: value}, True)
        place = _after(text, place)
    if text[place : place + 1] != "}":
        raise ValueError("the object does not end")
    return place + 1


def _after(text: str, place: int) -> int:
    """Return the offset of what follows a value and the comma behind it."""
    place = _skip(text, place)
    return _skip(text, place + 1) if text[place : place + 1] == "," else place


def _skip(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return place if found is None else found.end()
