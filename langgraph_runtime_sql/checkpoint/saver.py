"""Checkpointer: the checkpoint saver that the runtime gives to graphs.

Each operation is written once, as a function of a connection. A private method has the parameters of
the operation and returns this function; the caller's task calls it. The async and the blocking
method pass their arguments to it, and the function to the database. They name each parameter, because
langgraph looks for `task_path` in the signature before it tells the order of parallel tasks.
"""

import asyncio
import random
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.types import ERROR

from langgraph_runtime_sql import process, request_context
from langgraph_runtime_sql.checkpoint import (
    chains,
    deltas,
    history,
    lines,
    listing,
    messages,
    pruning,
    reading,
    sealing,
    undo,
)
from langgraph_runtime_sql.checkpoint.admission import admission
from langgraph_runtime_sql.checkpoint.chains import Line
from langgraph_runtime_sql.checkpoint.lines import Lines
from langgraph_runtime_sql.checkpoint.metadata import checkpoint_metadata
from langgraph_runtime_sql.checkpoint.rows import Place
from langgraph_runtime_sql.checkpoint.serialization import UnpackHook, serializer
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database

# The writes about a failed task, beside its output.
_ABOUT_TASKS = frozenset({*WRITES_IDX_MAP, "__error_source_node__"})
# Values from this size, in bytes, are compressed beside the event loop.
_LARGE = 64 * 1024


class _Put(NamedTuple):
    """A checkpoint to put: where, and its columns and value."""

    place: Place
    parent: str | None
    value: bytes
    columns: dict[str, Any]

    def config(self) -> RunnableConfig:
        return listing.config_of(self.place)


