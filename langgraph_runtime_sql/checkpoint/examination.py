"""Examination: find checkpoints that cannot be read, and rows that belong to nothing."""

from collections.abc import Iterator

from sqlalchemy import bindparam, select, union

from langgraph_runtime_sql.checkpoint import history, rows
from langgraph_runtime_sql.checkpoint.reading import Key, Reader
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import (
    run_writes,
    thread_checkpoints,
    thread_writes,
    threads,
)
from langgraph_runtime_sql.database.statements import Prepared
from langgraph_runtime_sql.encryption.keys import CannotDecrypt, KeyErased
from langgraph_runtime_sql.errors import DamagedCheckpoint

_KNOWN = Prepared(select(threads.c.thread_id))
_STORED = Prepared(
    lambda: union(
        *(select(each.c.thread_id) for each in (thread_checkpoints, thread_writes, run_writes))
    )
)
_c = thread_checkpoints.c
_HAS_PARENT = Prepared(
    select(_c.checkpoint_ns, _c.checkpoint_id, _c.parent_id).where(
        _c.thread_id == bindparam("thread"), _c.parent_id.is_not(None)
    )
)


def without_thread(conn: Connection) -> list[str]:
    """Return the threads that have rows of checkpoints and are unknown to the server."""
    known = {str(each["thread_id"]) for each in conn.fetchall(_KNOWN)}
    return sorted({each["thread_id"] for each in conn.fetchall(_STORED)} - known)


def broken(conn: Connection, thread_id: str) -> Iterator[tuple[Key, str]]:
    """Yield the checkpoints of a thread that cannot be read or have lost their parent, and why.

    Encrypted ones whose key this process does not have are left out.
    """
    reader, places = Reader(conn, thread_id), history.places(conn, thread_id)
    for ns, checkpoint_id in places:
        [row] = conn.fetchall(rows.ROW, {"thread": thread_id, "ns": ns, "id": checkpoint_id})
        try:
            reader.version(ns, row)
        except DamagedCheckpoint as error:
            yield (ns, checkpoint_id), str(error)
        except (CannotDecrypt, KeyErased):
            continue
    known = set(places)
    for row in conn.fetchall(_HAS_PARENT, {"thread": thread_id}):
        if (row["checkpoint_ns"], row["parent_id"]) not in known:
            place = row["checkpoint_ns"], row["checkpoint_id"]
            yield place, f"its parent {row['parent_id']} is missing"
