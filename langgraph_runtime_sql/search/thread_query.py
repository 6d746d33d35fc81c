"""Thread queries: the statements that find a search's threads without reading the others.

A search starts from its rarest label. Labels are sorted by the period in which their thread was
last updated. Walking through the rarest label in that order, and looking the other labels up, soon
finds a page of matches. Only the matches up to the end of the last period then need exact sorting.

In another order, a search examines all threads of the rarest label if few carry it. If every label
is common, so are the matches, and walking through the requested order soon finds a page.

A search for all matches, or their number, starts from the rarest label too, however common.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from sqlalchemy import Boolean, ColumnElement, Integer, Select, bindparam, func, not_, or_, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import json_codec
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import Json, Sealed, thread_labels, threads
from langgraph_runtime_sql.database.statements import Prepared
from langgraph_runtime_sql.search import filters, metadata_index
from langgraph_runtime_sql.search.filters import Filter
from langgraph_runtime_sql.search.metadata_index import Entry

# A search starts from a label that fewer threads than this carry.
SPARSE = 10_000
# More common labels are counted up to COMMON, to start from the rarest. A count takes some
# milliseconds and is cached for COMMON_SECONDS.
COMMON = 50_000
COMMON_SECONDS = 60.0
MAX_COMMON = 10_000
# Enough to find few threads; each label costs a look-up and a join.
MAX_INDEXED = 12
# Each is a condition of the statement, and is compared with every thread that is left.
MAX_EXCLUDED = 20
SORTABLE = ("thread_id", "created_at", "updated_at", "state_updated_at", "status")

_SEALED = {each.name for each in threads.c if isinstance(each.type, Sealed)}

_some = (
    select(thread_labels.c.thread_id)
    .where(thread_labels.c.key == bindparam("key"), thread_labels.c.value == bindparam("value"))
    .limit(bindparam("limit", type_=Integer))
)
_RARITY = Prepared(select(func.count().label("n")).select_from(_some.subquery()))
# With a tenant: policies would otherwise read the rows of all others to count past them.
_of_tenant = _some.where(thread_labels.c.tenant == bindparam("tenant"))
_RARITY_IN_TENANT = Prepared(select(func.count().label("n")).select_from(_of_tenant.subquery()))


@dataclass(frozen=True)
class Shape:
    """The part of a query without its values: queries of one shape share a statement."""

    labels: int
    sparse: bool
    odd: bool
    rest: bool
    values: bool = False
    # Whether threads whose rows leave out long lists match any values.
    long_values: bool = False
    status: bool = False
    ids: bool = False
    without: int = 0
    excluded: int = 0
    # Whether the database's planner chooses which of two tables to start from.
    weighs: bool = False
    in_tenant: bool = False
    sort_by: str = "updated_at"
    ascending: bool = False
    # The columns of a page; all if empty.
    columns: tuple[str, ...] = ()

    @property
    def in_periods(self) -> bool:
        """Return whether labels are sorted in the requested order."""
        return bool(self.labels) and self.sort_by == "updated_at" and not self.ids


@dataclass(frozen=True)
class ThreadQuery:
    """A search: its shape, and the parameters of its statement."""

    shape: Shape
    parameters: dict[str, Any]

    def also(
        self,
        *,
        values: Mapping[str, Any] | None = None,
        is_exact: bool = True,
        status: str | None = None,
        ids: list[Any] | None = None,
    ) -> "ThreadQuery":
        """Restrict the query to threads of these values, this status and these ids.

        Args:
            values: What the values contain.
            is_exact: Whether rows must contain all of them. Otherwise threads whose rows leave out
                long lists match, too.
            status: The status.
            ids: The ids.
        """
        wanted = filters.searchable(values or {})
        shape = replace(
            self.shape,
            values=bool(wanted),
            long_values=bool(wanted) and not is_exact,
            status=bool(status),
            ids=bool(ids),
        )
        parameters = dict(self.parameters)
        parameters |= {"values": wanted} if wanted else {}
        parameters |= {"status": status} if status else {}
        parameters |= {"ids": [str(each) for each in ids]} if ids else {}
        return ThreadQuery(shape, parameters)

    def without(self, metadata: Mapping[str, Any]) -> "ThreadQuery":
        """Exclude threads that carry any of these entries.

        Raises:
            ValueError: an entry is not a short scalar, the only kind that labels hold.
        """
        wanted, odd = metadata_index.split(json_codec.plain(dict(metadata)))
        if odd:
            raise ValueError(f"Threads can only be excluded by short scalars, not by {odd!r}")
        parameters = dict(self.parameters)
        for number, (key, value) in enumerate(sorted(wanted)):
            parameters |= {f"nokey{number}": key, f"novalue{number}": value}
        return ThreadQuery(replace(self.shape, without=len(wanted)), parameters)

    def excluding(self, documents: Sequence[Mapping[str, Any]]) -> "ThreadQuery":
        """Exclude threads whose metadata contains any of these documents.

        Raises:
            HTTPException: (422) there are too many, or one holds too many values in arrays.
        """
        if len(documents) > MAX_EXCLUDED:
            raise HTTPException(422, f"Exclude at most {MAX_EXCLUDED} documents of metadata")
        parameters = dict(self.parameters)
        for number, document in enumerate(documents):
            # Unlike others, an empty one excludes every thread.
            parameters |= {f"excluded{number}": filters.searchable(document)}
        return ThreadQuery(replace(self.shape, excluded=len(documents)), parameters)

    def sorted_by(self, column: str | None, *, ascending: bool) -> "ThreadQuery":
        """Sort by a column of `SORTABLE`; by default by `updated_at`."""
        sort_by = column if column in SORTABLE else "updated_at"
        return replace(self, shape=replace(self.shape, sort_by=sort_by, ascending=ascending))

    def only(self, columns: Iterable[str]) -> "ThreadQuery":
        """Read only these columns of a page, and what decrypts them. Other names are ignored.

        On SQLite a large column also costs time if only a later one is read.
        """
        names = set(columns) - {"long_values"}
        if "values" in names:
            names.add("long_values")
        if names & _SEALED:
            names |= {"thread_id", "tenant"}
        found = tuple(each.name for each in threads.c if each.name in names)
        return replace(self, shape=replace(self.shape, columns=found or ("thread_id",)))

    def page(self) -> Prepared:
        """Return the statement for a page; it takes `parameters`, `limit` and `start`."""
        return _page(self.shape)

    def ids(self, conn: Connection) -> list[Any]:
        """Return the ids of all threads that match."""
        return [row["thread_id"] for row in conn.fetchall(_ids(self.shape), self.parameters)]

    def count(self) -> Prepared:
        """Return the statement for the number of threads that match."""
        return _count(self.shape)


def plan(
    conn: Connection, metadata: Mapping[str, Any] | None, permitted: Filter | None
) -> ThreadQuery:
    """Return the query for threads that contain `metadata`, within a handler's filter."""
    needle, asked = filters.searchable(metadata or {}), json_codec.plain(dict(permitted or {}))
    wanted, odd = metadata_index.split(needle)
    plain, rest = _plain_part(asked)
    more, odd_plain = metadata_index.split(plain)
    rest |= odd_plain
    indexed = sorted(wanted | more)
    if len(indexed) > MAX_INDEXED:
        # Some labels find the candidates; the documents are compared with the whole conditions.
        indexed, odd, rest = indexed[:MAX_INDEXED], needle, asked
    found = _by_rarity(conn, indexed)
    shape = Shape(
        labels=len(found),
        sparse=bool(found) and found[0][0] < SPARSE,
        odd=bool(odd),
        rest=bool(rest),
        weighs=conn.dialect_name == "postgresql",
        in_tenant=conn.tenant is not None,
    )
    parameters: dict[str, Any] = {} if conn.tenant is None else {"tenant": conn.tenant}
    for number, (_, (key, value)) in enumerate(found):
        parameters |= {f"key{number}": key, f"value{number}": value}
    parameters |= {"needle": odd} if odd else {}
    parameters |= {"permitted": rest} if rest else {}
    return ThreadQuery(shape, parameters)


