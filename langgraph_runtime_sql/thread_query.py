"""Thread queries: the statement that finds the threads of a search without reading the others.

A search starts from its rarest label if few threads carry it: those are
intersected with its other labels inside the label index, and only the page
that is wanted is read. Where every label is common, so are the matches, and
walking the order that is asked for meets a page of them soon.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from sqlalchemy import Boolean, ColumnElement, Select, bindparam, func, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from langgraph_runtime_sql import filters, json_codec
from langgraph_runtime_sql import labels as labelling
from langgraph_runtime_sql.connection import Connection
from langgraph_runtime_sql.filters import Filter
from langgraph_runtime_sql.labels import Label
from langgraph_runtime_sql.statements import Prepared
from langgraph_runtime_sql.tables import Json, thread_labels, threads

# A label that fewer threads than this carry is worth starting from.
SPARSE = 10_000
# More than anybody needs to find few threads; each costs a look-up and a join.
MOST_LABELS = 12
SORTABLE = ("thread_id", "created_at", "updated_at", "state_updated_at", "status")

_some = (
    select(thread_labels.c.thread_id)
    .where(thread_labels.c.key == bindparam("key"), thread_labels.c.value == bindparam("value"))
    .limit(SPARSE)
)
_RARITY = Prepared(select(func.count().label("n")).select_from(_some.subquery()))
_of_tenant = _some.where(thread_labels.c.tenant == bindparam("tenant"))
_RARITY_IN_TENANT = Prepared(select(func.count().label("n")).select_from(_of_tenant.subquery()))


@dataclass(frozen=True)
class Shape:
    """Everything about a query that is not a value: queries of one shape share a statement."""

    labels: int
    sparse: bool
    odd: bool
    rest: bool
    values: bool = False
    status: bool = False
    ids: bool = False
    without: int = 0
    in_tenant: bool = False
    sort_by: str = "updated_at"
    ascending: bool = False


@dataclass(frozen=True)
class ThreadQuery:
    """A search: its shape, and its values as the statement's parameters."""

    shape: Shape
    parameters: dict[str, Any]

    def also(
        self,
        *,
        values: Mapping[str, Any] | None = None,
        status: str | None = None,
        ids: list[Any] | None = None,
    ) -> "ThreadQuery":
        """The same within threads of these values, this status and these ids."""
        shape = replace(self.shape, values=bool(values), status=bool(status), ids=bool(ids))
        parameters = dict(self.parameters)
        parameters |= {"values": dict(values)} if values else {}
        parameters |= {"status": status} if status else {}
        parameters |= {"ids": [str(each) for each in ids]} if ids else {}
        return ThreadQuery(shape, parameters)

    def without(self, metadata: Mapping[str, Any]) -> "ThreadQuery":
        """The same but for threads that carry any of these entries.

        Raises:
            ValueError: an entry is not a short scalar, which is all that labels hold.
        """
        wanted, odd = labelling.split(json_codec.plain(dict(metadata)))
        if odd:
            raise ValueError(f"Threads can only be left out by short scalars, not by {odd!r}")
        parameters = dict(self.parameters)
        for number, (key, value) in enumerate(sorted(wanted)):
            parameters |= {f"nokey{number}": key, f"novalue{number}": value}
        return ThreadQuery(replace(self.shape, without=len(wanted)), parameters)

    def sorted_by(self, column: str | None, *, ascending: bool) -> "ThreadQuery":
        """The same in the order of a column of `SORTABLE`; last updated first by default."""
        sort_by = column if column in SORTABLE else "updated_at"
        return replace(self, shape=replace(self.shape, sort_by=sort_by, ascending=ascending))

    def page(self) -> Prepared:
        """The statement for a page of rows; it takes `parameters`, `most` and `start`."""
        return _page(self.shape)

    def ids(self, conn: Connection) -> list[Any]:
        """The ids of all threads that match."""
        return [row["thread_id"] for row in conn.fetchall(_ids(self.shape), self.parameters)]

    def count(self) -> Prepared:
        """The statement for their number."""
        return _count(self.shape)


def plan(
    conn: Connection, metadata: Mapping[str, Any] | None, permitted: Filter | None
) -> ThreadQuery:
    """The query for threads that contain `metadata`, within a handler's filter."""
    needle, asked = json_codec.plain(dict(metadata or {})), json_codec.plain(dict(permitted or {}))
    wanted, odd = labelling.split(needle)
    plain, rest = _plain_part(asked)
    more, odd_plain = labelling.split(plain)
    rest |= odd_plain
    indexed = sorted(wanted | more)
    if len(indexed) > MOST_LABELS:
        # Some find the candidates; the rows themselves answer for all the rest.
        indexed, odd, rest = indexed[:MOST_LABELS], needle, asked
    found = _by_rarity(conn, indexed)
    shape = Shape(
        labels=len(found),
        sparse=bool(found) and found[0][0] < SPARSE,
        odd=bool(odd),
        rest=bool(rest),
        in_tenant=conn.tenant is not None,
    )
    parameters: dict[str, Any] = {} if conn.tenant is None else {"tenant": conn.tenant}
    for number, (_, (key, value)) in enumerate(found):
        parameters |= {f"key{number}": key, f"value{number}": value}
    parameters |= {"needle": odd} if odd else {}
    parameters |= {"permitted": rest} if rest else {}
    return ThreadQuery(shape, parameters)


