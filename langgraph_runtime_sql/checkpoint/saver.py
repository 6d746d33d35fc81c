"""Checkpointer: the checkpoint saver that the runtime gives to graphs.

Each operation is written once, as a function of a connection. A private method has the parameters of
the operation and returns this function; the caller's task calls it. The async and the blocking
method pass their arguments to it, and the function to the database. They name each parameter, because
langgraph looks for `task_path` in the signature before it tells the order of parallel tasks.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, cast

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
from langgraph.checkpoint.sqlite import SqliteSaver

from langgraph_runtime_sql import process, request_context
from langgraph_runtime_sql.checkpoint import history, parts, pruning, sealing, undo
from langgraph_runtime_sql.checkpoint.admission import admission
from langgraph_runtime_sql.checkpoint.metadata import checkpoint_metadata, matches
from langgraph_runtime_sql.checkpoint.serialization import UnpackHook, serializer
from langgraph_runtime_sql.checkpoint.stock import stock_saver
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.encryption import master
from langgraph_runtime_sql.pauses import Pauses

# The metadata keys that SQLite's JSON paths take literally.
_SQL_KEY = re.compile(r"[A-Za-z0-9_-]+")
_INT64 = range(-(2**63), 2**63)
# The writes about a failed task, beside its output.
_ABOUT_TASKS = frozenset({*WRITES_IDX_MAP, "__error_source_node__"})
_IDS = ("thread_id", "checkpoint_id")


class Checkpointer(BaseCheckpointSaver[str]):
    """langgraph's saver on the runtime's database. Cheap: made for each run and request.

    The async methods work on any event loop, the others block any thread.

    Args:
        conn: Ignored; each call is a transaction of its own.
        unpack_hook: Decodes msgpack extension types, instead of the classes they name.
        use_direct_connection: Ignored; there is only one kind.
        on_read: Called with the size in bytes of each state that a list reads. What it raises ends the
            list, which is a search then: few run at a time.

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
        # The checkpoints that this saver stored, by run: writes onto these need no undo.
        self._own: set[tuple[str, undo.Place]] = set()

    get_next_version = SqliteSaver.get_next_version

    @property
    def _database(self) -> Database:
        # Looked up at each call, because graphs keep their saver for longer than one lifespan.
        found: Database = process.current().database
        return found

    # --- reading ---

    def _reading(self, conn: Connection, config: RunnableConfig) -> sealing.Opener:
        return sealing.reading(conn, self.serde, config["configurable"]["thread_id"])

    def _get_tuple(self, config: RunnableConfig) -> Callable[[Connection], CheckpointTuple | None]:
        config = _with_text_ids(config)

        def run(conn: Connection) -> CheckpointTuple | None:
            found = stock_saver(conn, self._reading(conn, config)).get_tuple(config)
            return None if found is None else sealing.opened(conn, found)

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
        config = None if config is None else _with_text_ids(config)
        before = None if before is None else _with_text_ids(before)

        def run(conn: Connection) -> list[CheckpointTuple]:
            if config is None or not config["configurable"].get("thread_id"):
                places = [_in_thread(config, each) for each in history.thread_ids(conn)]
            else:
                places = [config]
            found = [each for place in places for each in run_in_thread(conn, place)]
            if len(places) != 1:
                found.sort(key=lambda each: each.checkpoint["id"], reverse=True)
            return found[:limit]

        def run_in_thread(conn: Connection, place: RunnableConfig) -> list[CheckpointTuple]:
            in_sql = {k: v for k, v in (filter or {}).items() if _fits_sql(conn, k, v)}
            others = {k: v for k, v in (filter or {}).items() if k not in in_sql}
            reading = self._reading(conn, place)
            found = stock_saver(conn, reading).list(
                place, filter=in_sql, before=before, limit=None if others else limit
            )
            opened = (sealing.opened(conn, each) for each in self._paced(found, reading))
            return list(islice((t for t in opened if matches(t.metadata, others)), limit))

        return run

    def _paced(
        self, found: Iterator[CheckpointTuple], reading: sealing.Opener
    ) -> Iterator[CheckpointTuple]:
        """Yield what is found, with pauses, and pass the size of each to `on_read`."""
        before, pauses = 0, Pauses()
        for each in found:
            if self._on_read is not None:
                self._on_read(reading.read_bytes - before)
            before = reading.read_bytes
            yield each
            pauses.take()

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
        config = _with_text_ids(config)
        return lambda conn: stock_saver(
            conn, self._reading(conn, config)
        ).get_delta_channel_history(config=config, channels=channels)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return self._database.read_sync(self._delta_history(config, channels))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await self._database.read(self._delta_history(config, channels))

    # --- writing ---

    def _put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Callable[[Connection], RunnableConfig]:
        admit, owner = admission(checkpoint["id"]), request_context.claim.get()
        where = _location(config)
        if owner is not None:
            # Recorded now, so that the writes to this checkpoint need not wait for it.
            thread_id, ns, _ = _place(where)
            self._own.add((owner.run_id, (thread_id, ns, checkpoint["id"])))
        about = checkpoint_metadata(config, metadata, owner.run_id if owner else None)
        # Serialized now: the graph continues and may change what it put.
        place = " ".join(_place(where)[:2])
        if self._database.dialect_name == "sqlite":
            encoded = parts.encode(self.serde.dumps_typed, checkpoint, place)
            typed = {"id": checkpoint["id"], "typed": encoded}
        else:
            from langgraph_runtime_sql.checkpoint import postgres

            typed = postgres.serialized(self.serde, checkpoint, new_versions, place=place)
            about = postgres.storable(about)

        def run(conn: Connection) -> RunnableConfig:
            admit(conn)
            if owner is not None:
                # After a crash the next attempt does not repeat the events of this step.
                process.current().bus.writers.store(conn, owner.run_id)
            thread_id = where["configurable"]["thread_id"]
            ns = where["configurable"]["checkpoint_ns"]
            saver = stock_saver(conn, sealing.storing(conn, thread_id, ns, checkpoint["id"]))
            stored = cast(CheckpointMetadata, sealing.seal_metadata(conn, thread_id, about))
            return saver.put(where, cast(Checkpoint, typed), stored, new_versions)

        return run

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return self._database.write_sync(self._put(config, checkpoint, metadata, new_versions))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await self._database.write(self._put(config, checkpoint, metadata, new_versions))

    def _put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> Callable[[Connection], None]:
        admit, owner, where = admission(), request_context.claim.get(), _location(config)
        place = _place(where)
        typed = [
            (channel, {"typed": self.serde.dumps_typed(value)})
            for channel, value in _complete_writes(writes)
        ]

        def run(conn: Connection) -> None:
            admit(conn)
            if owner is not None and (owner.run_id, place) not in self._own:
                undo.record(conn, owner.run_id, place, [c for c, _ in typed], task_id)
            saver = stock_saver(conn, sealing.writing_tasks(conn, place[0]))
            saver.put_writes(where, typed, task_id, task_path)

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


