"""Crons: the operations that the API and the scheduler call."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, bindparam, func, or_
from sqlalchemy import select as select_columns
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import request_context, runtime
from langgraph_runtime_sql.clock import now
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import Timestamp, crons, threads
from langgraph_runtime_sql.database.statements import Prepared, Row
from langgraph_runtime_sql.gate import command, limits, reads, state_keys, writes
from langgraph_runtime_sql.gate.caller import caller
from langgraph_runtime_sql.gate.operations import (
    ASSISTANT_READ,
    CRON_CREATE,
    CRON_DELETE,
    CRON_READ,
    CRON_SEARCH,
    CRON_UPDATE,
    THREAD_READ,
    THREAD_SEARCH,
)
from langgraph_runtime_sql.gate.reads import Visible
from langgraph_runtime_sql.ops.answers import Rows, page_of, pick, rows
from langgraph_runtime_sql.ops.arguments import as_uuid, sort_column
from langgraph_runtime_sql.ops.assistants.assistants import get_assistant, is_system
from langgraph_runtime_sql.ops.crons import firing as cron_firing
from langgraph_runtime_sql.ops.crons import misfire
from langgraph_runtime_sql.ops.crons import rows as cron_rows
from langgraph_runtime_sql.ops.crons import schedule as cron_schedule
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.search import filters

ADVICE = "Ask for fewer crons, by `assistant_id` or `thread_id`."
IDS = ("cron_id", "assistant_id", "thread_id")
SORTABLE = (*IDS, "next_run_date", "end_time", "created_at", "updated_at")

_WITH_THREADS = crons.outerjoin(threads, threads.c.thread_id == crons.c.thread_id)
_SET_NEXT = Prepared(
    crons.update()
    .where(
        crons.c.cron_id == bindparam("key"),
        crons.c.next_run_date
        == func.coalesce(bindparam("slot", type_=Timestamp), crons.c.next_run_date),
        crons.c.next_run_date < bindparam("next_run_date"),
    )
    .values(next_run_date=bindparam("next_run_date"), claimed_until=None)
)


class Crons:
    """Operations on crons. Each has its own transaction; `conn` is only a handle of the API."""

    @staticmethod
    async def put(
        conn: Any,
        *,
        payload: dict[str, Any] | None,
        schedule: str,
        cron_id: Any = None,
        thread_id: Any = None,
        on_run_completed: str | None = None,
        end_time: Any = None,
        metadata: dict[str, Any] | None = None,
        enabled: bool,
        timezone: str | None = None,
        ctx: Any = None,
    ) -> Rows:
        """Create a cron, or yield the existing one with this id, unless it is hidden.

        Raises:
            HTTPException: (400) both configurable and context; (404) the assistant or thread
                does not exist or may not be used; (422) invalid schedule, time zone, end time,
                id or `metadata.misfire`.
            LimitReached: (429) the tenant or the user has as many crons as it may.
        """
        from langgraph_api.graph import get_assistant_id
        from langgraph_api.utils import uuid7

        identifier = as_uuid(cron_id, "cron ID") if cron_id else uuid7()
        thread = as_uuid(thread_id, "thread ID") if thread_id else None
        value: Row = {
            "payload": cron_rows.payload_of(payload, identifier),
            "schedule": schedule,
            "cron_id": identifier,
            "thread_id": thread,
            "user_id": caller(ctx).identity,
            "end_time": cron_schedule.end_date(end_time),
            "metadata": {} if metadata is None else metadata,
        }
        admission = await writes.admit(ctx, CRON_CREATE, value)
        # Refuse an invalid schedule before anything is looked up.
        cron_schedule.next_date(schedule, now(), timezone)
        misfire.of(value["metadata"])
        named = str(value["payload"].get("assistant_id"))
        assistant_id = as_uuid(get_assistant_id(named), f"assistant {named!r}", 404)
        # Without the cron's metadata, which the client has chosen.
        usable, visible = await _usable_assistants(ctx, assistant_id), reads.ALL
        if thread is not None:
            of_thread = {"thread_id": thread, "metadata": value["metadata"]}
            visible = await reads.admit(ctx, THREAD_READ, of_thread)
        # The keys of its runs are checked again when they are created.
        await command.check(
            partial(get_assistant, assistant_id=assistant_id),
            value["payload"],
            admission.permissions,
        )
        row = {
            "cron_id": identifier,
            "assistant_id": assistant_id,
            "thread_id": thread,
            "user_id": value["user_id"],
            "creator": cron_firing.creator(ctx),
            "on_run_completed": None if thread else on_run_completed or "delete",
            "schedule": schedule,
            "timezone": timezone,
            "end_time": value["end_time"],
            "enabled": enabled,
            "payload": {**value["payload"], "assistant_id": str(assistant_id)},
            "metadata": value["metadata"],
        }

        def fn(conn: Connection) -> Row | None:
            if usable.only(get_assistant(conn, assistant_id)) is None:
                raise HTTPException(404, f"Assistant '{assistant_id}' not found")
            if thread:
                thread_rows.require(conn, thread, visible)
            if cron_rows.find(conn, identifier) is not None:
                return cron_rows.find_visible(conn, identifier, admission.visible)
            limits.cron(conn, row["metadata"], row["user_id"])
            date = conn.now()
            due = cron_schedule.next_date(schedule, date, timezone)
            dates = {"created_at": date, "updated_at": date, "next_run_date": due}
            return cron_rows.insert(conn, {**row, **dates})

        return _shown(await admission.write(fn))

    @staticmethod
    async def update(
        conn: Any,
        *,
        cron_id: Any,
        schedule: str | None = None,
        end_time: Any = None,
        clear_end_time: bool = False,
        enabled: bool | None = None,
        on_run_completed: str | None = None,
        payload: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        timezone: str | None = None,
        ctx: Any = None,
    ) -> Rows:
        """Change a cron. None leaves a field unchanged; metadata and payload are merged.

        Raises:
            HTTPException: (400) nothing to change, or both configurable and context; (404) it
                does not exist or may not be changed; (422) invalid schedule, time zone or end
                time.
        """
        identifier = as_uuid(cron_id, "cron ID")
        given: Row = {
            "schedule": schedule,
            "timezone": timezone,
            "enabled": enabled,
            "on_run_completed": on_run_completed,
            "end_time": cron_schedule.end_date(end_time),
        }
        value: Row = {
            "cron_id": identifier,
            **{key: each for key, each in given.items() if key != "timezone"},
            "payload": payload,
            **({} if metadata is None else {"metadata": metadata}),
        }
        admission = await writes.admit(ctx, CRON_UPDATE, value)
        columns: Row = {key: each for key, each in given.items() if each is not None}
        if clear_end_time:
            columns["end_time"] = None
        if payload and state_keys.must_check(payload.get("command")):
            found = await runtime.current().database.read(
                lambda conn: cron_rows.find_visible(conn, identifier, admission.visible)
            )
            if found is not None:
                await command.check(
                    partial(get_assistant, assistant_id=found["assistant_id"]),
                    payload,
                    admission.permissions,
                )
        merged = value.get("metadata")
        if not columns and payload is None and merged is None:
            raise HTTPException(400, "No fields to update")

        def fn(conn: Connection) -> Row | None:
            row = cron_rows.find_visible(conn, identifier, admission.visible)
            if row is None:
                raise HTTPException(404, f"Cron '{identifier}' not found")
            date = conn.now()
            changes = {**columns, "updated_at": date, **_rescheduled(row, columns, date)}
            if merged is not None:
                changes["metadata"] = {**row["metadata"], **merged}
                misfire.of(merged)
            if payload is not None:
                changes["payload"] = cron_rows.merged_payload(row, payload)
            return cron_rows.update(conn, identifier, changes)

        return _shown(await admission.write(fn))

    @staticmethod
    async def get(conn: Any, cron_id: Any, ctx: Any = None) -> Rows:
        """Yield a cron, if it exists and is visible."""
        identifier = as_uuid(cron_id, "cron ID")
        visible = await reads.admit(ctx, CRON_READ, {"cron_id": identifier})
        row = await runtime.current().database.read(
            lambda conn: cron_rows.find_visible(conn, identifier, visible)
        )
        return _shown(row)

    @staticmethod
    async def delete(conn: Any, cron_id: Any, ctx: Any = None) -> Rows:
        """Delete a cron and yield its id. Yield nothing if it is missing or may not be deleted."""
        identifier = as_uuid(cron_id, "cron ID")
        admission = await writes.admit(ctx, CRON_DELETE, {"cron_id": identifier})

        def fn(conn: Connection) -> bool:
            found = cron_rows.find_visible(conn, identifier, admission.visible)
            return found is not None and cron_rows.delete(conn, identifier)

        deleted = await admission.write(fn)
        return rows([identifier] if deleted else [])  # type: ignore[list-item]  # the bare id

    @staticmethod
    async def search(
        conn: Any,
        *,
        assistant_id: Any,
        thread_id: Any,
        enabled: bool | None,
        limit: int,
        offset: int,
        select: Sequence[str] | None = None,
        ctx: Any = None,
        sort_by: str | None = None,
        sort_order: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> tuple[Rows, int | None]:
        """Return a page of matching crons, and the offset of the next page or None.

        Raises:
            HTTPException: (422) invalid `sort_by` or id.
        """
        limit, offset = int(limit), int(offset)
        conditions = await _matching(ctx, assistant_id, thread_id, metadata, limit, offset)
        if enabled is not None:
            conditions.append(crons.c.enabled.is_(enabled))
        statement = (
            select_columns(*cron_rows.PUBLIC)
            .select_from(_WITH_THREADS)
            .where(*conditions)
            .order_by(*_order(sort_by, sort_order))
            .limit(limit + 1)
            .offset(offset)
        )
        found = await runtime.current().database.search(
            lambda conn: conn.fetchall(statement), ADVICE
        )
        page, following = page_of(found, limit, offset)
        return rows([pick(row, select) for row in page]), following

    @staticmethod
    async def count(
        conn: Any,
        *,
        assistant_id: Any = None,
        thread_id: Any = None,
        ctx: Any = None,
        metadata: dict[str, Any] | None = None,
    ) -> int:
        """Return the number of matching crons.

        Raises:
            HTTPException: (422) invalid id.
        """
        conditions = await _matching(ctx, assistant_id, thread_id, metadata, 0, 0)
        counted = select_columns(func.count().label("n")).select_from(_WITH_THREADS)
        statement = counted.where(*conditions)
        database = runtime.current().database
        return int(await database.search(lambda conn: conn.scalar(statement), ADVICE))

    @staticmethod
    def next(conn: Any, ctx: Any = None) -> AsyncIterator[tuple[Row, None]]:
        """Claim due crons, and yield each for its run to be created.

        Beside it stands the context of the API's own encryption, which this runtime does not use.
        """
        return cron_firing.due()

    @staticmethod
    async def set_next_run_date(
        conn: Any, cron_id: Any, next_run_date: datetime, ctx: Any = None
    ) -> None:
        """Skip a slot for which no run could be created, and end its claim.

        Changes nothing if the run was created or the cron was changed meanwhile.
        """
        identifier = as_uuid(cron_id, "cron ID")
        current: cron_firing.Firing | None = request_context.firing.get()
        slot = current.slot if current is not None and current.cron_id == identifier else None
        values = {"key": identifier, "slot": slot, "next_run_date": next_run_date}
        await runtime.current().database.write(lambda conn: conn.execute(_SET_NEXT, values))


def _shown(row: Row | None) -> Rows:
    return rows([] if row is None else [cron_rows.public(row)])


async def _usable_assistants(ctx: Any, assistant_id: UUID) -> Visible:
    if is_system(assistant_id):
        return reads.ALL
    return await reads.admit(ctx, ASSISTANT_READ, {"assistant_id": str(assistant_id)})


def _rescheduled(row: Row, columns: Row, date: datetime) -> Row:
    """Return the next date of a changed cron, if the change affects it.

    A cron that is enabled again continues after `date`, without its missed slots.
    """
    switched_on = bool(columns.get("enabled")) and not row["enabled"]
    if not switched_on and not columns.keys() & {"schedule", "timezone"}:
        return {}
    schedule, timezone = ({**row, **columns}[key] for key in ("schedule", "timezone"))
    return {
        "next_run_date": cron_schedule.next_date(schedule, date, timezone),
        "claimed_until": None,
    }


async def _matching(
    ctx: Any,
    assistant_id: Any,
    thread_id: Any,
    metadata: dict[str, Any] | None,
    limit: int,
    offset: int,
) -> list[ColumnElement[bool]]:
    """Return the conditions on crons joined to their threads, both of which must be visible."""
    assistant = as_uuid(assistant_id, "assistant ID") if assistant_id else None
    thread = as_uuid(thread_id, "thread ID") if thread_id else None
    value: Row = {
        "assistant_id": assistant,
        "thread_id": thread,
        "limit": limit,
        "offset": offset,
        "metadata": {} if metadata is None else metadata,
    }
    visible = await reads.admit(ctx, CRON_SEARCH, value)
    if thread is None:
        of_threads = await reads.admit(ctx, THREAD_SEARCH, {})
    else:
        of_threads = await reads.admit(ctx, THREAD_READ, {"thread_id": thread})
    conditions: list[ColumnElement[bool]] = [
        visible.condition(crons.c.metadata),
        or_(crons.c.thread_id.is_(None), of_threads.condition(threads.c.metadata)),
    ]
    if assistant is not None:
        conditions.append(crons.c.assistant_id == assistant)
    if thread is not None:
        conditions.append(crons.c.thread_id == thread)
    if value["metadata"]:
        conditions.append(filters.has(crons.c.metadata, filters.searchable(value["metadata"])))
    return conditions


def _order(sort_by: str | None, sort_order: str | None) -> list[ColumnElement[Any]]:
    """Return the sort order, by default newest first. Missing ids come last, missing ends first."""
    if not sort_by:
        return [crons.c.created_at.desc(), crons.c.cron_id]
    column = sort_column(crons.c, sort_by, SORTABLE)
    ascending = (sort_order or "").lower() == "asc"
    ordered = column.asc() if ascending else column.desc()
    is_id = sort_by.lower() in IDS
    ordered = ordered.nulls_last() if ascending == is_id else ordered.nulls_first()
    return [ordered, crons.c.created_at, crons.c.cron_id]
