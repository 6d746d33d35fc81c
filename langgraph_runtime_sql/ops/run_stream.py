"""The stream of a run: from before it exists until nothing more comes."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import uuid4

from starlette.exceptions import HTTPException

from langgraph_runtime_sql import bus, checkpoint, database, json_codec, leases
from langgraph_runtime_sql.bus import Event, Subscription
from langgraph_runtime_sql.connection import Connection
from langgraph_runtime_sql.errors import EventsLost
from langgraph_runtime_sql.ops import run_rows, thread_rows
from langgraph_runtime_sql.ops.access import as_uuid, authorize
from langgraph_runtime_sql.ops.run_cancel import cancel

Delivered = tuple[bytes, bytes, bytes | None]
_cancelling: set[asyncio.Task[None]] = set()


class Stream:
    """`Runs.Stream` of the interface."""

    @staticmethod
    async def subscribe(run_id: Any, thread_id: Any = None) -> Subscription:
        """Start to collect a run's events, even before it exists."""
        thread = None if thread_id is None else str(thread_id)
        return await bus.current().follow_run(str(run_id), thread)

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
        if await _is_elsewhere(run_id, thread_id, ctx, may_be_gone=ignore_404):
            # Its events are its own thread's: what follows is as of no run at all.
            stream_channel.close()
            run_id = uuid4()
            stream_channel = bus.current().subscribe_run(str(run_id))
        modes = _modes(stream_mode)
        try:
            async for event, with_id in _follow(
                run_id, thread_id, stream_channel, bus.parse_order(last_event_id), ignore_404
            ):
                if _wanted(event.name, modes):
                    yield event.name.encode(), event.data, event.id if with_id else None
        except BaseException:
            if cancel_on_disconnect:
                _cancel_soon(run_id, thread_id)
            raise
        finally:
            stream_channel.close()

    @staticmethod
    async def check_run_stream_auth(run_id: Any, thread_id: Any, ctx: Any = None) -> None:
        """Raise 404 where a filter hides the run's thread."""
        await _is_elsewhere(run_id, thread_id, ctx)

    @staticmethod
    async def publish(
        run_id: Any, event: str, message: bytes, *, thread_id: Any = None, resumable: bool = False
    ) -> None:
        """Send an event of a run.

        Raises:
            SupersededAttempt: the caller works on the run, and another has taken it over.
        """
        key, attempt = str(run_id), 0
        claim = checkpoint.claim.get()
        if claim is not None and claim.run_id == key:
            await leases.check(claim)
            attempt = claim.attempt
        bus.current().publish(
            key,
            None if thread_id is None else str(thread_id),
            event,
            message,
            resumable=resumable,
            attempt=attempt,
        )


async def _is_elsewhere(
    run_id: Any, thread_id: Any, ctx: Any, *, may_be_gone: bool = False
) -> bool:
    """Whether a filter applies, and the run is of another thread than the one it admits.

    Raises:
        HTTPException: (404) the filter hides the thread.
    """
    run, thread = as_uuid(run_id, "run ID"), as_uuid(thread_id, "thread ID")
    permitted = await authorize(ctx, "threads", "read", {"thread_id": thread})
    if not permitted:
        return False

    def fn(conn: Connection) -> bool:
        if thread_rows.find_permitted(conn, thread, permitted) is None:
            if may_be_gone and thread_rows.find(conn, thread) is None:
                return False
            raise HTTPException(404, "Thread not found")
        row = run_rows.find(conn, run)
        return row is not None and row["thread_id"] != thread

    return await database.current().read(fn)


async def _follow(
    run_id: Any, thread_id: Any, live: Subscription, after: bus.Order | None, ignore_404: bool
) -> AsyncIterator[tuple[Event, bool]]:
    """Events in order, and whether each is shown with its number."""
    key, here = str(run_id), bus.current()
    if after is not None:
        # One subscription that starts in the log has neither a gap nor a repeat.
        resumed = await here.follow_run(
            key, None if thread_id is None else str(thread_id), after, live
        )
        live.close()
        live = resumed
    resumable = here.is_resumable(key)
    over: str | None = None
    try:
        if not here.is_live(key):
            over = await _is_over(run_id, thread_id)
        settled = over is None or await here.settle(live)
        while True:
            event = await live.get(0 if over else here.recheck_seconds)
            if event is None and not over:
                over = await _is_over(run_id, thread_id)
                settled = over is None or await here.settle(live)
            elif event is None:
                break
            elif event.is_end:
                over = "ended"
                break
            elif event.is_loss:
                yield _error(key, EventsLost()), False
            elif not live.broken:
                yield event, resumable or event.resumable
    finally:
        live.close()
    if over == "missing" and not ignore_404:
        yield _error(key, HTTPException(404, "Run not found")), False
    elif live.broken or not settled:
        if not live.broken:
            yield _error(key, EventsLost()), False
        # Whoever waits for the result only needs this one.
        if (final := await _final(run_id)) is not None:
            yield final, False


def _error(run_id: str, error: Exception) -> Event:
    return Event((0, 0), run_id, "error", json_codec.dumps(error).encode(), False)


async def _final(run_id: Any) -> Event | None:
    """What a run that has ended came to, as its stream would have said it last."""
    identifier = as_uuid(run_id, "run ID")

    def fn(conn: Connection) -> Event | None:
        row = run_rows.find(conn, identifier)
        thread = row and thread_rows.find(conn, row["thread_id"])
        if row is None or thread is None:
            return None
        name, data = "values", thread["values"] or {}
        if row["status"] == "error":
            name, data = "error", thread["error"]
        elif thread["interrupts"]:
            pending = [each for group in thread["interrupts"].values() for each in group]
            data = {**data, "__interrupt__": pending}
        return Event((0, 0), str(identifier), name, json_codec.dumps(data).encode(), False)

    return await database.current().read(fn)


async def _is_over(run_id: Any, thread_id: Any) -> str | None:
    """Why nothing more will come of a run, or None while something may."""
    identifier, thread = as_uuid(run_id, "run ID"), as_uuid(thread_id, "thread ID")
    row = await database.current().read(lambda conn: run_rows.find(conn, identifier))
    if row is None or row["thread_id"] != thread:
        return "missing"
    return "ended" if row["status"] in run_rows.ENDED else None


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
