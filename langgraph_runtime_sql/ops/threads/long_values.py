"""Long values: the lists of a thread's state that its row leaves to the newest checkpoint.

With them, each end of a run would write the whole conversation again, and each request that looks at
the thread would read it. The row names the checkpoint and the keys instead.
"""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from langgraph.channels import BinaryOperatorAggregate, LastValue

from langgraph_runtime_sql import checkpoint, json_codec, runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.encryption import active
from langgraph_runtime_sql.encryption.keys import KeyErased
from langgraph_runtime_sql.memo import Memo
from langgraph_runtime_sql.search.examined_search import LONG

# A checkpoint has exactly the value of these channels.
_WHOLE = (LastValue, BinaryOperatorAggregate)
# Bytes of the memo of values that were read, and what an entry takes beside them.
_SIZE, _ENTRY = 32 * 2**20, 300
# By thread, checkpoint and keys, as JSON. A checkpoint never changes.
_read: Memo[tuple[str, str, tuple[str, ...]], str] = Memo(_SIZE)


def columns(
    conn: Connection, thread_id: UUID, values: Any, graph_id: str | None, checkpoint_id: str | None
) -> Row:
    """Return the columns of a thread that hold its state.

    Args:
        conn: The transaction that writes them.
        thread_id: The thread.
        values: The state.
        graph_id: The graph that made it.
        checkpoint_id: The checkpoint with exactly this state, if there is one.

    Raises:
        Unstorable: a list cannot be written as JSON.
    """
    names = _long_names(values, graph_id) if checkpoint_id else []
    if not names or not checkpoint.exists(conn, thread_id, str(checkpoint_id)):
        return {"values": values, "long_values": None}
    return {
        "values": {name: each for name, each in values.items() if name not in names},
        "long_values": {"checkpoint_id": checkpoint_id, "keys": names},
    }


def _long_names(values: Any, graph_id: str | None) -> list[str]:
    from langgraph_api import config
    from langgraph_api.graph import GRAPHS

    # A function that makes graphs could make another one at each call.
    channels = getattr(GRAPHS.get(graph_id or ""), "channels", None)
    if config.USE_CUSTOM_CHECKPOINTER or type(values) is not dict or not isinstance(channels, dict):
        return []
    return [
        name
        for name, each in values.items()
        if type(each) is list
        and type(channels.get(name)) in _WHOLE
        and len(json_codec.dumps(each)) >= LONG
    ]


def complete(conn: Connection, found: Iterable[Row]) -> None:
    """Add the long values to rows of threads, in place.

    Raises:
        DamagedCheckpoint: a part of a value is missing or changed.
        CannotDecrypt: the key of a checkpoint is missing.
    """
    for row in found:
        about, values = row.get("long_values"), row.get("values")
        if about is None or values is None:
            continue
        # An older process stores all values and leaves the column as it is.
        keys = tuple(key for key in about["keys"] if key not in values)
        if keys:
            row["values"] = {**values, **_values(conn, row["thread_id"], about, keys)}


async def completed(row: Row) -> Row:
    """Return a row of a thread with its long values. Errors: `complete`."""
    if row.get("long_values") is not None:
        row = dict(row)
        await runtime.current().database.read(lambda conn: complete(conn, [row]))
    return row


def _values(
    conn: Connection, thread_id: UUID, about: Mapping[str, Any], keys: tuple[str, ...]
) -> dict[str, Any]:
    place = str(thread_id), str(about["checkpoint_id"]), keys
    # Nothing that is encrypted stays in memory after its key was erased.
    known = None if active() else _read.get(place)
    if known is None:
        try:
            stored = checkpoint.shown_values(conn, thread_id, place[1])
            if stored is None:
                # It was deleted while a run of the thread goes on.
                newest = checkpoint.latest_id(conn, thread_id)
                found = newest and checkpoint.shown_values(conn, thread_id, newest)
                return {key: found[key] for key in keys if key in found} if found else {}
        except KeyErased:
            return {}
        known = json_codec.dumps({key: stored[key] for key in keys if key in stored})
        if not active():
            _read.put(place, known, len(known) + _ENTRY)
    values: dict[str, Any] = json_codec.loads(known)
    return values