class Checkpointer(BaseCheckpointSaver[str]):
    """langgraph's saver on the runtime's database. Cheap: made for each run and request.

    The async methods work on any event loop, the others block any thread.

    Args:
        conn: Ignored; each call is a transaction of its own.
        unpack_hook: Decodes msgpack extension types, instead of the classes they name.
        use_direct_connection: Ignored; there is only one kind.
        on_read: Called with the size in bytes of each state that a list returns. What it raises ends
            the list, which is a search then: few run at a time.

    Raises:
        NotImplementedError: custom encryption is configured.
    """

    def __init__(
        self,
        conn: Any = None,
        *,
        unpack_hook: UnpackHook | None = None,
        use_direct_connection: bool = False,
        on_read: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__(serde=serializer(unpack_hook))
        self._on_read = on_read
        self._lines = Lines()
        # The checkpoints that this saver stored, by run: writes onto these need no undo.
        self._own: set[tuple[str, Place]] = set()

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return a version that is larger than `current`, and that no fork of the thread has."""
        number = 0 if current is None else int(str(current).partition(".")[0])
        return f"{number + 1:032}.{random.random():016}"

    @property
    def _database(self) -> Database:
        # Looked up at each call, because graphs keep their saver for longer than one lifespan.
        found: Database = process.current().database
        return found

    # --- reading ---

    def _get_tuple(self, config: RunnableConfig) -> Callable[[Connection], CheckpointTuple | None]:
        thread_id, ns, checkpoint_id = _place(config)

        def run(conn: Connection) -> CheckpointTuple | None:
            reader = reading.Reader(conn, thread_id)
            found = reader.find(ns, checkpoint_id)
            if found is None:
                return None
            line = reader.line(ns, found.version.id)
            self._lines.keep(thread_id, ns, line)
            lines.remember(thread_id, ns, line, reading.packed_of(found.row))
            given = config if checkpoint_id else None
            return listing.tuple_of(reader, self.serde, ns, found, given)

        return run

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self._database.read_sync(self._get_tuple(config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self._database.read(self._get_tuple(config))

    def _list(
        self,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Callable[[Connection], list[CheckpointTuple]]:
        wanted = listing.Wanted.of(config, filter, before)

        def run(conn: Connection) -> list[CheckpointTuple]:
            threads = history.thread_ids(conn) if wanted.thread_id is None else [wanted.thread_id]
            found = [
                each
                for thread_id in threads
                for each in islice(
                    listing.tuples(conn, self.serde, thread_id, wanted, limit, self._on_read), limit
                )
            ]
            if len(threads) != 1:
                found.sort(key=lambda each: each.checkpoint["id"], reverse=True)
            return found[:limit]

        return run

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        yield from self._database.read_sync(self._list(config, filter, before, limit))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        read = self._list(config, filter, before, limit)
        if self._on_read is None:
            tuples = await self._database.read(read)
        else:
            tuples = await self._database.search(read, "Ask for fewer states with `limit`.")
        for found in tuples:
            yield found

    def _delta_history(
        self, config: RunnableConfig, channels: Sequence[str]
    ) -> Callable[[Connection], Mapping[str, DeltaChannelHistory]]:
        place = _place(config)
        return lambda conn: deltas.history(conn, self.serde, place, channels)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return self._database.read_sync(self._delta_history(config, channels))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await self._database.read(self._delta_history(config, channels))

    # --- writing ---

    def _prepared(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
    ) -> _Put:
        """Serialize a checkpoint now: the graph continues and may change what it put."""
        thread_id, ns, parent = _place(config)
        place, owner = (thread_id, ns, str(checkpoint["id"])), request_context.claim.get()
        if owner is not None:
            # Recorded now, so that the writes to this checkpoint need not wait for it.
            self._own.add((owner.run_id, place))
        about = checkpoint_metadata(config, metadata, owner.run_id if owner else None)
        data = messages.encoded(self.serde.dumps_typed, checkpoint)
        return _Put(place, parent, reading.packed(about, data), history.columns_of(about))

    def _missing_line(self, put: _Put) -> Callable[[Connection], Line] | None:
        """Return what reads the line of a checkpoint's parent, or None if it is known."""
        thread_id, ns, _ = put.place
        if self._lines.after(thread_id, ns, put.parent) is not None:
            return None
        return lambda conn: reading.Reader(conn, thread_id).line_after(ns, put.parent)

    def _put(self, put: _Put, read: Line | None) -> Callable[[Connection], RunnableConfig]:
        admit, owner = admission(put.place[2]), request_context.claim.get()
        thread_id, ns, checkpoint_id = put.place
        line = self._lines.after(thread_id, ns, put.parent) if read is None else read
        version, packed = chains.add(line or (), checkpoint_id, put.value)
        extended = chains.extended(line or (), version)
        self._lines.keep(thread_id, ns, extended)
        lines.remember(thread_id, ns, extended, packed)
        row = history.row_of(put.place, put.parent, version, put.columns)
        is_first = True

        def run(conn: Connection) -> RunnableConfig:
            nonlocal is_first
            admit(conn)
            if owner is not None:
                # After a crash the next attempt does not repeat the events of this step.
                process.current().bus.writers.store(conn, owner.run_id)
            # On Postgres a collision arrives with the commit, and the operation is run again.
            if (conn.locks and not is_first) or not _added(conn, row, packed):
                history.replace(conn, row, put.value)
            is_first = False
            return put.config()

        return run

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        put = self._prepared(config, checkpoint, metadata)
        missing = self._missing_line(put)
        line = None if missing is None else self._database.read_sync(missing)
        return self._database.write_sync(self._put(put, line))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        put = self._prepared(config, checkpoint, metadata)
        missing = self._missing_line(put)
        line = None if missing is None else await self._database.read(missing)
        is_large = len(put.value) >= _LARGE
        write = await asyncio.to_thread(self._put, put, line) if is_large else self._put(put, line)
        return await self._database.write(write)

    def _put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> Callable[[Connection], None]:
        admit, owner = admission(), request_context.claim.get()
        thread_id, ns, checkpoint_id = _place(config)
        place = thread_id, ns, checkpoint_id or ""
        complete = _complete_writes(writes)
        typed = [
            (channel, *sealing.compressed(*self.serde.dumps_typed(value)))
            for channel, value in complete
        ]

        def run(conn: Connection) -> None:
            admit(conn)
            if owner is not None and (owner.run_id, place) not in self._own:
                undo.record(conn, owner.run_id, place, [c for c, _ in complete], task_id)
            history.add_writes(conn, place, typed, task_id, task_path)

        return run

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        self._database.write_sync(self._put_writes(config, writes, task_id, task_path))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        await self._database.write(self._put_writes(config, writes, task_id, task_path))

    # --- whole threads and runs ---

    def delete_thread(self, thread_id: str) -> None:
        self._database.write_sync(lambda conn: history.delete_thread(conn, thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        await self._database.write(lambda conn: history.delete_thread(conn, thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        self._database.write_sync(lambda conn: history.delete_for_runs(conn, run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self._database.write(lambda conn: history.delete_for_runs(conn, run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        ids = source_thread_id, target_thread_id
        self._database.write_sync(lambda conn: history.copy_thread(conn, *ids))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        ids = source_thread_id, target_thread_id
        await self._database.write(lambda conn: history.copy_thread(conn, *ids))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        self._database.write_sync(_pruning(thread_ids, strategy))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await self._database.write(_pruning(thread_ids, strategy))


def _added(conn: Connection, row: dict[str, Any], packed: chains.Packed) -> bool:
    """Store a new checkpoint; return whether its place was free and its base there.

    On Postgres that is seen at the commit.
    """
    try:
        history.add(conn, row, packed)
    except sqlite3.IntegrityError:
        return False
    return True


def _pruning(thread_ids: Sequence[str], strategy: str) -> Callable[[Connection], None]:
    each = {"keep_latest": pruning.prune_thread, "delete": history.delete_thread}.get(strategy)
    if each is None:
        raise ValueError(f"Unknown prune strategy {strategy!r}: use 'keep_latest' or 'delete'.")

    def run(conn: Connection) -> None:
        for thread_id in thread_ids:
            each(conn, thread_id)

    return run


def _place(config: RunnableConfig) -> tuple[str, str, str | None]:
    """Return the thread, namespace and checkpoint of a configuration, as text: some are UUIDs."""
    configurable = config["configurable"]
    checkpoint_id = configurable.get("checkpoint_id")
    return (
        str(configurable["thread_id"]),
        configurable.get("checkpoint_ns") or "",
        str(checkpoint_id) if checkpoint_id else None,
    )


def _complete_writes(writes: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return a task's writes, without the output of a failed or interrupted task.

    From a part of its output langgraph concludes that the task has finished. A resumed run would
    then skip the task's remaining branches.
    """
    if any(channel == ERROR for channel, _ in writes):
        return [write for write in writes if write[0] in _ABOUT_TASKS]
    return list(writes)
