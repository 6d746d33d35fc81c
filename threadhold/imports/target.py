"""Target: write what an import has read into the database, each object in transactions of its own.

What is there already stays as it is, so that an import can be repeated.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.store.base import GetOp, PutOp

from langgraph_runtime_sql import checkpoint
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import threads
from langgraph_runtime_sql.encryption import seal_row
from langgraph_runtime_sql.gate.caller import Caller
from langgraph_runtime_sql.ops.assistants import rows as assistant_rows
from langgraph_runtime_sql.ops.crons import rows as cron_rows
from langgraph_runtime_sql.ops.crons import schedule
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.store.store import SqlStore
from threadhold.imports.sources import Item, Row

# Ids of savers' threads may be any text; those of the API are UUIDs.
_THREADS = UUID("8b3c7e0e-6a53-4f0c-9d0b-4d2f4f1f7a55")
# Channels by which a graph names its next nodes; no part of the values that people see.
_INTERNAL = ("__", "branch:to:", "join:")


def thread_id_of(given: Any) -> UUID:
    """Return the id of an imported thread: the same, or one made of a text that is no UUID."""
    try:
        return UUID(str(given))
    except ValueError:
        return uuid5(_THREADS, str(given))


def date_of(value: Any) -> datetime | None:
    """Return a date that is one already, or text."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value


