"""The stream of a run: subscribe before it exists, and follow it to its end."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any
from uuid import UUID

from starlette.exceptions import HTTPException

from langgraph_runtime_sql import json_codec, request_context, runtime
from langgraph_runtime_sql.database import outage
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.errors import DatabaseDamaged, DatabaseOverloaded, EventsLost
from langgraph_runtime_sql.events.event import START, Event, Order, parse_order
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.events.subscription import Subscription
from langgraph_runtime_sql.gate import reads
from langgraph_runtime_sql.gate.operations import THREAD_READ
from langgraph_runtime_sql.ops import stream_access
from langgraph_runtime_sql.ops.arguments import as_uuid
from langgraph_runtime_sql.ops.runs import leases
from langgraph_runtime_sql.ops.runs import result as run_result
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.runs.cancel import cancel
from langgraph_runtime_sql.ops.threads import long_values
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.statuses import ENDED, RunStatus
from langgraph_runtime_sql.stopping import hand_over, place

# The number of events that a run may be ahead of the database.
MAX_UNSTORED = 5_000

Delivered = tuple[bytes, bytes, bytes | None]
_cancelling: set[asyncio.Task[None]] = set()


class Stream:
    """`Runs.Stream` of the interface."""

    @staticmethod
    async def subscribe(run_id: Any, thread_id: Any = None) -> Subscription:
        """Subscribe to a run's events, even before it exists."""
        run = as_uuid(run_id, "run ID")
        thread = run if thread_id is None else as_uuid(thread_id, "thread ID")
        bus, key = runtime.current().bus, StreamKey.here(thread, run)
        # The scope names no tenant: take it from the thread's row. A run that begins in a single
        # process needs no read: its creation corrects the key (`run_created`).
        if stream_access.sees_everything() and (bus.shared or bus.runs.is_live(key.run_id)):
            key = await stream_access.key_of(thread, run)
        return await bus.followers.follow_run(key)

    @staticmethod
    async def join(
        run_id: Any,
        *,
        stream_channel: Subscription,
        thread_id: Any,
        ignore_404: bool = False,
        cancel_on_disconnect: bool = False,
        stream_mode: Sequence[str] | str | None = None,
        last_event_id: str | None = None,
        ctx: Any = None,
    ) -> AsyncIterator[Delivered]:
        """Yield a run's events until it ends, starting after `last_event_id` if given.

        Args:
            ignore_404: Whether this caller has created the run and its temporary thread. Both
                may be deleted already.

        If the database cannot be used for too long, the response is handed over: its last event is
        `resume`. A wait, which cannot be handed over, gets an error with the run's id as the last event.

        Raises:
            HTTPException: (404) a handler's filter hides the thread.
        """
        run = as_uuid(run_id, "run ID")
        delivered = Stream._join(
            run,
            as_uuid(thread_id, "thread ID"),
            stream_channel,
            ctx,
            modes=_modes(stream_mode),
            after=parse_order(last_event_id),
            ignore_404=ignore_404,
            cancel_on_disconnect=cancel_on_disconnect,
        )
        try:
            async with aclosing(outage.followed(delivered)) as events:
                async for each in events:
                    yield each
        except (DatabaseOverloaded, DatabaseDamaged) as error:
            said = _said(run, error)
            if isinstance(error, DatabaseOverloaded):
                await hand_over(said)
            # The answer has begun, so it ends with the error.
            body = {"error": type(error).__name__, "message": said, "run_id": str(run)}
            yield b"error", json_codec.dumps(body).encode(), None

    @staticmethod
    async def _join(
        run: UUID,
        thread: UUID,
        stream_channel: Subscription,
        ctx: Any,
        *,
        modes: frozenset[str] | None,
        after: Order | None,
        ignore_404: bool,
        cancel_on_disconnect: bool,
    ) -> AsyncGenerator[Delivered, None]:
        """Yield the events of `join`. At an outage, the run goes on."""
        is_admitted = False
        try:
            key = await _admitted(run, thread, stream_channel, ctx, may_be_gone=ignore_404)
            is_admitted = key is not None
            if key not in (None, stream_channel.key):
                stream_channel.close()
                stream_channel = await runtime.current().bus.followers.follow_run(key)
            if is_admitted:
                events = _follow(run, thread, stream_channel, after, ignore_404)
            else:
                events = _end_of(run, thread, stream_channel, ignore_404)
            here = place.get()
            async for event, with_id in events:
                if here is not None and event.order > (0, 0):
                    here.id = event.id
                if _wanted(event.name, modes):
                    yield event.name.encode(), event.data, event.id if with_id else None
            if ignore_404:
                run_result.discard_soon(run, thread)
        except (DatabaseOverloaded, DatabaseDamaged):
            raise
        except BaseException:
            if cancel_on_disconnect and is_admitted and not _is_stopping():
                _cancel_soon(run, thread)
            raise
        finally:
            stream_channel.close()

    @staticmethod
    async def check_run_stream_auth(run_id: Any, thread_id: Any, ctx: Any = None) -> None:
        """Check that no filter hides the run's thread.

        Raises:
            HTTPException: (404) a handler's filter hides it.
        """
        run, thread = as_uuid(run_id, "run ID"), as_uuid(thread_id, "thread ID")
        visible = await reads.admit(ctx, THREAD_READ, {"thread_id": thread})
        if visible.is_limited:
            await stream_access.find_run(thread, run, visible)

    @staticmethod
    async def publish(
        run_id: Any, event: str, message: bytes, *, thread_id: Any = None, resumable: bool = False
    ) -> None:
        """Publish an event of a run.

        Raises:
            SupersededAttempt: the caller's attempt no longer owns the run.
        """
        key, attempt = str(run_id), 0
        claim = request_context.claim.get()
        if claim is not None and claim.run_id == key:
            await leases.check(claim)
            attempt = claim.attempt
            run_result.record(claim, event, message)
        publisher = runtime.current().bus.publisher
        waiting = publisher.publish(
            StreamKey.here(thread_id or run_id, run_id),
            event,
            message,
            resumable=resumable,
            attempt=attempt,
        )
        if waiting > MAX_UNSTORED:
            # The database is slower than the run.
            await publisher.flush()


