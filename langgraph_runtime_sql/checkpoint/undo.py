"""Undo: record and revert a run's writes onto the checkpoints of other runs.

A run's first writes (its input to delta channels, the answer to an interrupt, the results of
pending tasks) go onto the checkpoint it started from, which stays when the run is rolled back.
Without an undo the next run would use these writes, and ignore its own under the same keys.
"""

from collections.abc import Sequence

from langgraph.checkpoint.base import WRITES_IDX_MAP

from langgraph_runtime_sql.checkpoint.sql import run, run_many
from langgraph_runtime_sql.database.connection import Connection

Place = tuple[str, str, str]
"""Thread, namespace and id of a checkpoint."""

# The columns from `task_path` on hold the earlier write; `channel` is NULL if there was none.
TABLE = """
    CREATE TABLE IF NOT EXISTS run_writes (
        run_id TEXT NOT NULL,
        thread_id TEXT NOT NULL,
        checkpoint_ns TEXT NOT NULL,
        checkpoint_id TEXT NOT NULL,
        task_id TEXT NOT NULL,
        idx INTEGER NOT NULL,
        task_path TEXT,
        channel TEXT,
        type TEXT,
        {value} {binary},
        PRIMARY KEY (run_id, thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
    )
"""
"""The table of recorded writes; `binary` is the database's type for bytes."""

_KEY = "thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
_COLUMNS = (
    "thread_id, checkpoint_ns, checkpoint_id, task_id, idx, task_path, channel, type, {value}"
)
_RECORD = f"""
    INSERT INTO run_writes (run_id, {_COLUMNS})
    SELECT :run, :thread, :ns, :checkpoint, :task, :idx,
        before.task_path, before.channel, before.type, before.{{value}}
    FROM (SELECT 1 AS one) AS one LEFT JOIN {{writes}} AS before
        ON before.thread_id = :thread AND before.checkpoint_ns = :ns
        AND before.checkpoint_id = :checkpoint AND before.task_id = :task AND before.idx = :idx
    WHERE (:replaces OR before.task_id IS NULL) AND EXISTS (
        SELECT 1 FROM checkpoints WHERE thread_id = :thread AND checkpoint_ns = :ns
            AND checkpoint_id = :checkpoint AND coalesce({{run_id}}, '') <> :run
    )
    ON CONFLICT DO NOTHING
"""
_FOREIGN = f"SELECT 1 FROM checkpoints WHERE {_KEY} AND coalesce({{run_id}}, '') <> ?"


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
    # On Postgres a query costs a round trip, so `_RECORD` itself checks this.
    if not conn.locks and run(conn, _FOREIGN, (*place, run_id)).fetchone() is None:
        return
    # As in the library: writes to special channels replace earlier ones, others do not.
    replaces = all(channel in WRITES_IDX_MAP for channel in channels)
    thread, ns, checkpoint = place
    mine = {"run": run_id, "thread": thread, "ns": ns, "checkpoint": checkpoint, "task": task_id}
    run_many(
        conn,
        _RECORD,
        [
            {**mine, "idx": WRITES_IDX_MAP.get(channel, index), "replaces": replaces}
            for index, channel in enumerate(channels)
        ],
    )


def places(conn: Connection, run_id: str) -> list[Place]:
    """Return the checkpoints of other runs that a run wrote onto."""
    statement = (
        "SELECT DISTINCT thread_id, checkpoint_ns, checkpoint_id FROM run_writes WHERE run_id = ?"
    )
    found: list[Place] = run(conn, statement, (run_id,)).fetchall()
    return found


def revert(conn: Connection, run_id: str, place: Place) -> None:
    """Restore the writes at `place` to their state before the run."""
    mine = (run_id, *place)
    run(
        conn,
        f"DELETE FROM {{writes}} WHERE {_KEY} AND (task_id, idx) IN "
        f"(SELECT task_id, idx FROM run_writes WHERE run_id = ? AND {_KEY})",
        (*place, *mine),
    )
    run(
        conn,
        f"INSERT INTO {{writes}} ({_COLUMNS}) SELECT {_COLUMNS} FROM run_writes "
        f"WHERE run_id = ? AND {_KEY} AND channel IS NOT NULL",
        mine,
    )
    run(conn, f"DELETE FROM run_writes WHERE run_id = ? AND {_KEY}", mine)


def forget_thread(conn: Connection, thread_id: str) -> None:
    """Delete the records of a thread whose checkpoints are deleted."""
    run(conn, "DELETE FROM run_writes WHERE thread_id = ?", (thread_id,))
