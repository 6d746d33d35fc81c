"""Undo: what a run wrote onto checkpoints that are not its own, and how to take it back.

A run's first writes (its input to delta channels, the answer to an interrupt, the
results of tasks that were pending) go onto the checkpoint it started from, which
stays when the run is rolled back. Left there, they would be taken for the next
run's, whose own are ignored under the same key.
"""

import sqlite3
from collections.abc import Sequence

from langgraph.checkpoint.base import WRITES_IDX_MAP

from langgraph_runtime_sql.checkpoint.stock import RUN_ID
from langgraph_runtime_sql.connection import Connection

Place = tuple[str, str, str]
"""Thread, namespace and id of a checkpoint."""

# `type` and what follows is the write that was there before; NULL where there was none.
_SCHEMA = """
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
        value BLOB,
        PRIMARY KEY (run_id, thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
    ) WITHOUT ROWID
"""
_INDEX = "CREATE INDEX IF NOT EXISTS ix_run_writes_thread_id ON run_writes (thread_id)"
_KEY = "thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
_COLUMNS = "thread_id, checkpoint_ns, checkpoint_id, task_id, idx, task_path, channel, type, value"
_REMEMBER = f"""
    INSERT OR IGNORE INTO run_writes (run_id, {_COLUMNS})
    SELECT ?1, ?2, ?3, ?4, ?5, ?6, before.task_path, before.channel, before.type, before.value
    FROM (SELECT 1) LEFT JOIN writes AS before
        ON before.thread_id = ?2 AND before.checkpoint_ns = ?3 AND before.checkpoint_id = ?4
        AND before.task_id = ?5 AND before.idx = ?6
    WHERE ?7 OR before.task_id IS NULL
"""


def ensure_schema(raw: sqlite3.Connection) -> None:
    """Create the table that remembers."""
    raw.execute(_SCHEMA)
    raw.execute(_INDEX)


def remember(
    conn: Connection, run_id: str, place: Place, channels: Sequence[str], task_id: str
) -> None:
    """Note what the writes that follow will change, if the checkpoint is not the run's own.

    Args:
        channels: Of the writes, in their order.
    """
    foreign = f"SELECT 1 FROM checkpoints WHERE {_KEY} AND {RUN_ID} IS NOT ?"
    if conn.raw.execute(foreign, (*place, run_id)).fetchone() is None:
        return
    # As the library does: such writes replace what is there, others leave it.
    replaces = all(channel in WRITES_IDX_MAP for channel in channels)
    conn.raw.executemany(
        _REMEMBER,
        [
            (run_id, *place, task_id, WRITES_IDX_MAP.get(channel, index), replaces)
            for index, channel in enumerate(channels)
        ],
    )


def places(conn: Connection, run_id: str) -> list[Place]:
    """The checkpoints of others that a run wrote onto."""
    statement = (
        "SELECT DISTINCT thread_id, checkpoint_ns, checkpoint_id FROM run_writes WHERE run_id = ?"
    )
    found: list[Place] = conn.raw.execute(statement, (run_id,)).fetchall()
    return found


def take_back(conn: Connection, run_id: str, place: Place) -> None:
    """Make the writes at `place` what they were before the run."""
    mine = (run_id, *place)
    conn.raw.execute(
        f"DELETE FROM writes WHERE {_KEY} AND (task_id, idx) IN "
        f"(SELECT task_id, idx FROM run_writes WHERE run_id = ? AND {_KEY})",
        (*place, *mine),
    )
    conn.raw.execute(
        f"INSERT INTO writes ({_COLUMNS}) SELECT {_COLUMNS} FROM run_writes "
        f"WHERE run_id = ? AND {_KEY} AND channel IS NOT NULL",
        mine,
    )
    conn.raw.execute(f"DELETE FROM run_writes WHERE run_id = ? AND {_KEY}", mine)


def forget_thread(conn: Connection, thread_id: str) -> None:
    """All checkpoints of the thread are gone."""
    conn.raw.execute("DELETE FROM run_writes WHERE thread_id = ?", (thread_id,))
