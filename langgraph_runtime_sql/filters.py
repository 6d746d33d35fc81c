"""Filters: what a metadata search and an authorization handler ask, as SQL.

Two languages meet here. A search's `metadata` and `values` are containment:
every key given must be there, dicts recursively, the rest by equality. A
handler's filter is the SDK's: `{key: value}`, `$eq`, `$contains`, `$and`,
`$or`. Neither ever reaches SQL as text: keys and values travel as parameters,
and what an index cannot answer a registered function does.
"""

import sqlite3
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, func, select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import json_codec
from langgraph_runtime_sql.connection import Connection
from langgraph_runtime_sql.statements import Prepared
from langgraph_runtime_sql.tables import Json, thread_labels, threads

Filter = Mapping[str, Any]

# Longer values are found by looking at the document, not by a label.
LABEL_LENGTH = 200
# A label that fewer threads than this carry is worth starting a search from.
SPARSE = 3000
MAX_DEPTH = 2


def contains(document: Any, needle: Any) -> bool:
    """Whether `document` has everything that `needle` has."""
    if isinstance(needle, dict):
        return isinstance(document, dict) and all(
            key in document and contains(document[key], value) for key, value in needle.items()
        )
    return equal(document, needle)


def equal(left: Any, right: Any) -> bool:
    """JSON equality: numbers by value, and true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    return bool(left == right)


def allows(filters: Filter | None, metadata: Any) -> bool:
    """Whether a handler's filter admits a row with this metadata.

    Raises:
        HTTPException: (500) the handler returned a filter with an unknown
            operator or nested too deeply; nothing is admitted then.
    """
    return True if not filters else _allows(json_codec.plain(filters), metadata or {}, 0)


def _allows(filters: Any, metadata: dict[str, Any], depth: int) -> bool:
    if not isinstance(filters, dict):
        raise _bad_filter(f"expected an object, got {type(filters).__name__}")
    if depth > MAX_DEPTH:
        raise _bad_filter(f"nested deeper than {MAX_DEPTH}")
    # Every part is looked at, so that a bad one is refused whatever the others say.
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
    """Refuse a handler's filter that `allows` would refuse, before any row is read."""
    allows(filters, {})


# --- in SQL -----------------------------------------------------------------


@lru_cache(maxsize=1024)
def _parsed(document: str) -> Any:
    return json_codec.loads(document)


def _sql_contains(document: str | None, needle: str) -> int:
    return int(document is not None and contains(json_codec.loads(document), _parsed(needle)))


def _sql_allows(filters: str, document: str | None) -> int:
    metadata = {} if document is None else json_codec.loads(document)
    return int(_allows(_parsed(filters), metadata, 0))


def _sql_lower(text: str | None) -> str | None:
    return None if text is None else str(text).lower()


def register_functions(raw: sqlite3.Connection) -> None:
    """Give a SQLite connection the functions that the conditions below call."""
    raw.create_function("json_has", 2, _sql_contains, deterministic=True)
    raw.create_function("filter_allows", 2, _sql_allows, deterministic=True)
    # SQLite's own knows ASCII only; Postgres's knows every letter.
    raw.create_function("lower", 1, _sql_lower, deterministic=True)


def has(column: ColumnElement[Any], needle: Mapping[str, Any]) -> ColumnElement[bool]:
    """The condition that a JSON column contains `needle`."""
    return func.json_has(column, bindparam(None, needle, type_=Json, unique=True)) == 1


def permits(filters: Filter, column: ColumnElement[Any]) -> ColumnElement[bool]:
    """The condition that a handler's filter admits a row's metadata column."""
    return func.filter_allows(bindparam(None, dict(filters), type_=Json, unique=True), column) == 1


# --- labels -----------------------------------------------------------------

Label = tuple[str, str]


