"""Threads: the operations that the API calls."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from langgraph_runtime_sql import checkpoint, request_context, runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.gate import idempotency, limits, reads, writes
from langgraph_runtime_sql.gate.operations import THREAD_CREATE, THREAD_READ, THREAD_UPDATE
from langgraph_runtime_sql.ops import custom_checkpointer
from langgraph_runtime_sql.ops.answers import Rows, rows
from langgraph_runtime_sql.ops.arguments import as_uuid
from langgraph_runtime_sql.ops.runs.end import set_joint_status
from langgraph_runtime_sql.ops.threads import long_values
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.ops.threads.end import delete, prune, sweep_ttl
from langgraph_runtime_sql.ops.threads.search import count, search
from langgraph_runtime_sql.ops.threads.state import State
from langgraph_runtime_sql.ops.threads.stream import Stream


class Threads:
    """Operations on threads. Each has its own transaction; `conn` is only a handle of the API."""

    State = State
    Stream = Stream
    search = staticmethod(search)
    count = staticmethod(count)
    delete = staticmethod(delete)
    prune = staticmethod(prune)
    sweep_ttl = staticmethod(sweep_ttl)
    set_joint_status = staticmethod(set_joint_status)

    @staticmethod
    async def get(
        conn: Any,
        thread_id: Any,
        ctx: Any = None,
        include_ttl: bool = False,
        read_mask_paths: Sequence[str] | None = None,
    ) -> Rows:
        """Yield a thread.

        Raises:
            HTTPException: (404) it does not exist or is hidden.
        """
        identifier = as_uuid(thread_id, "thread ID")
        visible = await reads.admit(ctx, THREAD_READ, {"thread_id": identifier})

        def fn(conn: Connection) -> Row:
            row = thread_rows.require(conn, identifier, visible)
            long_values.complete(conn, [row])
            return row

        row = await runtime.current().database.read(fn)
        return rows([thread_rows.public(row, include_ttl=include_ttl)])

    @staticmethod
    async def storage(conn: Any, thread_id: Any, ctx: Any = None) -> dict[str, Any]:
        """Return how many bytes a thread's checkpoints take, by kind and by channel.

        Raises:
            HTTPException: (404) the thread does not exist or is hidden.
        """
        await Threads.get(conn, thread_id, ctx)
        return await checkpoint.thread_storage(conn, as_uuid(thread_id, "thread ID"))

    @staticmethod
    async def put(
        conn: Any,
        thread_id: Any,
        *,
        metadata: dict[str, Any] | None,
        if_exists: str,
        ttl: dict[str, Any] | None = None,
        ctx: Any = None,
    ) -> Rows:
        """Create a thread, or yield the existing one if `if_exists` is `do_nothing`.

        Raises:
            HTTPException: (409) it exists.
        """
        # Before the handlers, which may create other threads.
        repeatable = idempotency.take()
        identifier = as_uuid(thread_id, "thread ID")
        value: Row = {"thread_id": identifier, "metadata": metadata or {}, "if_exists": if_exists}
        admission = await writes.admit(ctx, THREAD_CREATE, value)
        metadata = dict(value["metadata"] or {})

        def fn(conn: Connection) -> Row:
            if repeatable is not None:
                idempotency.refuse_repetition(conn, repeatable)
            existing = thread_rows.find(conn, identifier)
            if existing is None:
                row = thread_rows.insert(conn, identifier, metadata, admission.caller, ttl=ttl)
                if repeatable is not None:
                    idempotency.note(conn, repeatable, row)
                return row
            hidden = not admission.visible.shows(existing["metadata"])
            if hidden or if_exists != "do_nothing":
                raise thread_rows.ThreadExists(identifier)
            return existing

        found = await admission.write(fn)
        row = thread_rows.public(await long_values.completed(found))
        request_context.unanswered.set(row)
        return rows([row])

    @staticmethod
    async def patch(
        conn: Any,
        thread_id: Any,
        *,
        metadata: dict[str, Any] | None,
        ttl: dict[str, Any] | None = None,
        ctx: Any = None,
        read_mask_paths: Sequence[str] | None = None,
    ) -> Rows:
        """Merge metadata into a thread. Yield nothing if it is missing or may not be changed."""
        identifier = as_uuid(thread_id, "thread ID")
        value: Row = {"thread_id": identifier, "metadata": metadata or {}}
        admission = await writes.admit(ctx, THREAD_UPDATE, value)
        changes = dict(value["metadata"] or {})

        def fn(conn: Connection) -> list[Row]:
            row = thread_rows.find_visible(conn, identifier, admission.visible)
            if row is None:
                return []
            lifetime = thread_rows.ttl_columns(ttl, conn.now()) if ttl else {}
            return [thread_rows.merge_metadata(conn, row, changes, admission.caller, **lifetime)]

        changed = await admission.write(fn)
        return rows([thread_rows.public(await long_values.completed(row)) for row in changed])

    @staticmethod
    async def copy(conn: Any, thread_id: Any, ctx: Any = None) -> Rows:
        """Copy a thread with its metadata, values and checkpoints. Yield nothing if missing."""
        repeatable = idempotency.take()
        source = as_uuid(thread_id, "thread ID", 400)
        target = uuid4()
        visible = await reads.admit(ctx, THREAD_READ, {"thread_id": source})
        value: Row = {"thread_id": target, "metadata": {}, "if_exists": "raise"}
        admission = await writes.admit(ctx, THREAD_CREATE, value)
        changes = dict(value["metadata"] or {})

        def fn(conn: Connection) -> list[Row]:
            if repeatable is not None:
                idempotency.refuse_repetition(conn, repeatable)
            row = thread_rows.find_visible(conn, source, visible)
            if row is None:
                return []
            copied = thread_rows.insert(
                conn,
                target,
                # The handler names the copy's owner, requester may not own the source.
                {**row["metadata"], **changes},
                admission.caller,
                # The copy has no runs.
                status=row["resting_status"],
                values=row["values"],
                long_values=row["long_values"],
                interrupts=row["interrupts"],
            )
            checkpoint.copy_thread(conn, source, target)
            limits.thread_copy(conn, copied)
            if repeatable is not None:
                idempotency.note(conn, repeatable, copied)
            return [copied]

        copied = await admission.write(fn)
        if copied:
            with admission.opened():
                await custom_checkpointer.copy_thread(source, target)
        return rows([thread_rows.public(await long_values.completed(row)) for row in copied])
