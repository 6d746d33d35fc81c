"""History: store, replace, delete and copy the checkpoints of threads inside a transaction."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from langgraph.checkpoint.base import WRITES_IDX_MAP
from sqlalchemy import bindparam, literal, select

from langgraph_runtime_sql import process
from langgraph_runtime_sql.checkpoint import chains, deltas, reading, resealing, rows, sealing, undo
from langgraph_runtime_sql.checkpoint.chains import Packed, Version
from langgraph_runtime_sql.checkpoint.reading import Key, Reader
from langgraph_runtime_sql.checkpoint.rows import Place
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import thread_checkpoints, thread_writes
from langgraph_runtime_sql.database.statements import Prepared, Row, Upsert

StateVersion = tuple[str | None, tuple[tuple[Any, ...], ...]]
"""The version of a thread's state. It is equal as long as the state does not change."""

_c, _w = thread_checkpoints.c, thread_writes.c
_of_thread = _c.thread_id == bindparam("thread")
_THREADS = Prepared(select(_c.thread_id).distinct())
_EXISTS = Prepared(select(literal(1).label("one")).where(*rows.AT_PLACE))
_LOCK = Prepared(select(_c.checkpoint_id).where(*rows.AT_PLACE).with_for_update())
_LINKS = Prepared(select(_c.checkpoint_id, _c.parent_id, _c.base_id).where(*rows.IN_NAMESPACE))
_FORGET_PARENT = Prepared(thread_checkpoints.update().where(*rows.AT_PLACE).values(parent_id=None))
_PLACES = Prepared(
    select(_c.checkpoint_ns, _c.checkpoint_id).where(_of_thread).order_by(_c.checkpoint_id)
)
_OF_RUN = select(_c.thread_id, _c.checkpoint_ns, _c.checkpoint_id).where(
    _c.run_id == bindparam("run")
)
_BY_RUN = Prepared(_OF_RUN)
# The thread's index is used: under policies Postgres does not use the one of the run.
_BY_RUN_IN_THREAD = Prepared(_OF_RUN.where(_of_thread))
_ONTO = Prepared(select(_w.task_id, _w.idx, _w.channel, _w.value).where(*rows.ONTO_PLACE))
_DELETE_WRITES = Prepared(thread_writes.delete().where(*rows.ONTO_PLACE))
_DELETE_THREAD = tuple(
    Prepared(each.delete().where(each.c.thread_id == bindparam("thread")))
    for each in (thread_checkpoints, thread_writes)
)


def _copying(table: Any) -> Prepared:
    """Return the statement that copies the rows of a thread."""
    columns = [
        bindparam("target", type_=each.type) if each.name == "thread_id" else each
        for each in table.c
    ]
    rows_of = select(*columns).where(table.c.thread_id == bindparam("source"))
    return Prepared(Upsert(table).from_select([each.name for each in table.c], rows_of))


_COPIES = tuple(map(_copying, (thread_checkpoints, thread_writes)))


# --- storing ---


def columns_of(metadata: Mapping[str, Any]) -> Row:
    """Return the columns of a checkpoint that say what its metadata say, for searches."""
    parents = metadata.get("parents")
    root = parents.get("") if isinstance(parents, Mapping) else None
    run_id = metadata.get("run_id")
    return {
        "run_id": run_id if isinstance(run_id, str) else None,
        "root_id": root if isinstance(root, str) else None,
        "has_deltas": bool(metadata.get(deltas.COUNTERS)),
    }


def row_of(place: Place, parent: str | None, version: Version, columns: Row) -> Row:
    """Return the columns of a checkpoint's row without its value and base."""
    thread_id, ns, checkpoint_id = place
    return {
        "thread_id": thread_id,
        "checkpoint_ns": ns,
        "checkpoint_id": checkpoint_id,
        "parent_id": parent,
        "position": version.position,
        "size": len(version.plain),
        **columns,
        "build": process.configuration().options.build,
    }


def add(conn: Connection, row: Row, packed: Packed) -> None:
    """Store a new checkpoint; on Postgres the outcome arrives with the commit.

    Args:
        conn: A transaction that writes.
        row: As from `row_of`.
        packed: Its value.

    Raises:
        IntegrityError: (the driver's) there is one with this id, or the base is gone.
    """
    kind, value = _sealed(conn, row["thread_id"], packed)
    rows.add(conn, {**row, "type": kind, "value": value}, packed.base)


