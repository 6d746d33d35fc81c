"""The stream of a thread: the events of its current and future runs."""

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import bindparam, func, or_, select

from langgraph_runtime_sql import json_codec, runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import runs
from langgraph_runtime_sql.database.statements import Prepared, Row
from langgraph_runtime_sql.errors import EventsLost
from langgraph_runtime_sql.events.event import CONTROL, DONE, Event, Order, parse_order
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.ops import stream_access
from langgraph_runtime_sql.ops.authorization import Filter, as_uuid, authorize
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.runs.stream import final_event
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.statuses import ENDED

Delivered = tuple[bytes, bytes, bytes | None, str | None]
Modes = frozenset[str]

# Time for the end of a run to arrive after the database has it.
CONFIRM_SECONDS = 2.0
# Additional time while Redis is unavailable, or is being filled again.
LATE_SECONDS = 15.0

_NEWEST = Prepared(select(func.max(runs.c.seq)).where(runs.c.thread_id == bindparam("id")))
_OPEN_OR_NEW = Prepared(
    select(runs.c.run_id, runs.c.seq, runs.c.status).where(
        runs.c.thread_id == bindparam("id"),
        or_(run_rows.IN_FLIGHT, runs.c.seq > bindparam("newest")),
    )
)


class Stream:
    """`Threads.Stream` of the interface."""

    @staticmethod
    def join(
        thread_id: Any,
        *,
        last_event_id: str | None = None,
        stream_modes: Sequence[str],
        ctx: Any = None,
    ) -> AsyncIterator[tuple[bytes, bytes, bytes | None]]:
        """Yield the (event, data, id) tuples of a thread until the client disconnects."""
        events = Stream.join_event_streaming(
            thread_id, last_event_id=last_event_id, stream_modes=stream_modes, ctx=ctx
        )
        return ((name, data, event_id) async for name, data, event_id, _ in events)

    @staticmethod
    def join_event_streaming(
        thread_id: Any,
        *,
        last_event_id: str | None = None,
        stream_modes: Sequence[str],
        ctx: Any = None,
    ) -> AsyncIterator[Delivered]:
        """Yield the (event, data, id, run id) tuples of a thread until the client disconnects.

        If events from another process were lost, the stream ends with an error and the results
        of the affected runs.
        """
        # The iteration starts after the response. The client may create a run in between, so
        # the stream starts at this time.
        return _follow(
            as_uuid(thread_id, "thread ID"),
            parse_order(last_event_id),
            frozenset(stream_modes) or frozenset({"run_modes"}),
            ctx,
            asked_at=time.time_ns(),
        )

    @staticmethod
    async def check_thread_stream_auth(thread_id: Any, ctx: Any = None) -> None:
        """Check that no filter hides the thread. Without a filter, it need not exist yet.

        Raises:
            HTTPException: (404) the filter hides the thread, or the thread does not exist.
        """
        await _permitted(as_uuid(thread_id, "thread ID"), ctx)


async def _permitted(thread_id: UUID, ctx: Any) -> Filter:
    """Return the filter of the host's handler, if it does not hide the thread."""
    permitted = await authorize(ctx, "threads", "read", {"thread_id": thread_id})
    if permitted:
        await runtime.current().database.read(
            lambda conn: thread_rows.require(conn, thread_id, permitted)
        )
    return permitted


async def _follow(
    thread_id: UUID, after: Order | None, modes: Modes, ctx: Any, *, asked_at: int
) -> AsyncIterator[Delivered]:
    bus, key = runtime.current().bus, await stream_access.key_of(thread_id)
    ends = _Ends(key) if bus.shared else None
    if ends is not None:
        # Before the subscription, which may wait for Redis while runs begin and end.
        await ends.begin()
    async with await bus.follow_thread(key, after, asked_at) as subscription:
        admission = stream_access.Admission(thread_id, await _permitted(thread_id, ctx))
        while True:
            if ends is not None and (lost := await ends.find_missed(holds=subscription.holds)):
                break
            event = await subscription.get(None if ends is None else ends.seconds)
            if event is not None and event.is_loss:
                lost = await _last(thread_id)
                break
            if event is None and subscription.dropped:
                return
            if event is None:
                continue
            is_admitted = await admission.admits(event.run_id, is_last=event.is_end)
            # Record each end, because the run's row may be gone already.
            if ends is not None and (is_admitted or event.is_end):
                ends.record(event)
            if is_admitted and (shown := _shown(event, modes)) is not None:
                yield shown
    seen = [run_id for run_id in lost if await admission.admits(run_id)]
    async for shown in _rest(seen, modes):
        yield shown


