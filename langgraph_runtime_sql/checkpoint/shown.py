"""Shown values: the values of a checkpoint as clients see them."""

from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer, _msgpack_ext_hook_to_json

from langgraph_runtime_sql.checkpoint import reading
from langgraph_runtime_sql.checkpoint.serialization import serializer
from langgraph_runtime_sql.database.connection import Connection


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
        DamagedCheckpoint, KeyErased, CannotDecrypt: as in `reading.Reader.find`.
    """
    # JSON, so that no class of the graph is imported.
    hook = _msgpack_ext_hook_to_json
    serde = serializer(hook) if is_served else JsonPlusSerializer(__unpack_ext_hook__=hook)
    version = reading.Reader(conn, str(thread_id)).read("", checkpoint_id)
    if version is None:
        return None
    values: dict[str, Any] = reading.loaded(version, serde)[1]["channel_values"]
    return values