def replace(conn: Connection, row: Row, value: bytes) -> None:
    """Store a checkpoint, also where one with its id is or its ancestors have changed.

    Args:
        conn: A transaction that writes.
        row: As from `row_of`.
        value: The bytes of its version.
    """
    place = row["thread_id"], row["checkpoint_ns"], row["checkpoint_id"]
    thread_id, ns, checkpoint_id = place
    if conn.fetchone(_EXISTS, rows.place_params(place)) is not None:
        _loosen(conn, thread_id, ns, {checkpoint_id})
        conn.send(rows.DELETE, rows.place_params(place))
    parent = row["parent_id"]
    line = Reader(conn, thread_id).line_after(ns, parent if parent != checkpoint_id else None)
    version, packed = chains.add(line, checkpoint_id, value)
    add(conn, {**row, "position": version.position}, packed)


def add_writes(
    conn: Connection,
    place: Place,
    writes: Sequence[tuple[str, str, bytes]],
    task_id: str,
    task_path: str,
) -> None:
    """Store what a task has written: the channel, type and bytes of each write.

    As in langgraph's savers, writes to special channels replace earlier ones, others do not.
    """
    thread_id, ns, checkpoint_id = place
    replaces = all(channel in WRITES_IDX_MAP for channel, _, _ in writes)
    params: list[Mapping[str, Any]] = []
    for index, (channel, kind, data) in enumerate(writes):
        stored, value = sealing.sealed(conn, thread_id, kind, data)
        at = {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}
        by = {"task_id": task_id, "idx": WRITES_IDX_MAP.get(channel, index)}
        what = {"task_path": task_path, "channel": channel, "type": stored, "value": value}
        params.append({**at, **by, **what})
    conn.executemany(rows.REPLACE_WRITE if replaces else rows.ADD_WRITE, params)


def _sealed(conn: Connection, thread_id: str, packed: Packed) -> tuple[str, bytes]:
    return sealing.sealed(conn, thread_id, reading.KIND + packed.suffix, packed.data)


# --- deleting ---


def delete_thread(conn: Connection, thread_id: Any) -> None:
    """Delete every checkpoint of a thread, in all namespaces."""
    for statement in _DELETE_THREAD:
        conn.send(statement, {"thread": str(thread_id)})
    undo.forget_thread(conn, str(thread_id))


def delete(conn: Connection, gone: Iterable[Place]) -> None:
    """Delete checkpoints with the writes onto them. Patches against them are made anew first.

    A checkpoint whose parent is gone becomes the first one of its line.
    """
    for (thread_id, ns), ids in _group(gone).items():
        children = _loosen(conn, thread_id, ns, ids)
        for each in children:
            conn.send(_FORGET_PARENT, {"thread": thread_id, "ns": ns, "id": each})
        for each in ids:
            place = {"thread": thread_id, "ns": ns, "id": each}
            conn.send(rows.DELETE, place)
            conn.send(_DELETE_WRITES, place)
            undo.forget(conn, (thread_id, ns, each))


def _loosen(conn: Connection, thread_id: str, ns: str, gone: Collection[str]) -> list[str]:
    """Make the patches against checkpoints anew, without them; return their children.

    The checkpoints are locked first: who stores a further patch against one waits, and finds it gone.
    """
    if conn.locks:
        for each in sorted(gone):
            conn.prefetch(_LOCK, {"thread": thread_id, "ns": ns, "id": each})
    links = conn.fetchall(_LINKS, {"thread": thread_id, "ns": ns})
    bases = {each["checkpoint_id"]: each["base_id"] for each in links}
    reader = Reader(conn, thread_id)
    for each, base in bases.items():
        if base in gone and each not in gone:
            while base in gone:
                base = bases.get(base)
            _patch_anew(conn, reader, (thread_id, ns, each), base)
    return [
        each["checkpoint_id"]
        for each in links
        if each["parent_id"] in gone and each["checkpoint_id"] not in gone
    ]


