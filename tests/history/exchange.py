"""Exchange: one question and its answer, and what it means that there is none."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tests.history.recorder import Pending
from tests.support.served import events_of

# Seconds; a request that takes longer has hung, whatever is done to the servers meanwhile.
PATIENCE = 90.0


class Refused(Exception):
    """The server answered, and not with what was asked for."""


@contextmanager
def unanswered(pending: Pending) -> Iterator[None]:
    """Say of an operation what it means that there was no answer.

    Raises:
        Refused: in place of what the client says.
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
    """The document of a good answer, or the run's id."""
    if not answer.is_success:
        said = pending.fail if answer.status_code < 500 else pending.info
        said(status=answer.status_code, text=answer.text[:300])
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
    most: int | None,
    *,
    seconds: float | None = None,
) -> tuple[str, bool]:
    """Read up to `most` events; the id of the last one, and whether the stream has ended.

    Args:
        seconds: For how long to read, of a stream that has no end.
    """
    events: list[tuple[str | None, str, Any]] = []
    try:
        async with asyncio.timeout(seconds or PATIENCE):
            async for event in _events(answer):
                events.append(event)
                after = event[0] or after
                if len(events) == most:
                    pending.ok(events=events, closed=False)
                    return after, False
    except (httpx.TransportError, TimeoutError) as error:
        quiet = isinstance(error, TimeoutError) and seconds is not None
        hung = isinstance(error, TimeoutError | httpx.ReadTimeout) and not quiet
        said = pending.ok if quiet else pending.info
        said(events=events, error=repr(error), hung=hung)
        return after, False
    pending.ok(events=events, closed=True)
    return after, True


async def _events(answer: httpx.Response) -> AsyncIterator[tuple[str | None, str, Any]]:
    """Id, name and data of each event."""
    async for event in events_of(answer):
        yield event.id, event.name, json.loads(event.data) if event.data else None