def label_value(value: Any) -> str | None:
    """The text under which a scalar is labelled; None for what has no label."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is not None and not isinstance(value, str | int | float | bool):
        return None
    text = json_codec.dumps(value)
    return text if len(text) <= LABEL_LENGTH else None


def labels(metadata: Mapping[str, Any]) -> set[Label]:
    """The labels of a thread with this metadata."""
    found = ((key, label_value(value)) for key, value in metadata.items())
    return {(key, value) for key, value in found if value is not None and len(key) <= LABEL_LENGTH}


_ADD = Prepared(
    thread_labels.insert().values(
        key=bindparam("key"), value=bindparam("value"), thread_id=bindparam("thread_id")
    )
)
_REMOVE = Prepared(
    thread_labels.delete().where(
        thread_labels.c.key == bindparam("key"),
        thread_labels.c.value == bindparam("value"),
        thread_labels.c.thread_id == bindparam("thread_id"),
    )
)


def relabel(
    conn: Connection, thread_id: Any, old: Mapping[str, Any], new: Mapping[str, Any]
) -> None:
    """Bring a thread's labels from its old metadata to its new."""
    before, after = labels(old), labels(new)
    for statement, changed in ((_REMOVE, before - after), (_ADD, after - before)):
        conn.executemany(
            statement,
            [{"key": key, "value": value, "thread_id": thread_id} for key, value in changed],
        )


def _split(needle: Mapping[str, Any]) -> tuple[list[Label], dict[str, Any]]:
    """What labels can answer, and the rest."""
    indexed = labels(needle)
    known = {key for key, _ in indexed}
    return sorted(indexed), {key: value for key, value in needle.items() if key not in known}


def _plain_part(filters: Filter) -> tuple[dict[str, Any], dict[str, Any]]:
    """A handler's filter as plain equalities, which labels can answer, and the rest."""
    plain: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for key, wanted in filters.items():
        if isinstance(wanted, dict) and set(wanted) == {"$eq"}:
            wanted = wanted["$eq"]
        simple = not key.startswith("$") and label_value(wanted) is not None
        (plain if simple else rest)[key] = wanted if simple else filters[key]
    return plain, rest


_RARITY = Prepared(
    select(func.count().label("n")).select_from(
        select(thread_labels.c.thread_id)
        .where(thread_labels.c.key == bindparam("key"), thread_labels.c.value == bindparam("value"))
        .limit(SPARSE)
        .subquery()
    )
)


def thread_conditions(
    conn: Connection, metadata: Mapping[str, Any] | None, filters: Filter | None
) -> tuple[list[ColumnElement[bool]], bool]:
    """Conditions on `threads` for a metadata search within a handler's filter.

    Returns:
        The conditions, and whether they start from few rows: then sorting those
        is cheaper than walking an index in the order asked for.
    """
    wanted, odd = _split(json_codec.plain(metadata or {}))
    plain, rest = _plain_part(json_codec.plain(filters or {}))
    more, odd_plain = _split(plain)
    conditions: list[ColumnElement[bool]] = []
    if odd:
        conditions.append(has(threads.c.metadata, odd))
    if rest or odd_plain:
        conditions.append(permits({**rest, **odd_plain}, threads.c.metadata))
    found = sorted(
        (int(conn.scalar(_RARITY, {"key": key, "value": value})), key, value)
        for key, value in {*wanted, *more}
    )
    if not found:
        return conditions, False
    sparse = found[0][0] < SPARSE
    if sparse:
        _, key, value = found.pop(0)
        conditions.insert(0, threads.c.thread_id.in_(_carriers(key, value)))
    for _, key, value in found:
        label = thread_labels.alias()
        conditions.append(
            select(label.c.thread_id)
            .where(
                label.c.key == key, label.c.value == value, label.c.thread_id == threads.c.thread_id
            )
            .exists()
        )
    return conditions, sparse


def _carriers(key: str, value: str) -> Any:
    return select(thread_labels.c.thread_id).where(
        and_(thread_labels.c.key == key, thread_labels.c.value == value)
    )
