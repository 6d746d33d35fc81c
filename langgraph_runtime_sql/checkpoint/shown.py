"""Shown values: the values of a checkpoint as clients see them."""

from typing import Any

from langgraph_runtime_sql.checkpoint import sealing
from langgraph_runtime_sql.checkpoint.serialization import serializer
from langgraph_runtime_sql.checkpoint.sql import run
from langgraph_runtime_sql.checkpoint.stock import stock_saver
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.encryption.keys import TenantKeys


def exists(conn: Connection, thread_id: Any, checkpoint_id: str) -> bool:
    """Return whether a thread has a checkpoint, outside of subgraphs."""
    found = run(
        conn,
        "SELECT 1 FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''"
        " AND checkpoint_id = ?",
        (str(thread_id), checkpoint_id),
    )
    return found.fetchone() is not None


def shown_values(
    conn: Connection, thread_id: Any, checkpoint_id: str, cache: TenantKeys | None = None
) -> dict[str, Any] | None:
    """Return the values of a checkpoint's channels as JSON, or None if there is none of this id.

    Args:
        conn: The transaction.
        thread_id: The thread.
        checkpoint_id: The checkpoint, outside of subgraphs.
        cache: The keys of the database. Default: those of the running platform.

    Raises:
        DamagedCheckpoint: a part of a value is missing or changed.
        KeyErased, CannotDecrypt: as in `sealing.Opener`.
    """
    from langgraph.checkpoint.serde.jsonplus import _msgpack_ext_hook_to_json

    # JSON, so that no class of the graph is imported.
    serde = sealing.reading(conn, serializer(_msgpack_ext_hook_to_json), str(thread_id), cache)
    place = {"thread_id": str(thread_id), "checkpoint_ns": "", "checkpoint_id": checkpoint_id}
    found = stock_saver(conn, serde).get_tuple({"configurable": place})
    return None if found is None else found.checkpoint["channel_values"]