def _patch_anew(conn: Connection, reader: Reader, place: Place, base_id: str | None) -> None:
    """Store the value of a checkpoint as a patch against another base, or whole."""
    thread_id, ns, checkpoint_id = place
    version = reader.read(ns, checkpoint_id)
    base = None if base_id is None else reader.read(ns, base_id)
    if version is None:
        return
    _, packed = chains.pack(version.plain, base)
    kind, data = _sealed(conn, thread_id, packed)
    changed = {"new_type": kind, "new_value": data, "base": packed.base}
    conn.send(rows.PATCH_ANEW, {**rows.place_params(place), **changed})


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
            delete(conn, [(thread, ns, each) for each in ids - needed])
            for each in touched[thread, ns] - needed:
                undo.revert(conn, run_id, (thread, ns, each))


def _group(
    places: Iterable[Place], thread_id: Any | None = None
) -> dict[tuple[str, str], set[str]]:
    """Return checkpoint ids by thread and namespace; only those of `thread_id` if it is given."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for thread, ns, checkpoint_id in places:
        if thread_id is None or thread == str(thread_id):
            found[thread, ns].add(checkpoint_id)
    return found


def _written_by(conn: Connection, run_id: str, thread_id: Any | None) -> list[Place]:
    if thread_id is None:
        found = conn.fetchall(_BY_RUN, {"run": run_id})
    else:
        found = conn.fetchall(_BY_RUN_IN_THREAD, {"run": run_id, "thread": str(thread_id)})
    return [(each["thread_id"], each["checkpoint_ns"], each["checkpoint_id"]) for each in found]


def _needed_by_others(conn: Connection, thread: str, ns: str, ids: set[str]) -> set[str]:
    """Return the checkpoints among `ids` that delta channels of other runs are rebuilt from.

    Their direct children suffice: further descendants are rebuilt through them.
    """
    links = conn.fetchall(_LINKS, {"thread": thread, "ns": ns}) if ids else []
    children = [
        (ns, each["checkpoint_id"])
        for each in links
        if each["parent_id"] in ids and each["checkpoint_id"] not in ids
    ]
    return {needed for _, needed in deltas.rebuilt_from(conn, thread, children)}


# --- copying ---


def copy_thread(conn: Connection, source: Any, target: Any) -> None:
    """Copy all checkpoints and pending writes of `source` to the thread `target`."""
    copied = _group((str(target), *place) for place in places(conn, str(source)))
    for (thread_id, ns), ids in copied.items():
        # Those with the same ids are replaced.
        _loosen(conn, thread_id, ns, ids)
    for statement in _COPIES:
        conn.send(statement, {"source": str(source), "target": str(target)})
    resealing.rebind(conn, str(source), str(target))


# --- looking ---


def thread_ids(conn: Connection) -> list[str]:
    """Return the ids of all threads with checkpoints."""
    return [each["thread_id"] for each in conn.fetchall(_THREADS)]


def latest_id(conn: Connection, thread_id: Any, namespace: str = "") -> str | None:
    """Return the id of the newest checkpoint in a namespace of a thread, if there is one."""
    found: str | None = conn.scalar(rows.NEWEST, {"thread": str(thread_id), "ns": namespace})
    return found


def latest_version(conn: Connection, thread_id: Any) -> StateVersion:
    """Return the version of a thread's state: its newest checkpoint and the writes onto it."""
    newest = latest_id(conn, thread_id)
    if newest is None:
        return None, ()
    onto = conn.fetchall(_ONTO, {"thread": str(thread_id), "ns": "", "id": newest})
    return newest, tuple(sorted(tuple(each.values()) for each in onto))


def exists(conn: Connection, thread_id: Any, checkpoint_id: str) -> bool:
    """Return whether a thread has a checkpoint, outside of subgraphs."""
    place = {"thread": str(thread_id), "ns": "", "id": checkpoint_id}
    return conn.fetchone(_EXISTS, place) is not None


def places(conn: Connection, thread_id: str) -> list[Key]:
    """Return the namespace and id of each checkpoint of a thread, in the order of the ids."""
    found = conn.fetchall(_PLACES, {"thread": thread_id})
    return [(each["checkpoint_ns"], each["checkpoint_id"]) for each in found]
