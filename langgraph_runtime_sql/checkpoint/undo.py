"""Undo: record and revert a run's writes onto the checkpoints of other runs.

A run's first writes (its input to delta channels, the answer to an interrupt, the results of
pending tasks) go onto the checkpoint it started from, which stays when the run is rolled back.
Without an undo the next run would use these writes, and ignore its own under the same keys.
"""

from collections.abc import Sequence
from typing import Any

from langgraph.checkpoint.base import WRITES_IDX_MAP
from sqlalchemy import Boolean, Integer, and_, bindparam, func, literal, or_, select

from langgraph_runtime_sql.checkpoint import rows
from langgraph_runtime_sql.checkpoint.rows import Place
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import run_writes, thread_checkpoints, thread_writes
from langgraph_runtime_sql.database.statements import InsertNew, Prepared

_r, _w, _c = run_writes.c, thread_writes.c, thread_checkpoints.c
_KEY = "thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx"
_REST = "task_path", "channel", "type", "value"


def _param(column: Any, name: str) -> Any:
    return bindparam(name, type_=column.type)


_MINE = {
    "run_id": _param(_r.run_id, "run"),
    "thread_id": _param(_w.thread_id, "thread"),
    "checkpoint_ns": _param(_w.checkpoint_ns, "ns"),
    "checkpoint_id": _param(_w.checkpoint_id, "id"),
    "task_id": _param(_w.task_id, "task"),
    "idx": bindparam("index", type_=Integer),
}
_is_foreign = (*rows.AT_PLACE, func.coalesce(_c.run_id, literal(b"")) != _param(_c.run_id, "run"))
_FOREIGN = Prepared(select(literal(1).label("one")).where(*_is_foreign))


def _recording() -> Any:
    one = select(literal(1).label("one")).subquery("one")
    same = and_(*(_w[name] == _MINE[name] for name in _KEY))
    before = (
        select(*_MINE.values(), *(_w[name] for name in _REST))
        .select_from(one.outerjoin(thread_writes, same))
        .where(
            or_(bindparam("replaces", type_=Boolean), _w.task_id.is_(None)),
            select(literal(1)).where(*_is_foreign).exists(),
        )
    )
    return InsertNew(run_writes).from_select([*_MINE, *_REST], before)


_RECORD = Prepared(_recording)
_of_run = _r.run_id == bindparam("run")
_at = (
    _r.thread_id == bindparam("thread"),
    _r.checkpoint_ns == bindparam("ns"),
    _r.checkpoint_id == bindparam("id"),
)
_PLACES = Prepared(
    select(_r.thread_id, _r.checkpoint_ns, _r.checkpoint_id).where(_of_run).distinct()
)
_recorded = (
    select(literal(1))
    .where(_of_run, *(_r[name] == _w[name] for name in _KEY))
    .correlate(thread_writes)
    .exists()
)
_REMOVE = Prepared(thread_writes.delete().where(*rows.ONTO_PLACE, _recorded))
_RESTORE = Prepared(
    thread_writes.insert().from_select(
        [*_KEY, *_REST],
        select(*(_r[name] for name in (*_KEY, *_REST))).where(
            _of_run, *_at, _r.channel.is_not(None)
        ),
    )
)
_FORGET_RUN = Prepared(run_writes.delete().where(_of_run, *_at))
_FORGET = Prepared(run_writes.delete().where(*_at))
_FORGET_THREAD = Prepared(run_writes.delete().where(_r.thread_id == bindparam("thread")))


def record(
    conn: Connection, run_id: str, place: Place, channels: Sequence[str], task_id: str
) -> None:
    """Record what the following writes will change, if the checkpoint is another run's.

    Args:
        conn: The connection.
        run_id: The writing run.
        place: The checkpoint.
        channels: The channels of the writes, in their order.
        task_id: The writing task.
    """
    mine = {**rows.place_params(place), "run": run_id}
    # On Postgres a query costs a round trip, so `_RECORD` itself checks this.
    if not conn.locks and conn.fetchone(_FOREIGN, mine) is None:
        return
    # As in langgraph's savers: writes to special channels replace earlier ones, others do not.
    replaces = all(channel in WRITES_IDX_MAP for channel in channels)
    conn.executemany(
        _RECORD,
        [
            {
                **mine,
                "task": task_id,
                "index": WRITES_IDX_MAP.get(channel, index),
                "replaces": replaces,
            }
            for index, channel in enumerate(channels)
        ],
    )


def places(conn: Connection, run_id: str) -> list[Place]:
    """Return the checkpoints of other runs that a run wrote onto."""
    found = conn.fetchall(_PLACES, {"run": run_id})
    return [(each["thread_id"], each["checkpoint_ns"], each["checkpoint_id"]) for each in found]


def revert(conn: Connection, run_id: str, place: Place) -> None:
    """Restore the writes at `place` to their state before the run."""
    mine = {**rows.place_params(place), "run": run_id}
    for statement in (_REMOVE, _RESTORE, _FORGET_RUN):
        conn.send(statement, mine)


def forget(conn: Connection, place: Place) -> None:
    """Delete the records of a checkpoint that is deleted."""
    conn.send(_FORGET, rows.place_params(place))


def forget_thread(conn: Connection, thread_id: str) -> None:
    """Delete the records of a thread whose checkpoints are deleted."""
    conn.send(_FORGET_THREAD, {"thread": thread_id})
