"""The stream of a thread: every run of it, the future ones too."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import orjson

from langgraph_runtime_sql import bus, json_codec
from langgraph_runtime_sql.bus import Event
from langgraph_runtime_sql.errors import EventsLost
from langgraph_runtime_sql.ops.access import as_uuid, authorize

Delivered = tuple[bytes, bytes, bytes | None, str | None]


class Stream:
    """`Threads.Stream` of the interface."""

    @staticmethod
    async def join(
        thread_id: Any,
        *,
        last_event_id: str | None = None,
        stream_modes: Sequence[str],
        ctx: Any = None,
    ) -> AsyncIterator[tuple[bytes, bytes, bytes | None]]:
        """Follow a thread until the client leaves; (event, data, id) each."""
        async for name, data, event_id, _ in Stream.join_event_streaming(
            thread_id, last_event_id=last_event_id, stream_modes=stream_modes, ctx=ctx
        ):
            yield name, data, event_id

    @staticmethod
    async def join_event_streaming(
        thread_id: Any,
        *,
        last_event_id: str | None = None,
        stream_modes: Sequence[str],
        ctx: Any = None,
    ) -> AsyncIterator[Delivered]:
        """The same with the run's id as fourth item."""
        identifier = as_uuid(thread_id, "thread ID")
        await Stream.check_thread_stream_auth(identifier, ctx)
        modes = frozenset(stream_modes) or {"run_modes"}
        after = bus.parse_order(last_event_id)
        async with await bus.current().follow_thread(str(identifier), after) as subscription:
            while True:
                event = await subscription.get()
                if event is not None and event.is_loss:
                    yield b"error", json_codec.dumps(EventsLost()).encode(), None, None
                    return
                if event is not None and (shown := _shown(event, modes)) is not None:
                    yield shown

    @staticmethod
    async def check_thread_stream_auth(thread_id: Any, ctx: Any = None) -> None:
        """Raise 404 where a filter hides the thread.

        Without a filter a thread that does not exist yet may be followed: its
        events arrive once it does.
        """
        from langgraph_runtime_sql.ops.threads import permitted_thread

        if await authorize(ctx, "threads", "read", {"thread_id": as_uuid(thread_id, "thread ID")}):
            await permitted_thread(thread_id, ctx, "read")


def _shown(event: Event, modes: frozenset[str] | set[str]) -> Delivered | None:
    """What a follower with these modes gets of an event, if anything."""
    name, data = event.name, event.data
    if event.is_end:
        name = "metadata"
        data = orjson.dumps({"status": "run_done", "run_id": event.run_id})
    if not _wanted(name, data, modes):
        return None
    return name.encode(), data, event.id, event.run_id


def _wanted(name: str, data: bytes, modes: frozenset[str] | set[str]) -> bool:
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
