"""Rows: the statements on the tables of checkpoints."""

from functools import cache
from typing import Any

from sqlalchemy import Integer, and_, bindparam, or_, select
from sqlalchemy.sql import ColumnElement

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import thread_checkpoints, thread_writes
from langgraph_runtime_sql.database.statements import InsertNew, Prepared, Row, Upsert

# Patches that a read follows: more than a chain can have.
LONGEST = 1024
# Checkpoints that a list reads at a time.
PAGE = 50
Place = tuple[str, str, str]
"""Thread, namespace and id of a checkpoint."""

_c, _w = thread_checkpoints.c, thread_writes.c
IN_NAMESPACE = (
    _c.thread_id == bindparam("thread"),
    _c.checkpoint_ns == bindparam("ns"),
)
AT_PLACE = (*IN_NAMESPACE, _c.checkpoint_id == bindparam("id"))
_onto_namespace = (
    _w.thread_id == bindparam("thread"),
    _w.checkpoint_ns == bindparam("ns"),
)
ONTO_PLACE = (*_onto_namespace, _w.checkpoint_id == bindparam("id"))

_other = thread_checkpoints.alias("other")
_in_namespace = (
    _other.c.thread_id == bindparam("thread"),
    _other.c.checkpoint_ns == bindparam("ns"),
)
_NEWEST = (
    select(_other.c.checkpoint_id)
    .where(*_in_namespace)
    .order_by(_other.c.checkpoint_id.desc())
    .limit(1)
    .scalar_subquery()
)
NEWEST = Prepared(select(_NEWEST.label("id")))


# What a read needs.
_READ = "checkpoint_id", "parent_id", "position", "base_id", "size", "type", "value"


def _row(at: ColumnElement[str]) -> Prepared:
    columns = (_c[name] for name in _READ)
    return Prepared(select(*columns).where(*IN_NAMESPACE, _c.checkpoint_id == at))


ROW, NEWEST_ROW = _row(bindparam("id")), _row(_NEWEST)


def _walk(at: ColumnElement[str], link: str, most: int) -> Prepared:
    """Return the query for a checkpoint and those before it, in any order.

    Args:
        at: The checkpoint.
        link: The column that names the one before.
        most: How many to follow.
    """
    walk = (
        select(*(_c[name] for name in _READ))
        .where(*IN_NAMESPACE, _c.checkpoint_id == at)
        .cte("walk", recursive=True)
    )
    before = select(*(_other.c[name] for name in _READ)).where(
        *_in_namespace, _other.c.checkpoint_id == walk.c[link]
    )
    # A damaged chain may be a loop.
    return Prepared(select(walk.union_all(before)).limit(most))


def _writes(at: ColumnElement[str]) -> Prepared:
    columns = _w.task_path, _w.task_id, _w.idx, _w.channel, _w.type, _w.value
    return Prepared(select(*columns).where(*_onto_namespace, _w.checkpoint_id == at))


# All that a checkpoint's value is a patch against.
CHAIN = _walk(bindparam("id"), "base_id", LONGEST)
ANCESTORS = _walk(bindparam("id"), "parent_id", PAGE)
WRITES, WRITES_ONTO_NEWEST = _writes(bindparam("id")), _writes(_NEWEST)

_listed = ("checkpoint_ns", "checkpoint_id", "parent_id", "position", "base_id", "size")
_LISTED = select(*(_c[name] for name in (*_listed, "run_id", "type", "value"))).where(
    _c.thread_id == bindparam("thread")
)
AT_ID = Prepared(_LISTED.where(_c.checkpoint_id == bindparam("id")))
# The order of a list: the newest first, of all namespaces.
_is_after = or_(
    _c.checkpoint_id < bindparam("id"),
    and_(_c.checkpoint_id == bindparam("id"), _c.checkpoint_ns > bindparam("after")),
)


@cache
def listing(*, in_namespace: bool, before: bool, continued: bool, of_run: bool) -> Prepared:
    """Return the query for the next page of a thread's checkpoints, the newest first.

    Args:
        in_namespace: Only those of the namespace `ns`.
        before: Only those before the id `before`.
        continued: Only those after `id` and `after`, the id and namespace of the page before.
        of_run: Only those of the run `run`.
    """
    query = _LISTED.order_by(_c.checkpoint_id.desc(), _c.checkpoint_ns)
    if in_namespace:
        query = query.where(_c.checkpoint_ns == bindparam("ns"))
    if before:
        query = query.where(_c.checkpoint_id < bindparam("before"))
    if continued:
        query = query.where(_is_after)
    if of_run:
        query = query.where(_c.run_id == bindparam("run"))
    return Prepared(query.limit(bindparam("count", type_=Integer)))


# A base that is deleted meanwhile is not found, and then the table refuses the patch.
_base = (
    select(_other.c.checkpoint_id)
    .where(*_in_namespace, _other.c.checkpoint_id == bindparam("base"))
    .with_for_update(read=True, key_share=True)
    .scalar_subquery()
)
ADD = Prepared(
    thread_checkpoints.insert().values(
        {each.name: bindparam(each.name) for each in _c} | {"base_id": _base}
    )
)
PATCH_ANEW = Prepared(
    thread_checkpoints.update()
    .where(*AT_PLACE)
    .values(base_id=_base, type=bindparam("new_type"), value=bindparam("new_value"))
)
DELETE = Prepared(thread_checkpoints.delete().where(*AT_PLACE))

_write: dict[str, ColumnElement[Any]] = {each.name: bindparam(each.name) for each in _w}
ADD_WRITE = Prepared(InsertNew(thread_writes).values(_write))
REPLACE_WRITE = Prepared(Upsert(thread_writes).values(_write))


def ordered(writes: list[Row]) -> list[Row]:
    """Return writes in the order in which a run applies them."""
    return sorted(writes, key=lambda each: (each["task_path"], each["task_id"], each["idx"]))


def place_params(place: Place) -> dict[str, str]:
    """Return the parameters of a statement about one checkpoint."""
    return {"thread": place[0], "ns": place[1], "id": place[2]}


def add(conn: Connection, row: Row, base: str | None) -> None:
    """Store a new checkpoint; on Postgres the outcome arrives with the commit.

    Args:
        conn: A transaction that writes.
        row: Its columns without the base.
        base: The checkpoint that the value is a patch against.

    Raises:
        IntegrityError: (the driver's) there is one with this id, or the base is gone.
    """
    place = {"thread": row["thread_id"], "ns": row["checkpoint_ns"], "base": base}
    conn.send(ADD, {**row, **place})
