"""Threads: what the API does with them."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Select, and_, func, or_, select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import bus, checkpoint, database, filters
from langgraph_runtime_sql.clock import now
from langgraph_runtime_sql.connection import Connection
from langgraph_runtime_sql.ops import custom_checkpointer, thread_rows
from langgraph_runtime_sql.ops.access import Filter, Rows, as_uuid, authorize, caller, pick, rows
from langgraph_runtime_sql.ops.run_end import set_joint_status
from langgraph_runtime_sql.ops.thread_state import State
from langgraph_runtime_sql.ops.thread_stream import Stream
from langgraph_runtime_sql.statements import Row
from langgraph_runtime_sql.tables import runs, threads

SORTABLE = ("thread_id", "created_at", "updated_at", "state_updated_at", "status")


class Threads:
    """Operations on threads. `conn` is the interface's handle; each owns its transaction."""

    State = State
    Stream = Stream
    set_joint_status = staticmethod(set_joint_status)

    @staticmethod
    async def search(
        conn: Any,
        *,
        ids: Sequence[Any] | None = None,
        metadata: dict[str, Any] | None,
        values: dict[str, Any] | None,
        status: str | None,
        limit: int,
        offset: int,
        sort_by: str | None = None,
        sort_order: str | None = None,
        select: Sequence[str] | None = None,
        extract: dict[str, str] | None = None,
        ctx: Any = None,
    ) -> tuple[Rows, int | None]:
        """Threads that match, and the offset of the next page or None."""
        limit, offset = int(limit), int(offset)
        asked = {
            "metadata": {} if metadata is None else metadata,
            "values": {} if values is None else values,
            "status": status,
            "limit": limit,
            "offset": offset,
        }
        permitted = await authorize(ctx, "threads", "search", asked)
        wanted = [as_uuid(each, "thread ID", 400) for each in ids] if ids else None

        def fn(conn: Connection) -> list[Row]:
            statement, sparse = _matching(
                conn, asked["metadata"], asked["values"], status, permitted, wanted
            )
            ordered = _ordered(statement, sort_by, sort_order, sparse=sparse)
            return conn.fetchall(ordered.limit(limit + 1).offset(offset))

        found = await database.current().read(fn)
        cursor = offset + limit if len(found) > limit else None
        page = [thread_rows.public(row) for row in found[:limit]]
        return rows([_project(row, select, extract) for row in page]), cursor

    @staticmethod
    async def count(
        conn: Any,
        *,
        metadata: dict[str, Any] | None = None,
        values: dict[str, Any] | None = None,
        status: str | None = None,
        ctx: Any = None,
    ) -> int:
        """How many threads match."""
        asked = {
            "metadata": {} if metadata is None else metadata,
            "values": {} if values is None else values,
            "status": status,
            "limit": 0,
            "offset": 0,
        }
        permitted = await authorize(ctx, "threads", "search", asked)

        def fn(conn: Connection) -> int:
            statement, _ = _matching(
                conn, asked["metadata"], asked["values"], status, permitted, None
            )
            ids = statement.with_only_columns(threads.c.thread_id).subquery()
            return int(conn.scalar(_count(ids)))

        return await database.current().read(fn)

    @staticmethod
    async def get(
        conn: Any,
        thread_id: Any,
        ctx: Any = None,
        include_ttl: bool = False,
        read_mask_paths: Sequence[str] | None = None,
    ) -> Rows:
        """One thread.

        Raises:
            HTTPException: (404) it does not exist or may not be seen.
        """
        row = await permitted_thread(thread_id, ctx, "read")
        return rows([thread_rows.public(row, include_ttl=include_ttl)])

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
        """Create a thread, or yield the one that is there with `if_exists="do_nothing"`.

        Raises:
            HTTPException: (409) it exists.
        """
        identifier = as_uuid(thread_id, "thread ID")
        asked = {"thread_id": identifier, "metadata": metadata or {}, "if_exists": if_exists}
        permitted = await authorize(ctx, "threads", "create", asked)
        metadata, who = dict(asked["metadata"] or {}), caller(ctx)

        def fn(conn: Connection) -> Row:
            existing = thread_rows.find(conn, identifier)
            if existing is None:
                return thread_rows.insert(conn, identifier, metadata, who, ttl=ttl)
            hidden = not filters.allows(permitted, existing["metadata"])
            if hidden or if_exists != "do_nothing":
                raise HTTPException(409, f"Thread with ID {identifier} already exists")
            return existing

        row = thread_rows.public(await database.current().write(fn))
        thread_rows.unanswered.set(row)
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
        """Merge metadata into a thread; no row when it is missing or may not be changed."""
        identifier = as_uuid(thread_id, "thread ID")
        asked = {"thread_id": identifier, "metadata": metadata or {}}
        permitted = await authorize(ctx, "threads", "update", asked)
        changes, who = dict(asked["metadata"] or {}), caller(ctx)

        def fn(conn: Connection) -> list[Row]:
            row = thread_rows.find_permitted(conn, identifier, permitted)
            if row is None:
                return []
            lifetime = thread_rows.ttl_columns(ttl, now()) if ttl else {}
            return [thread_rows.merge_metadata(conn, row, changes, who, **lifetime)]

        return rows([thread_rows.public(row) for row in await database.current().write(fn)])

    @staticmethod
    async def delete(conn: Any, thread_id: Any, ctx: Any = None) -> Rows:
        """Delete a thread with all it holds; a run in flight is told to stop.

        Raises:
            HTTPException: (404) it does not exist or may not be deleted.
        """
        identifier = as_uuid(thread_id, "thread ID")
        claim = checkpoint.claim.get()
        # A temporary thread goes with its run, whatever its user's handlers say.
        internal = claim is not None and claim.temporary_thread_id == str(identifier)
        asked = {"thread_id": identifier}
        permitted = None if internal else await authorize(ctx, "threads", "delete", asked)

        def fn(conn: Connection) -> None:
            if thread_rows.find_permitted(conn, identifier, permitted) is None:
                raise HTTPException(404, f"Thread with ID {identifier} not found")
            _stop_runs(conn, identifier, spare=claim.run_id if internal and claim else None)
            thread_rows.delete(conn, identifier)

        await database.current().write(fn)
        await custom_checkpointer.delete_thread(identifier)
        return rows([identifier])  # type: ignore[list-item]  # the interface yields the bare id

    @staticmethod
    async def prune(
        thread_ids: Sequence[Any],
        strategy: str = "delete",
        batch_size: int = 100,
        ctx: Any = None,
    ) -> int:
        """Delete threads, or all but their newest checkpoint with `keep_latest`.

        Raises:
            HTTPException: (404) a handler's filter applies and hides any of them.
        """
        wanted = [as_uuid(each, "thread ID") for each in thread_ids]
        if not wanted:
            return 0
        permitted = await authorize(ctx, "threads", "delete", {"thread_ids": list(thread_ids)})

        def check(conn: Connection) -> None:
            if permitted and not all(
                thread_rows.find_permitted(conn, each, permitted) for each in wanted
            ):
                raise HTTPException(404, "At least one thread not found or not authorized")

        def prune_one(conn: Connection, identifier: UUID) -> bool:
            if thread_rows.find_permitted(conn, identifier, permitted) is None:
                return False
            if strategy == "keep_latest":
                checkpoint.prune_thread(conn, str(identifier))
                return True
            _stop_runs(conn, identifier)
            return thread_rows.delete(conn, identifier)

        await database.current().read(check)
        pruned = 0
        for start in range(0, len(wanted), batch_size):
            batch = wanted[start : start + batch_size]
            pruned += await database.current().write(
                lambda conn, batch=batch: sum(prune_one(conn, each) for each in batch)
            )
        return pruned

    @staticmethod
    async def copy(conn: Any, thread_id: Any, ctx: Any = None) -> Rows:
        """A new thread with a copy of the metadata, values and checkpoints; none if missing."""
        source = as_uuid(thread_id, "thread ID", 400)
        target = uuid4()
        permitted = await authorize(ctx, "threads", "read", {"thread_id": source})
        await authorize(ctx, "threads", "create", {"thread_id": target})
        who = caller(ctx)

        def fn(conn: Connection) -> list[Row]:
            row = thread_rows.find_permitted(conn, source, permitted)
            if row is None:
                return []
            # A copy has no run of its own, so what a run in flight holds up is idle here.
            status = "idle" if row["status"] == "busy" else row["status"]
            copied = thread_rows.insert(
                conn,
                target,
                dict(row["metadata"]),
                who,
                status="interrupted" if row["interrupts"] else status,
                values=row["values"],
                interrupts=row["interrupts"],
            )
            checkpoint.copy_thread(conn, str(source), str(target))
            return [copied]

        copied = await database.current().write(fn)
        if copied:
            await custom_checkpointer.copy_thread(source, target)
        return rows([thread_rows.public(row) for row in copied])

    @staticmethod
    async def sweep_ttl(
        conn: Any = None, *, limit: int | None = None, batch_size: int = 100
    ) -> tuple[int, int]:
        """End the life of threads whose time has come.

        Returns:
            How many were looked at, and how many were deleted or pruned.
        """
        done = 0
        while limit is None or done < limit:
            size = batch_size if limit is None else min(batch_size, limit - done)
            swept = await database.current().write(lambda conn, size=size: _sweep(conn, size))
            done += swept
            if swept < size:
                break
        return done, done


