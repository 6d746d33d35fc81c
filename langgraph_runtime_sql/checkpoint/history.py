"""History: delete and copy the checkpoints of threads inside a transaction."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from langgraph_runtime_sql.checkpoint import parts, resealing, sealing, undo
from langgraph_runtime_sql.checkpoint.serialization import SERIALIZED, serializer
from langgraph_runtime_sql.checkpoint.sql import run, run_many
from langgraph_runtime_sql.checkpoint.stock import stock_saver
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.encryption.keys import CannotDecrypt, KeyErased

Saver = BaseCheckpointSaver[str]
Version = tuple[str | None, tuple[tuple[Any, ...], ...]]
"""The version of a thread's state. It is equal as long as the state does not change."""

# Older versions stored the id of the thread in the metadata, too.
_COPY_CHECKPOINTS = """
    INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id,
        parent_checkpoint_id, type, checkpoint, metadata)
    SELECT :target, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint,
        {metadata_without_thread}
    FROM checkpoints WHERE thread_id = :source
    ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id) DO UPDATE
    SET parent_checkpoint_id = excluded.parent_checkpoint_id, type = excluded.type,
        checkpoint = excluded.checkpoint, metadata = excluded.metadata
"""
_COPY_WRITES = """
    INSERT INTO {writes} (thread_id, checkpoint_ns, checkpoint_id, task_id, idx,
        task_path, channel, type, {value})
    SELECT :target, checkpoint_ns, checkpoint_id, task_id, idx, task_path, channel, type, {value}
    FROM {writes} WHERE thread_id = :source
    ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) DO UPDATE
    SET task_path = excluded.task_path, channel = excluded.channel, type = excluded.type,
        {value} = excluded.{value}
"""
# Postgres stores the values of channels apart, each version once for all checkpoints.
_COPY_BLOBS = """
    INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
    SELECT :target, checkpoint_ns, channel, version, type, blob
    FROM checkpoint_blobs WHERE thread_id = :source
    ON CONFLICT DO NOTHING
"""
_COPIES = {
    "sqlite": (parts.COPY, _COPY_CHECKPOINTS, _COPY_WRITES),
    "postgresql": (parts.COPY, _COPY_CHECKPOINTS, _COPY_WRITES, _COPY_BLOBS),
}
_UNUSED_BLOBS = """
    DELETE FROM checkpoint_blobs
    WHERE thread_id = :thread AND (checkpoint_ns, channel, version) NOT IN (
        SELECT checkpoint_ns, used.key, used.value
        FROM checkpoints, jsonb_each_text(checkpoint -> 'channel_versions') AS used
        WHERE thread_id = :thread
    )
"""
# A checkpoint whose parent is gone becomes the first one of its namespace.
_FORGET_PARENTS = """
    UPDATE checkpoints SET parent_checkpoint_id = NULL
    WHERE thread_id = ? AND parent_checkpoint_id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM checkpoints AS parent
        WHERE parent.thread_id = checkpoints.thread_id
        AND parent.checkpoint_ns = checkpoints.checkpoint_ns
        AND parent.checkpoint_id = checkpoints.parent_checkpoint_id
    )
"""
_ONE = "thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"


def delete_thread(conn: Connection, thread_id: Any) -> None:
    """Delete every checkpoint of a thread, in all namespaces."""
    stock_saver(conn, SERIALIZED).delete_thread(str(thread_id))
    undo.forget_thread(conn, str(thread_id))
    parts.delete_all(conn, str(thread_id))


def copy_thread(conn: Connection, source: Any, target: Any) -> None:
    """Copy all checkpoints and pending writes of `source` to the thread `target`."""
    for each in (source, target):
        parts.lock_for_writing(conn, str(each))
    for statement in _COPIES[conn.dialect_name]:
        run(conn, statement, {"source": str(source), "target": str(target)})
    resealing.rebind(conn, str(source), str(target))


