"""Retention: delete old segments of the event log, in small transactions.

The events of runs in flight stay. The newest deleted segment of a thread keeps its row without
events: numbers continue from it, and readers learn that events are missing.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from sqlalchemy import BigInteger, Text, and_, bindparam, cast, func, or_, select

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import (
    PENDING_LITERAL,
    RUNNING_LITERAL,
    event_segments,
    runs,
)
from langgraph_runtime_sql.database.statements import Prepared, Row
from langgraph_runtime_sql.events import dictionaries
from langgraph_runtime_sql.events.log import UNPLACED
from langgraph_runtime_sql.events.usage import usage
from langgraph_runtime_sql.options import Retention

# Segments of one transaction.
BATCH = 100
# Followers in other processes must have read the events of other runs by then.
MIN_SECONDS = 60.0
# A thread is measured again after it has grown by this part of its limit.
GROWTH = 1 / 16

_c = event_segments.c
_FOUND = (_c.thread_id, _c.epoch, _c.first, _c.resumable, _c.size)
_in_flight = select(runs.c.run_id).where(
    runs.c.thread_id == _c.thread_id,
    or_(runs.c.status == PENDING_LITERAL, runs.c.status == RUNNING_LITERAL),
    cast(runs.c.run_id, Text) == _c.run_id,
)
_may_go = and_(_c.events.is_not(None), _c.epoch > UNPLACED, ~_in_flight.exists())
_EXPIRED = Prepared(
    select(*_FOUND)
    .where(_may_go, _c.resumable == bindparam("kind"), _c.created_at < bindparam("before"))
    .order_by(_c.created_at)
    .limit(BATCH)
    # Another process deletes locked rows.
    .with_for_update(skip_locked=True, of=event_segments)
)
_newer = func.sum(_c.size).over(order_by=(_c.epoch.desc(), _c.first.desc()))
_sized = (
    select(_c.thread_id, _c.epoch, _c.first, cast(_newer, BigInteger).label("newer"))
    .where(_c.thread_id == bindparam("thread"))
    .subquery()
)
_OVER = Prepared(
    select(*_FOUND)
    .join(
        _sized,
        and_(
            _sized.c.thread_id == _c.thread_id,
            _sized.c.epoch == _c.epoch,
            _sized.c.first == _c.first,
        ),
    )
    .where(_may_go, _c.thread_id == bindparam("thread"), _sized.c.newer > bindparam("bytes"))
    .order_by(_c.epoch, _c.first)
)
_is_segment = and_(
    _c.thread_id == bindparam("thread"),
    _c.epoch == bindparam("at_epoch"),
    _c.first == bindparam("at_first"),
)
_EMPTY = Prepared(event_segments.update().where(_is_segment).values(events=None, size=0))
_DELETE = Prepared(event_segments.delete().where(_is_segment))
_DELETE_EMPTY = Prepared(
    event_segments.delete().where(
        _c.thread_id == bindparam("thread"),
        _c.resumable == bindparam("kind"),
        _c.events.is_(None),
        _c.epoch <= bindparam("at_epoch"),
        or_(_c.epoch < bindparam("at_epoch"), _c.first < bindparam("at_first")),
    )
)


async def sweep(
    database: Database,
    retention: Retention,
    *,
    ttl_seconds: float,
    now: datetime | None = None,
) -> int:
    """Delete the events that retention does not keep.

    Args:
        database: Where the log is.
        retention: How long events are kept.
        ttl_seconds: How long the events of runs that are not resumable are kept, at least
            `MIN_SECONDS`.
        now: The current time; by default that of the database.

    Returns:
        How many segments were deleted.
    """
    kept = {True: retention.events_seconds, False: max(ttl_seconds, MIN_SECONDS)}
    count = 0
    for kind, seconds in kept.items():
        deleted = BATCH
        while deleted == BATCH:
            deleted = await database.write(partial(_expire, kind, seconds, now))
            count += deleted
    for thread_id in usage.take_grown(max(1, int(retention.events_bytes * GROWTH))):
        values = {"thread": thread_id, "bytes": retention.events_bytes}
        found = await database.read(lambda conn, v=values: conn.fetchall(_OVER, v))  # type: ignore[misc]  # a default
        for start in range(0, len(found), BATCH):
            count += await database.write(partial(_delete, found[start : start + BATCH]))
    return count


def _expire(kind: bool, seconds: float, now: datetime | None, conn: Connection) -> int:
    before = (now or conn.now()) - timedelta(seconds=seconds)
    return _delete(conn.fetchall(_EXPIRED, {"kind": kind, "before": before}), conn)


def _delete(rows: Iterable[Row], conn: Connection) -> int:
    """Delete segments, and keep the row of each thread's newest one of each kind."""
    groups: dict[tuple[UUID, bool], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["thread_id"], bool(row["resumable"])].append(row)
    count = size = 0
    # In order, so that two processes do not wait for each other.
    for (thread_id, kind), group in sorted(groups.items()):
        *older, newest = sorted(group, key=lambda row: (row["epoch"], row["first"]))
        for row in older:
            conn.send(_DELETE, _segment(thread_id, row))
        conn.send(_EMPTY, _segment(thread_id, newest))
        conn.send(_DELETE_EMPTY, {**_segment(thread_id, newest), "kind": kind})
        dictionaries.free(conn, thread_id)
        count += len(group)
        size += sum(row["size"] for row in group)
    if count:
        conn.after_commit(partial(usage.deleted, count, size))
    return count


def _segment(thread_id: UUID, row: Row) -> Row:
    return {"thread": thread_id, "at_epoch": row["epoch"], "at_first": row["first"]}
