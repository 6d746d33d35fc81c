"""The stream of a thread: every run of it, the future ones too."""

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
from langgraph_runtime_sql.ops.threads.permitted import permitted_thread
from langgraph_runtime_sql.statuses import ENDED

Delivered = tuple[bytes, bytes, bytes | None, str | None]
Modes = frozenset[str]

# A run that the database says has ended may be heard of for so long.
DOUBT_SECONDS = 2.0
# And for so long while Redis is away, or is told again what it knew.
LATE_SECONDS = 15.0

_NEWEST = Prepared(select(func.max(runs.c.seq)).where(runs.c.thread_id == bindparam("id")))
_OPEN_OR_NEW = Prepared(
    select(runs.c.run_id, runs.c.seq, runs.c.status).where(
        runs.c.thread_id == bindparam("id"),
        or_(run_rows.IN_FLIGHT, runs.c.seq > bindparam("newest")),
    )
)
_LAST = Prepared(
    select(runs.c.run_id)
    .where(runs.c.thread_id == bindparam("id"))
    .order_by(runs.c.created_at.desc(), runs.c.seq.desc())
    .limit(1)
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
        """Follow a thread until the client leaves; (event, data, id) each."""
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
        """The same with the run's id as fourth item.

        Where events were lost on their way from another process it ends: with what the runs
        came to, and an error.
        """
        # What comes of it is read only once the response has begun, and whoever sees it begin
        # may start a run anywhere.
        return _follow(
            as_uuid(thread_id, "thread ID"),
            parse_order(last_event_id),
            frozenset(stream_modes) or frozenset({"run_modes"}),
            ctx,
            asked_at=time.time_ns(),
        )

    @staticmethod
    async def check_thread_stream_auth(thread_id: Any, ctx: Any = None) -> None:
        """Raise 404 where a filter hides the thread.

        Without a filter a thread that does not exist yet may be followed: its
        events arrive once it does.
        """
        await _permitted(as_uuid(thread_id, "thread ID"), ctx)


async def _permitted(thread_id: UUID, ctx: Any) -> Filter:
    """Return the filter of the host's handler.

    Raises:
        HTTPException: (404) the filter hides the thread, or the thread does not exist.
    """
    permitted = await authorize(ctx, "threads", "read", {"thread_id": thread_id})
    if permitted:
        await permitted_thread(thread_id, ctx, "read")
    return permitted


async def _follow(
    thread_id: UUID, after: Order | None, modes: Modes, ctx: Any, *, asked_at: int
) -> AsyncIterator[Delivered]:
    here, key = runtime.current().bus, await stream_access.key_of(thread_id)
    ends = _Ends(key) if here.shared else None
    if ends is not None:
        # Before what takes its time where Redis says nothing: a run may begin and end meanwhile.
        await ends.begin()
    async with await here.follow_thread(key, after, asked_at) as subscription:
        admission = stream_access.Admission(thread_id, await _permitted(thread_id, ctx))
        while True:
            if ends is not None and (lost := await ends.unheard(holds=subscription.holds)):
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
            if ends is not None and event.is_end:
                # Also of a run that is gone with it.
                ends.hear(event)
            if not is_admitted:
                continue
            if ends is not None and not event.is_end:
                ends.hear(event)
            if (shown := _shown(event, modes)) is not None:
                yield shown
    seen = [run_id for run_id in lost if await admission.admits(run_id)]
    async for shown in _rest(seen, modes):
        yield shown


class _Ends:
    """Finds runs of a thread that have ended in another process without a word of it here."""

    def __init__(self, key: StreamKey) -> None:
        self._key, self._thread_id = key, UUID(key.thread_id)
        self._late_since: float | None = None
        self._newest: int | None = None
        self._open: set[str] = set()
        self._announced: set[str] = set()
        self._doubted: set[str] = set()
        self._due = time.monotonic()

    @property
    def seconds(self) -> float:
        """How long the next event may be waited for."""
        return max(0.0, self._due - time.monotonic())

    async def begin(self) -> None:
        """Look which runs there are. Of those that are made from now on none is passed over."""
        found = await runtime.current().database.read(self._look)
        self._open = {str(row["run_id"]) for row in found}

    def hear(self, event: Event) -> None:
        """Note what has begun and what has ended."""
        if event.is_end:
            self._announced.add(event.run_id)
            self._open.discard(event.run_id)
        elif event.run_id != "*":
            self._open.add(event.run_id)

    async def unheard(self, *, holds: bool) -> list[str]:
        """Runs that have ended unheard. Asks the database now and then, and twice to be sure.

        Args:
            holds: The subscription has events that wait for others before them.
        """
        if time.monotonic() < self._due:
            return []
        if self._is_late(holds):
            self._due = time.monotonic() + DOUBT_SECONDS
            return []
        found = await runtime.current().database.read(self._look)
        in_flight = {str(row["run_id"]) for row in found if row["status"] not in ENDED}
        ended = {str(row["run_id"]) for row in found} - in_flight
        over = ((self._open - in_flight) | ended) - self._announced
        unheard = sorted(over & self._doubted)
        self._newest = max([self._newest or 0, *(row["seq"] for row in found)])
        self._open, self._doubted = in_flight | over, over
        self._announced.clear()
        seconds = DOUBT_SECONDS if over else runtime.current().bus.recheck_seconds
        self._due = time.monotonic() + seconds
        return unheard

    def _is_late(self, holds: bool) -> bool:
        """Whether the word of an end may be on its way, as is known here, and not for too long."""
        late = runtime.current().bus.is_behind(self._key) or holds
        self._late_since = (self._late_since or time.monotonic()) if late else None
        return self._late_since is not None and time.monotonic() - self._late_since < LATE_SECONDS

    def _look(self, conn: Connection) -> list[Row]:
        """The thread's runs that are in flight or were made since the last look."""
        if self._newest is None:
            self._newest = conn.scalar(_NEWEST, {"id": self._thread_id}) or 0
        return conn.fetchall(_OPEN_OR_NEW, {"id": self._thread_id, "newest": self._newest})


async def _last(thread_id: UUID) -> list[str]:
    """The last run of a thread, if there is one."""
    found = await runtime.current().database.read(
        lambda conn: conn.scalar(_LAST, {"id": thread_id})
    )
    return [] if found is None else [str(found)]


async def _rest(lost: list[str], modes: Modes) -> AsyncIterator[Delivered]:
    """What stands in the place of lost events: an error, and what their runs came to.

    The v2 protocol knows an error only as a run's own, so it is one of a run in flight.
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
    """What a follower with these modes gets of an event, if anything."""
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
