"""Shown values: the values of a checkpoint as clients see them."""

from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer, _msgpack_ext_hook_to_json

from langgraph_runtime_sql.checkpoint import sealing
from langgraph_runtime_sql.checkpoint.serialization import serializer
from langgraph_runtime_sql.checkpoint.sql import run
from langgraph_runtime_sql.checkpoint.stock import stock_saver
from langgraph_runtime_sql.database.connection import Connection


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
    conn: Connection, thread_id: Any, checkpoint_id: str, *, is_served: bool = True
) -> dict[str, Any] | None:
    """Return the values of a checkpoint's channels as JSON, or None if there is none of this id.

    Args:
        conn: The transaction.
        thread_id: The thread.
        checkpoint_id: The checkpoint, outside of subgraphs.
        is_served: Whether the API runs in this process, with its settings.

    Raises:
        DamagedCheckpoint: a part of a value is missing or changed.
        KeyErased, CannotDecrypt: as in `sealing.Opener`.
    """
    # JSON, so that no class of the graph is imported.
    hook = _msgpack_ext_hook_to_json
    inner = serializer(hook) if is_served else JsonPlusSerializer(__unpack_ext_hook__=hook)
    serde = sealing.reading(conn, inner, str(thread_id))
    place = {"thread_id": str(thread_id), "checkpoint_ns": "", "checkpoint_id": checkpoint_id}
    found = stock_saver(conn, serde).get_tuple({"configurable": place})
    return None if found is None else found.checkpoint["channel_values"]
