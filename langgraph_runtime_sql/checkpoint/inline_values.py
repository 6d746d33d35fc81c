"""Inline values: texts and numbers that stand in a checkpoint's JSON on Postgres, without a key.

Under encryption they are blobs, as all other values are.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from langgraph_runtime_sql.checkpoint import sealing
from langgraph_runtime_sql.checkpoint.postgres import loads
from langgraph_runtime_sql.checkpoint.serialization import SERIALIZED, serializer
from langgraph_runtime_sql.checkpoint.sql import run
from langgraph_runtime_sql.database.connection import Connection

# As text, because the driver's decoder turns large integers into floats.
_FIND = """
    SELECT checkpoint_ns, checkpoint_id, CAST(checkpoint AS TEXT) FROM checkpoints
    WHERE thread_id = ?
"""
_STORE = """
    INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
    VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_REMOVE = """
    UPDATE checkpoints SET checkpoint = jsonb_set(checkpoint, ARRAY['channel_values'],
        (checkpoint -> 'channel_values') - CAST(? AS TEXT[]))
    WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
"""


def changes(conn: Connection, thread_id: str) -> Iterator[Callable[[], int]]:
    """Yield what encrypts the inline values of each checkpoint of a thread.

    A step raises CannotDecrypt if there is one although `keys encrypt` has ended.
    """
    for ns, checkpoint_id, stored in run(conn, _FIND, (thread_id,)).fetchall():
        checkpoint: dict[str, Any] = loads(stored)
        if any(each is not None for each in (checkpoint.get("channel_values") or {}).values()):
            yield partial(_hide, conn, (thread_id, ns, checkpoint_id), checkpoint)


def _hide(conn: Connection, place: tuple[str, str, str], checkpoint: dict[str, Any]) -> int:
    hidden = [
        channel
        for channel, value in checkpoint["channel_values"].items()
        if value is not None and _is_stored(conn, place[:2], checkpoint, channel, value)
    ]
    if hidden:
        run(conn, _REMOVE, (hidden, *place))
    return bool(hidden)


def _is_stored(
    conn: Connection, place: tuple[str, str], checkpoint: dict[str, Any], channel: str, value: Any
) -> bool:
    """Store a value as a blob; return whether the JSON can do without it."""
    version = checkpoint["channel_versions"].get(channel)
    if version is None:
        return False
    if value is not True:
        sealing.reading(conn, SERIALIZED, place[0]).refuse_plain()
    typed = sealing.writing(conn, place[0]).dumps_typed({"typed": serializer().dumps_typed(value)})
    added = run(conn, _STORE, (*place, channel, str(version), *typed)).rowcount
    # Beside an earlier blob, True marks a snapshot. Another value is the blob's.
    return bool(added) or value is not True