def _plain_part(permitted: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split a handler's filter into plain equalities, which labels answer, and the rest."""
    plain: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for key, wanted in permitted.items():
        value = wanted["$eq"] if isinstance(wanted, dict) and set(wanted) == {"$eq"} else wanted
        if key.startswith("$") or metadata_index.value_of(value) is None:
            rest[key] = wanted
        else:
            plain[key] = value
    return plain, rest


# The counts of common labels and when they expire. A stale count only costs time.
_common: dict[tuple[str | None, Entry], tuple[float, int]] = {}


def _by_rarity(conn: Connection, wanted: list[Entry]) -> list[tuple[int, Entry]]:
    return sorted((_count_of(conn, label), label) for label in wanted)


def _count_of(conn: Connection, label: Entry) -> int:
    """Return how many threads carry a label, at most `COMMON`."""
    now = time.monotonic()
    until, count = _common.get((conn.tenant, label), (0.0, 0))
    if until > now:
        return count
    rarity, about = _RARITY, {"key": label[0], "value": label[1]}
    if conn.tenant is not None:
        rarity, about = _RARITY_IN_TENANT, {**about, "tenant": conn.tenant}
    count = int(conn.scalar(rarity, {**about, "limit": SPARSE}))
    if count >= SPARSE:
        count = int(conn.scalar(rarity, {**about, "limit": COMMON}))
        if len(_common) > MAX_COMMON:
            _common.clear()
        _common[conn.tenant, label] = now + COMMON_SECONDS, count
    return count


@lru_cache(maxsize=512)
def _page(shape: Shape) -> Prepared:
    order = _order(shape)
    limit, start = bindparam("limit", type_=Integer), bindparam("start", type_=Integer)
    if shape.in_periods:
        page = _recent(shape, limit + start).order_by(*order).limit(limit).offset(start)
    elif shape.sparse:
        page = _matching(shape, select(threads.c.thread_id), _rarest())
        page = page.order_by(*order).limit(limit).offset(start)
    else:
        page = _matching(shape, _columns(shape)).order_by(*order).limit(limit).offset(start)
        return Prepared(page)
    return Prepared(_columns(shape).where(threads.c.thread_id.in_(page)).order_by(*order))


def _columns(shape: Shape) -> Select[Any]:
    return (
        select(*(threads.c[name] for name in shape.columns)) if shape.columns else select(threads)
    )


def _recent(shape: Shape, count: Any) -> Select[Any]:
    """Return the ids of the first `count` matches, and of all others of the last one's period."""
    first, label = _rarest("first"), _rarest()
    period = first.c.period.asc() if shape.ascending else first.c.period.desc()
    periods = _matching(shape, select(first.c.period), first).order_by(period).limit(count)
    found = periods.subquery()
    if shape.ascending:
        near = label.c.period <= select(func.max(found.c.period)).scalar_subquery()
    else:
        near = label.c.period >= select(func.min(found.c.period)).scalar_subquery()
    return _matching(shape, select(threads.c.thread_id), label).where(near)


@lru_cache(maxsize=512)
def _ids(shape: Shape) -> Prepared:
    return Prepared(_candidates(shape))


@lru_cache(maxsize=512)
def _count(shape: Shape) -> Prepared:
    found = _candidates(shape).subquery()
    return Prepared(select(func.count().label("n")).select_from(found))


def _candidates(shape: Shape) -> Select[Any]:
    """Return the ids of all matches."""
    by_label = shape.sparse or (shape.labels and not shape.ids and _is_quick_by_label(shape))
    return _matching(shape, select(threads.c.thread_id), _rarest() if by_label else None)


def _is_quick_by_label(shape: Shape) -> bool:
    """Return whether walking through a common label finds all its threads fastest.

    Without other conditions nothing else is read. With some, Postgres starts from them if they
    leave fewer threads; SQLite does not.
    """
    return shape.weighs or not _residue(shape)


def _rarest(name: str = "l0") -> Any:
    return thread_labels.alias(name)


def _order(shape: Shape) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    column: Any = threads.c[shape.sort_by]
    if shape.sparse or shape.ids or shape.in_periods:
        # Hides the column from the planner, which would otherwise walk its index through every
        # thread, and not sort the few matches.
        column = func.coalesce(column, None)
    tie = threads.c.thread_id
    return (column.asc(), tie.asc()) if shape.ascending else (column.desc(), tie.desc())


def _matching(shape: Shape, statement: Select[Any], rarest: Any = None) -> Select[Any]:
    """Add the shape's conditions to `statement`, from the threads of `rarest` or from all."""
    residue, found = _residue(shape), threads.c.thread_id
    if rarest is not None:
        found = rarest.c.thread_id
        statement = statement.where(*_carries(rarest))
        if shape.in_tenant:
            statement = statement.where(rarest.c.tenant == bindparam("tenant"))
        if residue or threads in statement.get_final_froms():
            statement = statement.join_from(rarest, threads, threads.c.thread_id == found)
    for number in range(0 if rarest is None else 1, shape.labels):
        statement = statement.where(_value(found, f"key{number}") == bindparam(f"value{number}"))
    for number in range(shape.without):
        value = _value(found, f"nokey{number}")
        statement = statement.where(value.is_distinct_from(bindparam(f"novalue{number}")))
    return statement.where(*residue)


def _value(thread_id: Any, key: str) -> ColumnElement[Any]:
    """Return the value of a thread's label of a key, as a look-up for each thread.

    Postgres would turn a condition into a join: it assumes that labels are independent, and would
    read whole labels to save a few look-ups.
    """
    label = thread_labels.alias(key)
    wanted = select(label.c.value).where(
        label.c.thread_id == thread_id, label.c.key == bindparam(key)
    )
    return wanted.scalar_subquery()


def _carries(label: Any) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Return the conditions that a row of labels is of the rarest label."""
    return label.c.key == bindparam("key0"), label.c.value == bindparam("value0")


def _residue(shape: Shape) -> list[ColumnElement[bool]]:
    """Return the conditions that labels cannot answer."""
    conditions: list[ColumnElement[bool]] = []
    if shape.ids:
        # One parameter for any number of ids, so that there is one statement.
        conditions.append(_AmongIds(threads.c.thread_id, bindparam("ids", type_=Json)))
    if shape.status:
        conditions.append(threads.c.status == bindparam("status"))
    if shape.odd:
        conditions.append(_has(threads.c.metadata, "needle"))
    if shape.rest:
        conditions.append(filters.permits(bindparam("permitted", type_=Json), threads.c.metadata))
    for number in range(shape.excluded):
        conditions.append(not_(_has(threads.c.metadata, f"excluded{number}")))
    if shape.values:
        contains = _has(threads.c["values"], "values")
        left_out = threads.c.long_values.is_not(None)
        conditions.append(or_(contains, left_out) if shape.long_values else contains)
    return conditions


def _has(column: Any, needle: str) -> ColumnElement[bool]:
    """Return the condition that a document contains the parameter `needle`."""
    return filters.has(column, bindparam(needle, type_=Json))


class _AmongIds(FunctionElement[bool]):
    """The condition that an id is in a JSON array of ids."""

    type = Boolean()
    inherit_cache = True


@compiles(_AmongIds)
def _(element: _AmongIds, compiler: Any, **options: Any) -> str:
    column, ids = (compiler.process(each, **options) for each in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({ids}))"


@compiles(_AmongIds, "postgresql")
def _(element: _AmongIds, compiler: Any, **options: Any) -> str:
    column, ids = (compiler.process(each, **options) for each in element.clauses)
    # An array, not a join, which might read every thread.
    return f"{column} = ANY(ARRAY(SELECT jsonb_array_elements_text({ids})::uuid))"
