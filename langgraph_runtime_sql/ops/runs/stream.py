"""The stream of a run: from before it exists until nothing more comes."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from starlette.exceptions import HTTPException

from langgraph_runtime_sql import json_codec, request_context, runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.errors import EventsLost
from langgraph_runtime_sql.events.event import START, Event, Order, parse_order
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.events.subscription import Subscription
from langgraph_runtime_sql.ops import stream_access
from langgraph_runtime_sql.ops.authorization import as_uuid, authorize
from langgraph_runtime_sql.ops.runs import leases
from langgraph_runtime_sql.ops.runs import result as run_result
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.runs.cancel import cancel
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.statuses import ENDED, RunStatus

# Of a run that ended in this time, all processes can still find all events.
RECENT = timedelta(seconds=45)

Delivered = tuple[bytes, bytes, bytes | None]
_cancelling: set[asyncio.Task[None]] = set()


class Stream:
    """`Runs.Stream` of the interface."""

    @staticmethod
    async def subscribe(run_id: Any, thread_id: Any = None) -> Subscription:
        """Start to collect a run's events, even before it exists."""
        run = as_uuid(run_id, "run ID")
        thread = run if thread_id is None else as_uuid(thread_id, "thread ID")
        here = runtime.current()
        if here.options.tenant_key is not None and stream_access.sees_everything():
            # The caller's own scope names no tenant, so the key comes from the thread's row.
            return await here.bus.follow_run(await stream_access.key_of(thread, run))
        return await here.bus.follow_run(StreamKey.here(thread, run))

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
        """A run's events until it ends; those kept after `last_event_id` first, if given.

        Args:
            ignore_404: The caller has made the run, whose thread goes when it ends: both may be
                gone already.

        Raises:
            HTTPException: (404) a handler's filter hides the thread.
        """
        modes = _modes(stream_mode)
        run, thread = as_uuid(run_id, "run ID"), as_uuid(thread_id, "thread ID")
        is_admitted = False
        try:
            key = await _admitted(run, thread, stream_channel, ctx, may_be_gone=ignore_404)
            is_admitted = key is not None
            if key not in (None, stream_channel.key):
                stream_channel.close()
                stream_channel = await runtime.current().bus.follow_run(key)
            after = parse_order(last_event_id)
            events = (
                _follow(run, thread, stream_channel, after, ignore_404)
                if is_admitted
                else _end_of(run, thread, stream_channel, ignore_404)
            )
            async for event, with_id in events:
                if _wanted(event.name, modes):
                    yield event.name.encode(), event.data, event.id if with_id else None
            if ignore_404:
                run_result.discard_soon(run, thread)
        except BaseException:
            if cancel_on_disconnect and is_admitted:
                _cancel_soon(run_id, thread_id)
            raise
        finally:
            stream_channel.close()

    @staticmethod
    async def check_run_stream_auth(run_id: Any, thread_id: Any, ctx: Any = None) -> None:
        """Raise 404 where a filter hides the run's thread."""
        run, thread = as_uuid(run_id, "run ID"), as_uuid(thread_id, "thread ID")
        if permitted := await authorize(ctx, "threads", "read", {"thread_id": thread}):
            await stream_access.find_run(thread, run, permitted)

    @staticmethod
    async def publish(
        run_id: Any, event: str, message: bytes, *, thread_id: Any = None, resumable: bool = False
    ) -> None:
        """Send an event of a run.

        Raises:
            SupersededAttempt: the caller works on the run, and another has taken it over.
        """
        key, attempt = str(run_id), 0
        claim = request_context.claim.get()
        if claim is not None and claim.run_id == key:
            await leases.check(claim)
            attempt = claim.attempt
            run_result.note(claim, event, message)
        runtime.current().bus.publish(
            StreamKey.here(thread_id or run_id, run_id),
            event,
            message,
            resumable=resumable,
            attempt=attempt,
        )


async def _admitted(
    run_id: UUID, thread_id: UUID, live: Subscription, ctx: Any, *, may_be_gone: bool
) -> StreamKey | None:
    """The key of a run's stream; None for a run that the caller cannot see, nor has made.

    Raises:
        HTTPException: (404) a handler's filter hides the thread.
    """
    permitted = await authorize(ctx, "threads", "read", {"thread_id": thread_id})
    if not stream_access.is_restricted(permitted) or (live.by_creator and not permitted):
        return live.key
    found = await stream_access.find_run(thread_id, run_id, permitted, may_be_gone=may_be_gone)
    return live.key if live.by_creator else found


async def _end_of(
    run_id: UUID, thread_id: UUID, live: Subscription, ignore_404: bool
) -> AsyncIterator[tuple[Event, bool]]:
    """What is told of a run that is not there: that it is not, unless its end was just told.

    It was perhaps undone, at this caller's wish.
    """
    reader = _Reader(run_id, thread_id, live, None, is_ours=ignore_404, is_live=False)
    async for _ in reader.events():
        pass
    if reader.over == "missing" and not ignore_404:
        yield _not_found(run_id), False


async def _follow(
    run_id: UUID, thread_id: UUID, live: Subscription, after: Order | None, ignore_404: bool
) -> AsyncIterator[tuple[Event, bool]]:
    """Events in order, and whether each is shown with its number."""
    key, here = str(run_id), runtime.current().bus
    if after is not None:
        # One subscription that starts in the log has neither a gap nor a repeat.
        whole = here.shared and await _is_kept(run_id, thread_id)
        resumed = await here.follow_run(live.key, after, live, whole=whole)
        live.close()
        live = resumed
    reader = _Reader(run_id, thread_id, live, after, is_ours=ignore_404)
    try:
        async for each in reader.events():
            yield each
    finally:
        live.close()
    if reader.over == "missing" and not ignore_404:
        yield _not_found(run_id), False
    elif reader.lost:
        if not live.broken:
            yield _error(key, EventsLost()), False
        # Whoever waits for the result only needs this one.
        if (final := await final_event(run_id)) is not None:
            yield final, False