def free_parts(conn: Connection, thread_id: str) -> int:
    """Delete the parts of a thread that no checkpoint refers to; return their number.

    If a checkpoint's key is gone, nobody can tell which parts it needs, and all stay.
    """
    try:
        return parts.collect(conn, thread_id, sealing.reading(conn, SERIALIZED, thread_id).parts_of)
    except (CannotDecrypt, KeyErased):
        return 0


def examine_parts(conn: Connection, thread_id: str) -> tuple[int, int]:
    """Return how many parts of a thread's checkpoints are missing, and how many are not used.

    Encrypted checkpoints whose key this process does not have count for neither.
    """
    reader = sealing.reading(conn, SERIALIZED, thread_id)
    try:
        missing = parts.missing(conn, thread_id, reader.missing_parts_of)
        return len(missing), len(parts.unused(conn, thread_id, reader.parts_of))
    except (CannotDecrypt, KeyErased):
        return 0, 0


def missing_parts(conn: Connection, thread_id: str) -> set[bytes]:
    """Return the ids of parts that checkpoints of a thread refer to and that are not stored."""
    reader = sealing.reading(conn, SERIALIZED, thread_id)
    return parts.missing(conn, thread_id, reader.missing_parts_of)


def thread_ids(conn: Connection) -> list[str]:
    """Return the ids of all threads with checkpoints."""
    found = run(conn, "SELECT DISTINCT thread_id FROM checkpoints").fetchall()
    return [thread_id for (thread_id,) in found]


def latest_id(conn: Connection, thread_id: Any, namespace: str = "") -> str | None:
    """Return the id of the newest checkpoint in a namespace of a thread, if there is one."""
    found: str | None = run(
        conn,
        "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?",
        (str(thread_id), namespace),
    ).fetchone()[0]
    return found


def latest_version(conn: Connection, thread_id: Any) -> Version:
    """Return the version of a thread's state: its newest checkpoint and the writes onto it."""
    newest = latest_id(conn, thread_id)
    if newest is None:
        return None, ()
    found = run(
        conn,
        "SELECT task_id, idx, channel, {value} FROM {writes} WHERE thread_id = ?"
        " AND checkpoint_ns = '' AND checkpoint_id = ? ORDER BY task_id, idx",
        (str(thread_id), newest),
    )
    return newest, tuple(tuple(row) for row in found.fetchall())


def places(conn: Connection, thread: str) -> list[tuple[str, str]]:
    """Return the namespace and id of each checkpoint of a thread, in the order of the ids."""
    found: list[tuple[str, str]] = run(
        conn,
        "SELECT checkpoint_ns, checkpoint_id FROM checkpoints WHERE thread_id = ?"
        " ORDER BY checkpoint_id",
        (thread,),
    ).fetchall()
    return found