def _plain_part(permitted: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A handler's filter as plain equalities, which labels can answer, and the rest."""
    plain: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for key, wanted in permitted.items():
        value = wanted["$eq"] if isinstance(wanted, dict) and set(wanted) == {"$eq"} else wanted
        if key.startswith("$") or labelling.value_of(value) is None:
            rest[key] = wanted
        else:
            plain[key] = value
    return plain, rest


def _by_rarity(conn: Connection, wanted: list[Label]) -> list[tuple[int, Label]]:
    rarity, whose = _RARITY, {}
    if conn.tenant is not None:
        rarity, whose = _RARITY_IN_TENANT, {"tenant": conn.tenant}
    counted = (
        (int(conn.scalar(rarity, {"key": key, "value": value, **whose})), (key, value))
        for key, value in wanted
    )
    return sorted(counted)


@lru_cache(maxsize=512)
def _page(shape: Shape) -> Prepared:
    order = _order(shape)
    most: Any = bindparam("most")
    start: Any = bindparam("start")
    if not shape.sparse:
        return Prepared(
            _matching(shape, select(threads)).order_by(*order).limit(most).offset(start)
        )
    page = _matching(shape, select(threads.c.thread_id)).order_by(*order).limit(most).offset(start)
    return Prepared(select(threads).where(threads.c.thread_id.in_(page)).order_by(*order))


@lru_cache(maxsize=512)
def _ids(shape: Shape) -> Prepared:
    return Prepared(_matching(shape, select(threads.c.thread_id)))


@lru_cache(maxsize=512)
def _count(shape: Shape) -> Prepared:
    found = _matching(shape, select(threads.c.thread_id)).subquery()
    return Prepared(select(func.count().label("n")).select_from(found))


def _order(shape: Shape) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    column: Any = threads.c[shape.sort_by]
    if shape.sparse or shape.ids:
        # Hide the column from the planner, which would else walk its index
        # through every thread rather than sort the few that match.
        column = func.coalesce(column, None)
    tie = threads.c.thread_id
    return (column.asc(), tie.asc()) if shape.ascending else (column.desc(), tie.desc())


def _matching(shape: Shape, statement: Select[Any]) -> Select[Any]:
    """`statement` with the conditions of the shape."""
    found: Any = threads.c.thread_id
    first = 0
    if shape.sparse:
        rarest = thread_labels.alias("l0")
        found, first = rarest.c.thread_id, 1
        statement = statement.join_from(
            rarest, threads, threads.c.thread_id == rarest.c.thread_id
        ).where(*_carries(rarest, 0))
        if shape.in_tenant:
            # Of this one alone, so that Postgres takes it for the rarest, too, and starts there.
            statement = statement.where(rarest.c.tenant == bindparam("tenant"))
    for number in range(first, shape.labels):
        label = thread_labels.alias(f"l{number}")
        carried = select(label.c.thread_id).where(
            *_carries(label, number), label.c.thread_id == found
        )
        statement = statement.where(carried.exists())
    for number in range(shape.without):
        label = thread_labels.alias(f"n{number}")
        carried = select(label.c.thread_id).where(
            *_carries(label, number, "no"), label.c.thread_id == found
        )
        statement = statement.where(~carried.exists())
    return statement.where(*_residue(shape))


def _carries(
    label: Any, number: int, prefix: str = ""
) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return (
        label.c.key == bindparam(f"{prefix}key{number}"),
        label.c.value == bindparam(f"{prefix}value{number}"),
    )


def _residue(shape: Shape) -> list[ColumnElement[bool]]:
    """The conditions that only the rows themselves can answer."""
    conditions: list[ColumnElement[bool]] = []
    if shape.ids:
        # One parameter however many there are, so that there is one statement.
        conditions.append(_AmongIds(threads.c.thread_id, bindparam("ids", type_=Json)))
    if shape.status:
        conditions.append(threads.c.status == bindparam("status"))
    if shape.odd:
        conditions.append(filters.has(threads.c.metadata, bindparam("needle", type_=Json)))
    if shape.rest:
        conditions.append(filters.permits(bindparam("permitted", type_=Json), threads.c.metadata))
    if shape.values:
        conditions.append(filters.has(threads.c["values"], bindparam("values", type_=Json)))
    return conditions


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
    # An array, whose members are looked up, and not a join that may read every thread.
    return f"{column} = ANY(ARRAY(SELECT jsonb_array_elements_text({ids})::uuid))"