def _pruning(thread_ids: Sequence[str], strategy: str) -> Callable[[Connection], None]:
    each = {"keep_latest": pruning.prune_thread, "delete": history.delete_thread}.get(strategy)
    if each is None:
        raise ValueError(f"Unknown prune strategy {strategy!r}: use 'keep_latest' or 'delete'.")

    def run(conn: Connection) -> None:
        for thread_id in thread_ids:
            each(conn, thread_id)

    return run


def _with_text_ids(config: RunnableConfig) -> RunnableConfig:
    """Return `config` with its ids as text; callers also pass UUIDs."""
    configurable = config["configurable"]
    ids = {key: str(configurable[key]) for key in _IDS if configurable.get(key)}
    return {**config, "configurable": {**configurable, **ids}}


def _location(config: RunnableConfig) -> RunnableConfig:
    """Return only the location of a write, so that the library adds no other metadata."""
    configurable = config["configurable"]
    parent = configurable.get("checkpoint_id")
    return {
        "configurable": {
            "thread_id": str(configurable["thread_id"]),
            "checkpoint_ns": configurable.get("checkpoint_ns") or "",
            "checkpoint_id": None if parent is None else str(parent),
        }
    }


def _complete_writes(writes: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return a task's writes, without the output of a failed or interrupted task.

    From a part of its output langgraph concludes that the task has finished. A resumed run would
    then skip the task's remaining branches.
    """
    if any(channel == ERROR for channel, _ in writes):
        return [write for write in writes if write[0] in _ABOUT_TASKS]
    return list(writes)


def _in_thread(config: RunnableConfig | None, thread_id: str) -> RunnableConfig:
    """Return `config` for one thread."""
    configurable = {} if config is None else config["configurable"]
    return {"configurable": {**configurable, "thread_id": thread_id}}


def _place(location: RunnableConfig) -> undo.Place:
    configurable = location["configurable"]
    return configurable["thread_id"], configurable["checkpoint_ns"], configurable["checkpoint_id"]


def _fits_sql(conn: Connection, key: str, value: Any) -> bool:
    """Return whether the library's SQL compares this entry as JSON equality does."""
    if key not in sealing.PLAIN_METADATA and master.active():
        # The entry may be encrypted.
        return False
    if conn.dialect_name != "sqlite":
        # Postgres tests containment, which for strings is equality. It tells absence from null.
        return isinstance(value, str) and "\0" not in value
    if _SQL_KEY.fullmatch(key) is None:
        return False
    if isinstance(value, int):
        return value in _INT64
    return value is None or isinstance(value, str | float)