async def _admitted(
    run_id: UUID, thread_id: UUID, live: Subscription, ctx: Any, *, may_be_gone: bool
) -> StreamKey | None:
    """Return the key of a run's stream, or None if the caller neither sees nor made the run."""
    visible = await reads.admit(ctx, THREAD_READ, {"thread_id": thread_id})
    if live.by_creator and not visible.is_limited:
        return live.key
    if not stream_access.is_restricted(visible):
        return live.key if live.key.tenant else await stream_access.key_of(thread_id, run_id)
    found = await stream_access.find_run(thread_id, run_id, visible, may_be_gone=may_be_gone)
    return live.key if live.by_creator else found


async def _end_of(
    run_id: UUID, thread_id: UUID, live: Subscription, ignore_404: bool
) -> AsyncIterator[tuple[Event, bool]]:
    """Yield "not found" for a missing run, unless its end has just been announced.

    The caller may have just cancelled the run with a rollback.
    """
    reader = _Reader(run_id, thread_id, live, None, is_ours=ignore_404, is_live=False)
    async for _ in reader.events():
        pass
    if reader.over == "missing" and not ignore_404:
        yield _not_found(run_id), False


async def _follow(
    run_id: UUID, thread_id: UUID, live: Subscription, after: Order | None, ignore_404: bool
) -> AsyncIterator[tuple[Event, bool]]:
    """Yield events in order, each with whether it is shown with its id."""
    bus = runtime.current().bus
    if after is not None:
        row = await _find(run_id, thread_id)
        resumable = row is not None and row["kwargs"].get("resumable")
        whole_since = row["created_at"] if row is not None and resumable else None
        live.close()
        live = await bus.followers.follow_run(live.key, after, whole_since=whole_since)
    reader = _Reader(run_id, thread_id, live, after, is_ours=ignore_404)
    try:
        async for each in reader.events():
            yield each
    finally:
        live.close()
    if reader.over == "missing" and not ignore_404:
        yield _not_found(run_id), False
        return
    is_unknown = False
    if after is not None and reader.found_nothing:
        # The log has no stream that SQLite does not store, or that ran before a move.
        is_unknown = not (await bus.followers.read_log(live.key, START)).events
    if (live.broken or is_unknown) and (final := await final_event(run_id)) is not None:
        # A client that waits only for the result needs only this event.
        yield final, False