class Target:
    """The database that an import writes.

    Args:
        database: Open, within `opened_beside_server`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._saver = checkpoint.Checkpointer()
        self._store = SqlStore()

    # --- assistants and crons ---

    def has_assistant(self, given: Row) -> bool:
        """Return whether an assistant is there."""
        key = UUID(str(given["assistant_id"]))
        return self._database.read_sync(lambda conn: assistant_rows.find(conn, key)) is not None

    def add_assistant(
        self, given: Row, versions: Sequence[Row], metadata: Mapping[str, Any]
    ) -> bool:
        """Create an assistant with its versions; the current one stays the current one.

        Returns:
            False if it was there.
        """
        key = UUID(str(given["assistant_id"]))
        ordered = sorted(versions, key=lambda version: version["version"]) or [given]

        def fn(conn: Connection) -> bool:
            if assistant_rows.find(conn, key) is not None:
                return False
            first, *later = (_fields(each, metadata) for each in ordered)
            row = assistant_rows.insert(
                conn, key, {**first, "created_at": date_of(given["created_at"])}
            )
            for each in later:
                row = assistant_rows.add_version(conn, row, each)
            numbers = [each["version"] for each in ordered]
            current = given.get("version")
            if current in numbers and current != numbers[-1]:
                stored = assistant_rows.find_version(conn, key, numbers.index(current) + 1)
                if stored is not None:
                    assistant_rows.make_current(conn, key, stored)
            return True

        return self._database.write_sync(fn)

    def has_cron(self, given: Row) -> bool:
        """Return whether a cron is there."""
        key = UUID(str(given["cron_id"]))
        return self._database.read_sync(lambda conn: cron_rows.find(conn, key)) is not None

    def add_cron(self, given: Row, metadata: Mapping[str, Any], *, enabled: bool) -> bool:
        """Create a cron. Its next run is the next one of its schedule from now on.

        Returns:
            False if it was there.
        """
        thread = given.get("thread_id")

        def fn(conn: Connection) -> bool:
            now = conn.now()
            row = {
                "cron_id": UUID(str(given["cron_id"])),
                "assistant_id": UUID(str(given["assistant_id"])),
                "thread_id": thread_id_of(thread) if thread else None,
                "user_id": given.get("user_id"),
                "creator": None,
                "on_run_completed": given.get("on_run_completed"),
                "schedule": given["schedule"],
                "timezone": given.get("timezone"),
                "end_time": date_of(given.get("end_time")),
                "enabled": enabled,
                "next_run_date": schedule.next_date(given["schedule"], now, given.get("timezone")),
                "payload": given.get("payload") or {},
                "metadata": {**(given.get("metadata") or {}), **metadata},
                "created_at": date_of(given["created_at"]),
                "updated_at": now,
            }
            if cron_rows.find(conn, row["cron_id"]) is not None:
                return False
            cron_rows.insert(conn, row)
            return True

        return self._database.write_sync(fn)

    # --- threads ---

    def places(self, thread_id: UUID) -> set[tuple[str, str]]:
        """Return the checkpoints of a thread that are there."""
        key = str(thread_id)
        return self._database.read_sync(lambda conn: set(checkpoint.places(conn, key)))

    def has_thread(self, thread_id: UUID) -> bool:
        """Return whether a thread is there."""
        found = self._database.read_sync(lambda conn: thread_rows.find(conn, thread_id))
        return found is not None

    def add_thread(self, thread_id: UUID, metadata: Mapping[str, Any], given: Row) -> None:
        """Create a thread without a state, unless it is there."""
        dates = {name: date_of(given.get(name)) for name in ("created_at", "updated_at")}
        dates["state_updated_at"] = date_of(given.get("state_updated_at")) or dates["updated_at"]
        known: dict[str, Any] = {name: each for name, each in dates.items() if each is not None}

        def fn(conn: Connection) -> None:
            if thread_rows.find(conn, thread_id) is None:
                config = given.get("config") or {}
                thread_rows.insert(
                    conn, thread_id, dict(metadata), Caller(), config=config, **known
                )

        self._database.write_sync(fn)

    def add_checkpoint(
        self, thread_id: UUID, found: CheckpointTuple, parent: str | None, paths: Mapping[str, str]
    ) -> None:
        """Store a checkpoint with the writes onto it.

        Args:
            thread_id: The thread here.
            found: The checkpoint, as an exact serializer has read it.
            parent: Its parent, if that was imported.
            paths: Where its tasks stand, by task.
        """
        place = {
            "thread_id": str(thread_id),
            "checkpoint_ns": found.config["configurable"].get("checkpoint_ns") or "",
        }
        here: Any = {"configurable": {**place, "checkpoint_id": found.checkpoint["id"]}}
        writes: dict[str, list[tuple[str, Any]]] = {}
        for task_id, channel, value in found.pending_writes or ():
            writes.setdefault(task_id, []).append((channel, value))
        # Before the checkpoint: one that is there after an interruption has its writes.
        for task_id, each in writes.items():
            self._saver.put_writes(here, each, task_id, paths.get(task_id, ""))
        above: Any = {"configurable": place | ({"checkpoint_id": parent} if parent else {})}
        metadata: Any = found.metadata or {}
        versions = found.checkpoint["channel_versions"]
        self._saver.put(above, found.checkpoint, metadata, versions)

    def finish_thread(self, thread_id: UUID, status: str, interrupts: Any, error: Any) -> None:
        """Copy the newest state of a thread into its row, with its status."""

        def fn(conn: Connection) -> None:
            row = thread_rows.find(conn, thread_id)
            if row is None:
                return
            newest = checkpoint.latest_id(conn, thread_id)
            values = checkpoint.shown_values(conn, thread_id, newest) if newest else None
            if values is not None:
                values = {k: v for k, v in values.items() if not k.startswith(_INTERNAL)}
            documents = {"values": values, "interrupts": interrupts, "error": error}
            conn.execute(
                threads.update()
                .where(threads.c.thread_id == thread_id)
                .values(
                    status=status,
                    resting_status=status,
                    **seal_row(conn, threads, thread_id, row["tenant"], documents),
                )
            )

        self._database.write_sync(fn)

    # --- items ---

    def missing_items(self, items: Sequence[Item]) -> list[Item]:
        """Return the items that are not there."""
        found = self._store.batch([GetOp(each.namespace, each.key) for each in items])
        return [each for each, there in zip(items, found, strict=True) if there is None]

    def add_items(self, items: Iterable[Item]) -> None:
        """Store items, without vectors."""
        self._store.batch([PutOp(each.namespace, each.key, each.value) for each in items])


def _fields(version: Row, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the versioned fields of an assistant's version."""
    fields = {name: version.get(name) for name in assistant_rows.VERSIONED}
    documents = {name: dict(fields[name] or {}) for name in ("config", "context", "metadata")}
    return {**fields, **documents, "metadata": {**documents["metadata"], **metadata}}