class _Ends:
    """Finds runs of a thread whose end in another process was not received here."""

    def __init__(self, key: StreamKey) -> None:
        self._key, self._thread_id = key, UUID(key.thread_id)
        self._late_since: float | None = None
        self._newest: int | None = None
        self._open: set[str] = set()
        self._announced: set[str] = set()
        self._suspected: set[str] = set()
        self._due = time.monotonic()

    @property
    def seconds(self) -> float:
        """Return the seconds until the next check."""
        return max(0.0, self._due - time.monotonic())

    async def begin(self) -> None:
        """Read the runs in flight, and start to track new ones."""
        found = await runtime.current().database.read(self._read)
        self._open = {str(row["run_id"]) for row in found}

    def record(self, event: Event) -> None:
        """Record the begin or end of a run from one of its events."""
        if event.is_end:
            self._announced.add(event.run_id)
            self._open.discard(event.run_id)
        elif event.run_id != "*":
            self._open.add(event.run_id)

    async def find_missed(self, *, holds: bool) -> list[str]:
        """Return runs whose end was missed in two checks. Between checks, return nothing.

        Args:
            holds: Whether the subscription holds events back until earlier ones arrive.
        """
        if time.monotonic() < self._due:
            return []
        if self._is_late(holds):
            self._due = time.monotonic() + CONFIRM_SECONDS
            return []
        here = runtime.current()
        found = await here.database.read(self._read)
        in_flight = {str(row["run_id"]) for row in found if row["status"] not in ENDED}
        ended = {str(row["run_id"]) for row in found} - in_flight
        over = ((self._open - in_flight) | ended) - self._announced
        missed = sorted(over & self._suspected)
        self._newest = max([self._newest or 0, *(row["seq"] for row in found)])
        self._open, self._suspected = in_flight | over, over
        self._announced.clear()
        self._due = time.monotonic() + (CONFIRM_SECONDS if over else here.bus.recheck_seconds)
        return missed

    def _is_late(self, holds: bool) -> bool:
        """Return whether events are known to be delayed, for less than `LATE_SECONDS`."""
        late = runtime.current().bus.is_behind(self._key) or holds
        self._late_since = (self._late_since or time.monotonic()) if late else None
        return self._late_since is not None and time.monotonic() - self._late_since < LATE_SECONDS

    def _read(self, conn: Connection) -> list[Row]:
        """Return the thread's runs that are in flight or new since the last check."""
        if self._newest is None:
            self._newest = conn.scalar(_NEWEST, {"id": self._thread_id}) or 0
        return conn.fetchall(_OPEN_OR_NEW, {"id": self._thread_id, "newest": self._newest})


async def _last(thread_id: UUID) -> list[str]:
    found = await runtime.current().database.read(lambda conn: run_rows.last(conn, thread_id))
    return [] if found is None else [str(found)]


async def _rest(lost: list[str], modes: Modes) -> AsyncIterator[Delivered]:
    """Yield an error and the results of runs in place of their lost events.

    In the v2 protocol, each error belongs to a run. Use one that is still in flight.
    """
    finals = {run_id: await final_event(UUID(run_id)) for run_id in lost}
    in_flight = next((run_id for run_id, final in finals.items() if final is None), None)
    yield b"error", json_codec.dumps(EventsLost()).encode(), None, in_flight
    for run_id, final in finals.items():
        if final is None:
            continue
        for event in (final, Event((0, 0), run_id, CONTROL, DONE, False)):
            if (shown := _shown(event, modes)) is not None:
                name, data, _, _ = shown
                yield name, data, None, run_id


def _shown(event: Event, modes: Modes) -> Delivered | None:
    """Return the tuple of an event for a subscriber with these modes, or None."""
    name, data = event.name, event.data
    if event.is_end:
        name = "metadata"
        data = orjson.dumps({"status": "run_done", "run_id": event.run_id})
    if not _wanted(name, data, modes):
        return None
    return name.encode(), data, event.id, event.run_id


def _wanted(name: str, data: bytes, modes: Modes) -> bool:
    if name == "state_update":
        return "state_update" in modes
    if "run_modes" in modes:
        return True
    return name == "metadata" and "lifecycle" in modes and _is_lifecycle(data)


def _is_lifecycle(data: bytes) -> bool:
    try:
        fields = orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return isinstance(fields, dict) and (
        fields.get("status") == "run_done" or ("attempt" in fields and "run_id" in fields)
    )
