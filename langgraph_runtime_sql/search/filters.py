"""Filters: the conditions of metadata searches and authorization handlers, as SQL.

There are two languages. A search's `metadata` and `values` are containment, as Postgres's `@>` has
it: every given key must be present and every entry of an array must be in the array, recursively; the
rest is compared by equality. A handler's filter is the SDK's: `{key: value}`,
`$eq`, `$contains`, `$and`, `$or`. Keys and values reach SQL as parameters only. A registered
function evaluates what an index cannot answer.
"""

import sqlite3
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from sqlalchemy import Boolean, ColumnElement, bindparam, func
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import json_codec
from langgraph_runtime_sql.database.schema import Json
from langgraph_runtime_sql.pauses import Pauses

Filter = Mapping[str, Any]

MAX_DEPTH = 2
# Each value of an array is compared with each of the stored one. Postgres cannot be interrupted in this.
MAX_IN_ARRAYS = 1000


def contains(document: Any, needle: Any) -> bool:
    """Return whether `document` contains `needle`."""
    if isinstance(needle, dict):
        return isinstance(document, dict) and all(
            key in document and contains(document[key], value) for key, value in needle.items()
        )
    if isinstance(needle, list):
        return isinstance(document, list) and all(_among(document, each) for each in needle)
    # Python's own comparison is much faster, but takes true for 1.
    return bool(document == needle) and equal(document, needle)


def _among(entries: list[Any], wanted: Any) -> bool:
    if isinstance(wanted, dict | list):
        return any(contains(have, wanted) for have in entries)
    # `in` is much faster, and mostly false.
    return wanted in entries and any(equal(have, wanted) for have in entries)


def searchable(needle: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a search compares with documents.

    Raises:
        HTTPException: (422) arrays hold more than `MAX_IN_ARRAYS` values.
    """
    plain: dict[str, Any] = json_codec.plain(dict(needle))
    if _in_arrays(plain, 0) > MAX_IN_ARRAYS:
        raise HTTPException(422, f"Search for at most {MAX_IN_ARRAYS} values in arrays")
    return plain


def _in_arrays(value: Any, each: int) -> int:
    """Count the values in arrays; `each` is 1 in an array."""
    if isinstance(value, dict):
        return each + sum(_in_arrays(inner, each) for inner in value.values())
    if isinstance(value, list):
        return each + sum(_in_arrays(inner, 1) for inner in value)
    return each


def equal(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal: numbers by value, and true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    return bool(left == right)


def allows(filters: Filter | None, metadata: Any) -> bool:
    """Return whether a handler's filter admits a row with this metadata.

    Raises:
        HTTPException: (500) the filter has an unknown operator or is nested too deeply.
    """
    return True if not filters else _allows(json_codec.plain(filters), metadata or {}, 0)


def _allows(filters: Any, metadata: dict[str, Any], depth: int) -> bool:
    if not isinstance(filters, dict):
        raise _bad_filter(f"expected an object, got {type(filters).__name__}")
    if depth > MAX_DEPTH:
        raise _bad_filter(f"nested deeper than {MAX_DEPTH}")
    # Every part is evaluated, so that an invalid one is always refused.
    answers = [_entry(key, wanted, metadata, depth) for key, wanted in filters.items()]
    return all(answers)


def _entry(key: str, wanted: Any, metadata: dict[str, Any], depth: int) -> bool:
    if key in ("$or", "$and"):
        if not isinstance(wanted, list) or len(wanted) < 2:
            raise _bad_filter(f"{key} takes a list of at least 2 filters")
        if not all(wanted):
            raise _bad_filter(f"{key} holds an empty filter")
        parts = [_allows(part, metadata, depth + 1) for part in wanted]
        return any(parts) if key == "$or" else all(parts)
    if key.startswith("$"):
        raise _bad_filter(f"unknown operator {key!r}")
    if isinstance(wanted, dict) and any(name.startswith("$") for name in wanted):
        answers = [_operator(op, value, key, metadata) for op, value in wanted.items()]
        return all(answers)
    return key in metadata and equal(metadata[key], wanted)


def _operator(op: str, wanted: Any, key: str, metadata: dict[str, Any]) -> bool:
    stored = metadata.get(key)
    if op == "$eq":
        return key in metadata and equal(stored, wanted)
    if op == "$contains":
        items = wanted if isinstance(wanted, list) else [wanted]
        return isinstance(stored, list) and all(
            any(equal(have, item) for have in stored) for item in items
        )
    raise _bad_filter(f"unknown operator {op!r}")


def _bad_filter(why: str) -> HTTPException:
    return HTTPException(
        500, f"The authorization handler returned a filter that is not valid: {why}"
    )


def validate(filters: Filter | None) -> None:
    """Check a handler's filter before any row is read.

    Raises:
        HTTPException: as `allows`.
    """
    allows(filters, {})


# --- in SQL


# A needle may be megabytes large, and all rows of a search share it.
@lru_cache(maxsize=8)
def _parsed(document: str) -> Any:
    return json_codec.loads(document)


def _sql_contains(document: str | None, needle: str) -> int:
    return int(document is not None and contains(json_codec.loads(document), _parsed(needle)))


def _sql_allows(filters: str, document: str | None) -> int:
    metadata = {} if document is None else json_codec.loads(document)
    return int(_allows(_parsed(filters), metadata, 0))


def _sql_lower(text: str | None) -> str | None:
    return None if text is None else str(text).lower()


def _pausing(function: Callable[[Any, Any], int]) -> Callable[[Any, Any], int]:
    """Return a function that is called for each row of a search, with pauses."""
    pauses = Pauses()

    def call(first: Any, second: Any) -> int:
        pauses.take()
        return function(first, second)

    return call


def register_functions(raw: sqlite3.Connection) -> None:
    """Register the functions of the conditions below on a SQLite connection."""
    raw.create_function("json_has", 2, _pausing(_sql_contains), deterministic=True)
    raw.create_function("filter_allows", 2, _pausing(_sql_allows), deterministic=True)
    # SQLite's own handles ASCII only, Postgres's all letters.
    raw.create_function("lower", 1, _sql_lower, deterministic=True)


class _Has(FunctionElement[bool]):
    """The condition that a document contains a needle."""

    type = Boolean()
    inherit_cache = True


@compiles(_Has)
def _(element: _Has, compiler: Any, **options: Any) -> str:
    column, needle = (compiler.process(each, **options) for each in element.clauses)
    return f"json_has({column}, {needle}) = 1"


@compiles(_Has, "postgresql")
def _(element: _Has, compiler: Any, **options: Any) -> str:
    column, needle = (compiler.process(each, **options) for each in element.clauses)
    return f"{column} @> {needle}"


def has(column: ColumnElement[Any], needle: Any) -> ColumnElement[bool]:
    """Return the condition that a JSON column contains `needle`, a dict or a parameter.

    A dict that a request brings is checked by `searchable` first.
    """
    return _Has(column, _parameter(needle))


def permits(filters: Any, column: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return the condition that a filter, a dict or a parameter, admits a row's metadata."""
    return func.filter_allows(_parameter(filters), column) == 1


def _parameter(value: Any) -> ColumnElement[Any]:
    if isinstance(value, Mapping):
        return bindparam(None, dict(value), type_=Json, unique=True)
    return value  # type: ignore[no-any-return]