class _Reader:
    """Reads a subscription until the run has ended, as its stream or the database says.

    Attributes:
        over: Why nothing more will come: the run has `ended` or is `missing`.
        lost: Whether events are missing before the end.
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
        self.lost = False
        self._run_id, self._thread_id = run_id, thread_id
        self._live = live
        # Somebody goes on after an event that he has seen.
        self._resumes = after is not None and after > START
        self._is_ours = is_ours
        here, key = runtime.current().bus, str(run_id)
        # Of a run that is not the caller's it is not asked whether it goes on.
        self._is_live = here.is_live(key) if is_live is None else is_live
        self._is_resumable = here.is_resumable(key)
        self._told = False

    async def events(self) -> AsyncIterator[tuple[Event, bool]]:
        """The events, and whether each is shown with its number."""
        here, key, live = runtime.current().bus, str(self._run_id), self._live
        resumable = self._is_resumable
        if not self._is_live:
            await self._look(first=True)
        while True:
            event = await live.get(0 if self.over else here.recheck_seconds)
            if event is None and self.over:
                self.lost = self.lost or live.broken
                return
            if live.dropped and event is None:
                self.over = await self._ended()
                return
            if event is None:
                await self._look()
            elif event.is_end:
                self.over, self.lost = await self._ended(), live.broken
                return
            elif event.is_loss:
                yield _error(key, EventsLost()), False
            elif not live.broken:
                self._told = True
                yield event, resumable or event.resumable

    async def _ended(self) -> str:
        """Why the stream has ended.

        Who has heard nothing of a run would look at its thread, and so must hear if that is gone.
        """
        if self._told or self._resumes:
            return "ended"
        thread = await runtime.current().database.read(
            lambda conn: thread_rows.find(conn, self._thread_id)
        )
        return "missing" if thread is None else "ended"

    async def _look(self, *, first: bool = False) -> None:
        """Ask the database whether anything more will come, and have what was sent before here."""
        here, live = runtime.current().bus, self._live
        row = await _find(self._run_id, self._thread_id)
        if row is not None and row["status"] not in ENDED:
            return
        self.over = "missing" if row is None else "ended"
        if not here.shared:
            return
        recent = self._is_ours if row is None else row["recent"]
        if not first or recent:
            # Its last event must have been sent by now, and all others before.
            self.lost = not await here.settle(live, str(self._run_id))
            return
        settled = await here.settle(live)
        kept = row is not None and row["kwargs"].get("resumable")
        waiting = live.waiting()
        # The end is kept with the rest. Who begins, and finds nothing at all, comes too late.
        broken_off = bool(waiting) and not any(event.is_end for event in waiting)
        self.lost = not settled or bool(kept and (broken_off or (self._resumes and not waiting)))


async def _is_kept(run_id: UUID, thread_id: UUID) -> bool:
    """Whether all that a run has sent must still be known to some process."""
    row = await _find(run_id, thread_id)
    return row is not None and bool(row["kwargs"].get("resumable")) and row["recent"]


def _not_found(run_id: UUID) -> Event:
    return _error(str(run_id), HTTPException(404, "Run not found"))


def _error(run_id: str, error: Exception) -> Event:
    return Event((0, 0), run_id, "error", json_codec.dumps(error).encode(), False)


async def final_event(run_id: UUID) -> Event | None:
    """What a run that has ended came to, as its stream would have said it last."""

    def fn(conn: Connection) -> Event | None:
        row = run_rows.find(conn, run_id)
        thread = row and thread_rows.find(conn, row["thread_id"])
        if row is None or thread is None or row["status"] not in ENDED:
            return None
        if row["kwargs"].get("temporary") and thread["values"] is thread["error"] is None:
            return None
        name, data = "values", thread["values"] or {}
        if row["status"] == RunStatus.ERROR:
            name, data = "error", thread["error"]
        elif thread["interrupts"]:
            pending = [each for group in thread["interrupts"].values() for each in group]
            # The state of a function is whatever it has returned: langgraph leaves it out, too.
            data = {**(data if isinstance(data, dict) else {}), "__interrupt__": pending}
        return Event((0, 0), str(run_id), name, json_codec.dumps(data).encode(), False)

    return await runtime.current().database.read(fn)


async def _find(run_id: UUID, thread_id: UUID) -> Row | None:
    """A run of a thread as stored, or None.

    Its `recent` says whether it is in flight, or ended so lately that its events are still to be
    found.
    """

    def fn(conn: Connection) -> Row | None:
        row = run_rows.find(conn, run_id)
        if row is None or row["thread_id"] != thread_id:
            return None
        # What is in flight is not asked about the time, which is a question to the server.
        in_flight = row["status"] not in ENDED
        return {**row, "recent": in_flight or row["updated_at"] > conn.now() - RECENT}

    return await runtime.current().database.read(fn)


def _cancel_soon(run_id: Any, thread_id: Any) -> None:
    """Cancel a run whose client has left, without waiting for it."""

    async def cancel_run() -> None:
        try:
            await cancel(
                None,
                [run_id],
                thread_id=thread_id,
                reason="client disconnected from the run stream (on_disconnect=cancel)",
            )
        except HTTPException:
            return  # It has ended by itself.

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