async def permitted_thread(thread_id: Any, ctx: Any, action: str) -> Row:
    """The stored row of a thread that the caller may `action`.

    Raises:
        HTTPException: (404) it does not exist or the caller may not.
    """
    identifier = as_uuid(thread_id, "thread ID")
    permitted = await authorize(ctx, "threads", action, {"thread_id": identifier})
    row = await database.current().read(
        lambda conn: thread_rows.find_permitted(conn, identifier, permitted)
    )
    if row is None:
        raise HTTPException(404, f"Thread with ID {identifier} not found")
    return row


def _count(ids: Any) -> Select[Any]:
    return select(func.count().label("n")).select_from(ids)


def _matching(
    conn: Connection,
    metadata: dict[str, Any],
    values: dict[str, Any],
    status: str | None,
    permitted: Filter,
    ids: list[UUID] | None,
) -> tuple[Select[Any], bool]:
    """The threads that match, and whether they are found from few rows."""
    conditions, sparse = filters.thread_conditions(conn, metadata, permitted)
    if values:
        conditions.append(filters.has(threads.c["values"], values))
    if status:
        conditions.append(threads.c.status == status)
    if ids is not None:
        conditions.append(threads.c.thread_id.in_(ids))
        sparse = True
    return select(threads).where(and_(True, *conditions)), sparse


