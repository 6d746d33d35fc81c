"""Rows: the table of parts, and which of its rows checkpoints refer to."""

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import Any

from langgraph_runtime_sql.checkpoint.parts.root import KIND_SUFFIX
from langgraph_runtime_sql.checkpoint.sql import run, run_many
from langgraph_runtime_sql.database.connection import Connection

TABLE = """
    CREATE TABLE IF NOT EXISTS checkpoint_parts (
        thread_id TEXT NOT NULL,
        id {binary} NOT NULL,
        type TEXT NOT NULL,
        {value} {binary} NOT NULL,
        PRIMARY KEY (thread_id, id)
    )
"""
"""The table of parts; `binary` is the database's type for bytes."""
COPY = """
    INSERT INTO checkpoint_parts (thread_id, id, type, {value})
    SELECT :target, id, type, {value} FROM checkpoint_parts WHERE thread_id = :source
    ON CONFLICT DO NOTHING
"""
_INSERT = """
    INSERT INTO checkpoint_parts (thread_id, id, type, {value}) VALUES (?, ?, ?, ?)
    ON CONFLICT DO NOTHING
"""
# The table and column of values that refer to parts.
_ROOTS = {"sqlite": ("checkpoints", "checkpoint"), "postgresql": ("checkpoint_blobs", "blob")}
_PAGE = 500


def lock_for_writing(conn: Connection, thread_id: str) -> None:
    """Keep others from freeing parts of a thread until this transaction ends."""
    if conn.locks:
        run(conn, "SELECT pg_advisory_xact_lock_shared(hashtextextended(?, 18))", (thread_id,))


def existing(conn: Connection, thread_id: str, ids: Collection[bytes]) -> set[bytes]:
    """Return those of `ids` that are stored."""
    return {bytes(row[0]) for row in _select(conn, "id", thread_id, ids)}


def read(
    conn: Connection, thread_id: str, ids: Collection[bytes]
) -> Iterator[tuple[bytes, str, bytes]]:
    """Yield the id, type and bytes of the stored ones among `ids`."""
    for id_, kind, data in _select(conn, "id, type, {value}", thread_id, ids):
        yield bytes(id_), kind, bytes(data)


def _select(
    conn: Connection, columns: str, thread_id: str, ids: Collection[bytes]
) -> Iterator[tuple[Any, ...]]:
    of_thread = f"SELECT {columns} FROM checkpoint_parts WHERE thread_id = ? AND id "
    for page in _pages(ids):
        if conn.dialect_name == "sqlite":
            marks = ", ".join("?" * len(page))
            yield from run(conn, f"{of_thread} IN ({marks})", (thread_id, *page)).fetchall()
        else:
            yield from run(conn, f"{of_thread} = ANY(?)", (thread_id, page)).fetchall()


def insert(conn: Connection, thread_id: str, parts: Iterable[tuple[bytes, str, bytes]]) -> None:
    """Store the parts (id, type, bytes) of a thread that are new."""
    found = [(thread_id, *each) for each in parts]
    if found:
        run_many(conn, _INSERT, found)


def delete_all(conn: Connection, thread_id: str) -> None:
    """Delete the parts of a thread whose checkpoints are deleted."""
    _lock_for_freeing(conn, thread_id)
    run(conn, "DELETE FROM checkpoint_parts WHERE thread_id = ?", (thread_id,))


def roots(conn: Connection, thread_id: str) -> list[tuple[str, bytes]]:
    """Return the type and bytes of a thread's values that are stored in parts."""
    table, column = _ROOTS[conn.dialect_name]
    found = run(
        conn,
        f"SELECT type, {column} FROM {table} WHERE thread_id = ? AND type LIKE ?",
        (thread_id, f"%{KIND_SUFFIX}%"),
    ).fetchall()
    return [(kind, bytes(data)) for kind, data in found]


def unused(
    conn: Connection, thread_id: str, reachable: Callable[[str, bytes], set[bytes]]
) -> set[bytes]:
    """Return the ids of a thread's parts that no checkpoint refers to. Arguments: `collect`."""
    ids = run(conn, "SELECT id FROM checkpoint_parts WHERE thread_id = ?", (thread_id,)).fetchall()
    found = {bytes(each) for (each,) in ids}
    if found:
        for kind, data in roots(conn, thread_id):
            found -= reachable(kind, data)
    return found


def collect(conn: Connection, thread_id: str, reachable: Callable[[str, bytes], set[bytes]]) -> int:
    """Delete the parts of a thread that no checkpoint refers to.

    Args:
        conn: A transaction that writes.
        thread_id: The thread.
        reachable: Returns the ids of the parts of a stored value.

    Returns:
        The number of deleted parts.
    """
    _lock_for_freeing(conn, thread_id)
    freed = unused(conn, thread_id, reachable)
    if freed:
        run_many(
            conn,
            "DELETE FROM checkpoint_parts WHERE thread_id = ? AND id = ?",
            [(thread_id, each) for each in freed],
        )
    return len(freed)


def missing(
    conn: Connection, thread_id: str, absent: Callable[[str, bytes], set[bytes]]
) -> set[bytes]:
    """Return the ids of parts that values of a thread refer to and that are not stored.

    Args:
        conn: A transaction.
        thread_id: The thread.
        absent: Returns the ids of the parts of a stored value that are not stored.
    """
    return set().union(*(absent(kind, data) for kind, data in roots(conn, thread_id)))


def _lock_for_freeing(conn: Connection, thread_id: str) -> None:
    if conn.locks:
        run(conn, "SELECT pg_advisory_xact_lock(hashtextextended(?, 18))", (thread_id,))


def _pages(ids: Iterable[bytes]) -> Iterator[list[bytes]]:
    rest = iter(ids)
    while page := list(islice(rest, _PAGE)):
        yield page