def rebuilt_from(
    conn: Connection, thread: str, places: Iterable[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Return the namespaces and ids of the checkpoints that delta channels are rebuilt from.

    Args:
        conn: The transaction.
        thread: The thread.
        places: The namespace and id of the checkpoints with these channels.
    """
    saver = _shape_saver(conn, thread)
    return {
        (ns, needed)
        for ns, each in places
        for needed in _rebuilt_from(saver, _config(thread, ns, each))
    }


def delete_for_runs(conn: Connection, run_ids: Iterable[Any], thread_id: Any | None = None) -> None:
    """Delete the checkpoints that runs wrote, and their writes onto others.

    A checkpoint stays if delta channels of another run are rebuilt from it. Without it that state
    would read back empty.

    Args:
        run_ids: The runs.
        thread_id: Delete in this thread only. A copy of the thread has the same runs in its
            checkpoints; None deletes there too.
    """
    for run_id in map(str, run_ids):
        written = _group(_written_by(conn, run_id, thread_id), thread_id)
        touched = _group(undo.places(conn, run_id), thread_id)
        for thread, ns in written.keys() | touched.keys():
            ids = written[thread, ns]
            needed = _needed_by_others(conn, thread, ns, ids)
            delete(conn, [(thread, ns, checkpoint_id) for checkpoint_id in ids - needed])
            for checkpoint_id in touched[thread, ns] - needed:
                undo.revert(conn, run_id, (thread, ns, checkpoint_id))


def _group(places: Iterable[undo.Place], thread_id: Any | None) -> dict[tuple[str, str], set[str]]:
    """Return checkpoint ids by thread and namespace; only those of `thread_id` if it is given."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for thread, ns, checkpoint_id in places:
        if thread_id is None or thread == str(thread_id):
            found[thread, ns].add(checkpoint_id)
    return found


def _written_by(conn: Connection, run_id: str, thread_id: Any | None) -> list[undo.Place]:
    statement = "SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints WHERE {run_id} = ?"
    params: tuple[str, ...] = (run_id,)
    if thread_id is not None:
        # The thread's index is used: under policies Postgres does not use the one on metadata.
        statement, params = f"{statement} AND thread_id = ?", (run_id, str(thread_id))
    found: list[undo.Place] = run(conn, statement, params).fetchall()
    return found


def _needed_by_others(conn: Connection, thread: str, ns: str, ids: set[str]) -> set[str]:
    """Return the checkpoints among `ids` that delta channels of other runs are rebuilt from.

    Their direct children suffice: further descendants are rebuilt through them.
    """
    relations = run(
        conn,
        "SELECT checkpoint_id, parent_checkpoint_id FROM checkpoints "
        "WHERE thread_id = ? AND checkpoint_ns = ?",
        (thread, ns),
    ).fetchall()
    children = [child for child, parent in relations if parent in ids and child not in ids]
    if not children:
        return set()
    saver = _shape_saver(conn, thread)
    return set().union(*(_rebuilt_from(saver, _config(thread, ns, child)) for child in children))


def _rebuilt_from(saver: Saver, config: RunnableConfig) -> set[str]:
    """Return the checkpoint and the ancestors that its delta channels are rebuilt from."""
    found = saver.get_tuple(config)
    if found is None:
        return set()
    ids = {found.checkpoint["id"]}
    missing = _delta_channels(found)
    while missing and found.parent_config is not None:
        found = saver.get_tuple(found.parent_config)
        # A checkpoint stored again under a descendant makes the chain a loop.
        if found is None or found.checkpoint["id"] in ids:
            break
        ids.add(found.checkpoint["id"])
        missing -= found.checkpoint["channel_values"].keys()
    return ids


def _delta_channels(found: CheckpointTuple) -> set[str]:
    """Return the channels whose values lie in earlier writes, not in the checkpoint."""
    counted = set(found.metadata.get("counters_since_delta_snapshot", ()))
    versions, values = found.checkpoint["channel_versions"], found.checkpoint["channel_values"]
    return (counted & versions.keys()) - values.keys()


def _shape_saver(conn: Connection, thread: str) -> Saver:
    """Return a saver for the structure of checkpoints: values of other types read as None."""
    serde = serializer(lambda _code, _data: None)
    return stock_saver(conn, sealing.reading(conn, serde, thread))


def delete(conn: Connection, gone: Sequence[undo.Place]) -> None:
    """Delete checkpoints with the writes onto them, and free what no other checkpoint needs."""
    if not gone:
        return
    for table in ("checkpoints", "{writes}", "run_writes"):
        run_many(conn, f"DELETE FROM {table} WHERE {_ONE}", gone)
    for thread in sorted({place[0] for place in gone}):
        run(conn, _FORGET_PARENTS, (thread,))
        if conn.dialect_name == "postgresql":
            run(conn, _UNUSED_BLOBS, {"thread": thread})
        free_parts(conn, thread)


def _config(thread: str, ns: str, checkpoint_id: str) -> RunnableConfig:
    place = {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}
    return {"configurable": place}
