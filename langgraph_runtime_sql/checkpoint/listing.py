"""Listing: a thread's checkpoints as langgraph's tuples, the newest first, inside a transaction."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol

from langgraph_runtime_sql.checkpoint import reading, rows
from langgraph_runtime_sql.checkpoint.metadata import matches
from langgraph_runtime_sql.checkpoint.reading import Found, Reader
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.pauses import Pauses


class Wanted(NamedTuple):
    """Which checkpoints a list contains; None stands for all.

    Attributes:
        thread_id: Those of a thread.
        ns: Those of a namespace.
        checkpoint_id: The one of this id.
        before: Those before this id.
        filter: Those whose metadata has these entries.
    """

    thread_id: str | None
    ns: str | None
    checkpoint_id: str | None
    before: str | None
    filter: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        config: RunnableConfig | None,
        filter: Mapping[str, Any] | None,
        before: RunnableConfig | None,
    ) -> "Wanted":
        """Return what the arguments of `BaseCheckpointSaver.list` ask for."""
        asked = {} if config is None else config["configurable"]
        end = {} if before is None else before["configurable"]
        ids = (asked.get("thread_id"), asked.get("checkpoint_id"), end.get("checkpoint_id"))
        thread_id, checkpoint_id, until = (str(each) if each else None for each in ids)
        return cls(thread_id, asked.get("checkpoint_ns"), checkpoint_id, until, filter or {})


def tuples(
    conn: Connection,
    serde: SerializerProtocol,
    thread_id: str,
    wanted: Wanted,
    limit: int | None,
    on_read: Callable[[int], None] | None,
) -> Iterator[CheckpointTuple]:
    """Yield a thread's checkpoints.

    Args:
        conn: The transaction.
        serde: Reads the values.
        thread_id: The thread.
        wanted: Which ones.
        limit: How many the caller takes at most.
        on_read: Called with the bytes of each.

    Raises:
        DamagedCheckpoint, KeyErased, CannotDecrypt: as `Reader.find`.
        SearchTimeout: the transaction's time limit was reached.
    """
    reader, pauses = Reader(conn, thread_id), Pauses()
    for row in stored_rows(conn, thread_id, wanted, limit):
        version = reader.version(row["checkpoint_ns"], row)
        conn.check_deadline()
        about, _ = reading.unpacked(version.plain)
        if matches(about, wanted.filter):
            if on_read is not None:
                on_read(len(version.plain))
            place = thread_id, row["checkpoint_ns"], row["checkpoint_id"]
            onto = rows.ordered(conn.fetchall(rows.WRITES, rows.place_params(place)))
            yield tuple_of(reader, serde, row["checkpoint_ns"], Found(row, version, onto))
        pauses.take()


def stored_rows(
    conn: Connection, thread_id: str, wanted: Wanted, limit: int | None
) -> Iterator[Row]:
    """Yield the rows of a thread's checkpoints, the newest first. Arguments: `tuples`.

    Of the filter only the run applies.
    """
    given: dict[str, Any] = {"thread": thread_id}
    if wanted.ns is not None:
        given["ns"] = wanted.ns
    if wanted.before is not None:
        given["before"] = wanted.before
    if (run_id := wanted.filter.get("run_id")) is not None:
        given["run"] = run_id
    if wanted.checkpoint_id is not None:
        yield from _at(conn, thread_id, wanted, given)
        return
    # A filter passes over some, so that more must be read.
    count = rows.PAGE if limit is None or wanted.filter else min(limit, rows.PAGE)
    continued = False
    while True:
        query = rows.listing(
            in_namespace="ns" in given,
            before="before" in given,
            continued=continued,
            of_run="run" in given,
        )
        page = conn.fetchall(query, {**given, "count": count})
        yield from page
        if len(page) < count:
            return
        given |= {"id": page[-1]["checkpoint_id"], "after": page[-1]["checkpoint_ns"]}
        continued = True


def _at(conn: Connection, thread_id: str, wanted: Wanted, given: dict[str, Any]) -> Iterator[Row]:
    found = conn.fetchall(rows.AT_ID, {"thread": thread_id, "id": wanted.checkpoint_id})
    for row in found:
        fits_ns = wanted.ns in (None, row["checkpoint_ns"])
        fits_run = given.get("run") in (None, row["run_id"])
        if fits_ns and fits_run and (wanted.before is None or wanted.before > row["checkpoint_id"]):
            yield row


def tuple_of(
    reader: Reader,
    serde: SerializerProtocol,
    ns: str,
    found: Found,
    config: RunnableConfig | None = None,
) -> CheckpointTuple:
    """Return a checkpoint as langgraph's tuple.

    Args:
        reader: The reader that has read it.
        serde: Reads the values.
        ns: The namespace.
        found: The checkpoint.
        config: The configuration that asked for it by its id; it comes back as it is.
    """
    thread_id = reader.thread_id
    about, checkpoint = reading.loaded(found.version, serde)
    parent = found.row["parent_id"]
    return CheckpointTuple(
        config or config_of((thread_id, ns, found.version.id)),
        cast(Checkpoint, checkpoint),
        cast(CheckpointMetadata, about),
        config_of((thread_id, ns, parent)) if parent else None,
        [
            (
                each["task_id"],
                each["channel"],
                serde.loads_typed(reader.opener.plain(each["type"], bytes(each["value"]))),
            )
            for each in found.writes
        ],
    )


def config_of(place: rows.Place) -> RunnableConfig:
    """Return the configuration that names a checkpoint."""
    thread_id, ns, checkpoint_id = place
    where = {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}
    return {"configurable": where}
