"""An exchange: one request and its answer, and what a missing answer means."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tests.history.recorder import Pending
from tests.support.served import events_of

# Seconds; a longer request counts as hanging, whatever the faults are.
PATIENCE = 90.0


class Refused(Exception):
    """The server answered, but not with the requested document."""


@contextmanager
def unanswered(pending: Pending) -> Iterator[None]:
    """Record the outcome of an operation that gets no answer.

    Raises:
        Refused: in place of the HTTP client's error.
    """
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        pending.fail(error=repr(error))
        raise Refused from error
    except (httpx.TransportError, TimeoutError) as error:
        pending.info(error=repr(error), hung=isinstance(error, TimeoutError | httpx.ReadTimeout))
        raise Refused from error


def document(kind: str, answer: httpx.Response, pending: Pending) -> Any:
    """Record a successful answer and return its document, or the run's id."""
    if not answer.is_success:
        record = pending.fail if answer.status_code < 500 else pending.info
        record(status=answer.status_code, text=answer.text[:300])
        raise Refused
    place = answer.headers.get("content-location", "")
    run = place.rpartition("/runs/")[2].partition("/")[0] or None
    if not answer.is_stream_consumed:
        pending.ok(run=run)
        return run
    found = answer.json() if answer.content else None
    if kind == "run":
        pending.ok(run=found["run_id"])
    elif kind in ("wait", "join"):
        pending.ok(run=run, result=found)
    elif kind == "look":
        holder = found or {}
        pending.ok(found=holder.get("metadata", holder.get("value")))
    else:
        pending.ok()
    return found


async def take(
    answer: httpx.Response,
    pending: Pending,
    after: str,
    limit: int | None,
    *,
    seconds: float | None = None,
) -> tuple[str, bool]:
    """Read up to `limit` events; return the last id, and whether the stream has ended.

    Args:
        seconds: How long to read from a stream without an end.
    """
    events: list[tuple[str | None, str, Any]] = []
    try:
        async with asyncio.timeout(seconds or PATIENCE):
            async for event in _events(answer):
                after = event[0] or after
                if event[1] == "resume":
                    # Of the server that stops, not of the run.
                    continue
                events.append(event)
                if len(events) == limit:
                    pending.ok(events=events, closed=False)
                    return after, False
    except (httpx.TransportError, TimeoutError) as error:
        quiet = isinstance(error, TimeoutError) and seconds is not None
        hung = isinstance(error, TimeoutError | httpx.ReadTimeout) and not quiet
        record = pending.ok if quiet else pending.info
        record(events=events, error=repr(error), hung=hung)
        return after, False
    pending.ok(events=events, closed=True)
    return after, True


async def _events(answer: httpx.Response) -> AsyncIterator[tuple[str | None, str, Any]]:
    """Yield id, name and data of each event."""
    async for event in events_of(answer):
        yield event.id, event.name, json.loads(event.data) if event.data else None