class _Reader:
    """Reads a subscription until the stream or the database says that the run has ended.

    Attributes:
        over: Why no more events come: the run has `ended` or is `missing`.
    """

    def __init__(
        self,
        run_id: UUID,
        thread_id: UUID,
        live: Subscription,
        after: Order | None,
        *,
        is_ours: bool,
        is_live: bool | None = None,
    ) -> None:
        self.over: str | None = None
        self._run_id, self._thread_id = run_id, thread_id
        self._live = live
        # The client has seen earlier events.
        self._resumes = after is not None and after > START
        self._is_ours = is_ours
        self._bus, key = runtime.current().bus, str(run_id)
        # `is_live` is False for a run of somebody else, whose progress must not show.
        self._is_live = self._bus.runs.is_live(key) if is_live is None else is_live
        self._is_resumable = self._bus.runs.is_resumable(key)
        self._has_yielded = False

    @property
    def found_nothing(self) -> bool:
        """Whether the run was over before any event came."""
        return self.over == "ended" and not self._has_yielded

    async def events(self) -> AsyncIterator[tuple[Event, bool]]:
        """Yield the events, each with whether it is shown with its id."""
        live = self._live
        if not self._is_live:
            await self._check()
        while True:
            event = await live.get(0 if self.over else self._bus.wires.recheck_seconds)
            if event is None and self.over:
                return
            if live.dropped and event is None:
                self.over = await self._ended()
                return
            if event is None:
                await self._check()
            elif event.is_end:
                self.over = await self._ended()
                return
            elif event.is_loss:
                yield _error(self._run_id, EventsLost()), False
            elif not live.broken:
                self._has_yielded = True
                yield event, self._is_resumable or event.resumable

    async def _ended(self) -> str:
        """Return `missing` if a client without any event would find no thread, else `ended`."""
        if self._has_yielded or self._resumes:
            return "ended"
        thread = await runtime.current().database.read(
            lambda conn: thread_rows.find(conn, self._thread_id)
        )
        return "missing" if thread is None else "ended"

    async def _check(self) -> None:
        """Look in the database whether the run has ended; if so, get its last events."""
        row = await _find(self._run_id, self._thread_id)
        if row is not None and row["status"] not in ENDED:
            return
        # The end is stored with the run's status, so the log has it by now.
        await self._bus.followers.refresh(self._live)
        self.over = "missing" if row is None else "ended"


async def _find(run_id: UUID, thread_id: UUID) -> Row | None:
    """Return a run of a thread as stored, or None."""
    return await runtime.current().database.read(
        lambda conn: run_rows.find_in_thread(conn, run_id, thread_id)
    )


def _said(run_id: UUID, error: DatabaseOverloaded | DatabaseDamaged) -> str:
    if isinstance(error, DatabaseDamaged):
        return error.public
    goes_on = f"The run {run_id} is stored, and goes on when the database can be used: join it."
    return f"{error.public} {goes_on}"


def _not_found(run_id: UUID) -> Event:
    return _error(run_id, HTTPException(404, "Run not found"))


def _error(run_id: UUID, error: Exception) -> Event:
    return Event((0, 0), str(run_id), "error", json_codec.dumps(error).encode(), False)


async def final_event(run_id: UUID) -> Event | None:
    """Return the result of an ended run as the last event of its stream, or None.

    A run that was cancelled before it began has none: the state is that of an earlier run.
    """

    def fn(conn: Connection) -> Event | None:
        row = run_rows.find(conn, run_id)
        thread = row and thread_rows.find(conn, row["thread_id"])
        if row is None or thread is None or row["status"] not in ENDED:
            return None
        if row["status"] == RunStatus.INTERRUPTED and row["attempt"] == 0:
            return None
        if row["kwargs"].get("temporary") and thread["values"] is thread["error"] is None:
            return None
        long_values.complete(conn, [thread])
        name, data = "values", thread["values"] or {}
        if row["status"] == RunStatus.ERROR:
            name, data = "error", thread["error"]
        elif thread["interrupts"]:
            pending = [each for group in thread["interrupts"].values() for each in group]
            # Like langgraph, leave out a function's return value that is not a dict.
            data = {**(data if isinstance(data, dict) else {}), "__interrupt__": pending}
        return Event((0, 0), str(run_id), name, json_codec.dumps(data).encode(), False)

    return await runtime.current().database.read(fn)


def _is_stopping() -> bool:
    """Return whether this server, and not the client, has ended the stream."""
    stopping = runtime.current().stopping
    return stopping is not None and stopping.is_over


def _cancel_soon(run_id: Any, thread_id: Any) -> None:
    """Start to cancel a run whose client has disconnected."""

    async def cancel_run() -> None:
        try:
            await cancel(
                None,
                [run_id],
                thread_id=thread_id,
                reason="client disconnected from the run stream (on_disconnect=cancel)",
            )
        except HTTPException:
            return  # The run has ended meanwhile.

    task = asyncio.get_running_loop().create_task(cancel_run())
    _cancelling.add(task)
    task.add_done_callback(_cancelling.discard)


def _modes(stream_mode: Sequence[str] | str | None) -> frozenset[str] | None:
    if not stream_mode:
        return None
    modes = {stream_mode} if isinstance(stream_mode, str) else set(stream_mode)
    if "messages-tuple" in modes:
        modes.add("messages")
    return frozenset(modes)


def _wanted(name: str, modes: frozenset[str] | None) -> bool:
    if modes is None or name in modes:
        return True
    base = name.partition("|")[0]
    return base in modes or (base.startswith("messages") and "messages" in modes)