def _ordered(
    statement: Select[Any], sort_by: str | None, sort_order: str | None, *, sparse: bool
) -> Select[Any]:
    column: Any = threads.c[sort_by if sort_by in SORTABLE else "updated_at"]
    if sparse:
        # Hide the column from the planner, which would else walk its index
        # through every thread rather than sort the few that match.
        column = func.coalesce(column, None)
    ascending = (sort_order or "").upper() == "ASC"
    tie = threads.c.thread_id
    if ascending:
        return statement.order_by(column.asc(), tie.asc())
    return statement.order_by(column.desc(), tie.desc())


def _project(row: Row, select: Sequence[str] | None, extract: dict[str, str] | None) -> Row:
    shown = pick(row, select)
    if extract:
        from langgraph_api.utils.extract import extract_path_value

        shown = {
            **shown,
            "extracted": {name: extract_path_value(row, path) for name, path in extract.items()},
        }
    return shown


def _stop_runs(conn: Connection, thread_id: UUID, spare: str | None = None) -> None:
    """Tell the workers of a thread's runs to stop once the transaction is committed."""
    in_flight = conn.fetchall(
        select(runs.c.run_id).where(
            runs.c.thread_id == thread_id,
            or_(runs.c.status == "running", runs.c.status == "pending"),
        )
    )
    for row in in_flight:
        run_id = str(row["run_id"])
        if run_id != spare:
            conn.after_commit(
                lambda run_id=run_id: bus.current().send_control(
                    run_id, bus.Control("rollback", f"thread {thread_id} was deleted")
                )
            )


def _sweep(conn: Connection, size: int) -> int:
    due = conn.fetchall(
        select(threads.c.thread_id, threads.c.ttl_strategy)
        .where(threads.c.expires_at <= now(), threads.c.status != "busy")
        .order_by(threads.c.expires_at)
        .limit(size)
    )
    for row in due:
        if row["ttl_strategy"] == "keep_latest":
            checkpoint.prune_thread(conn, str(row["thread_id"]))
            conn.execute(
                threads.update()
                .where(threads.c.thread_id == row["thread_id"])
                .values(expires_at=None)
            )
        else:
            thread_rows.delete(conn, row["thread_id"])
    return len(due)
