"""Event streams: translate the stream of a run into the events of a product."""

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from starlette.responses import Response

from server.routes.endpoint import Caller
from threadhold import operations
from threadhold.operations import Part, RunStream


class Event(NamedTuple):
    """One event for the client. `data` is sent as JSON."""

    name: str
    data: Any

    def encode(self) -> bytes:
        """Encode the event as server-sent event."""
        return f"event: {self.name}\ndata: {json.dumps(self.data)}\n\n".encode()


class Translator(Protocol):
    """Translates the stream of one run into events for the client."""

    def begin(self, thread_id: str, run_id: str) -> Iterable[Event]:
        """Return the first events, after the platform has accepted the run."""

    def follow(self, part: Part) -> Iterable[Event]:
        """Return the events for one event of the run."""

    def end(self) -> Iterable[Event]:
        """Return the last events, after the run's stream has ended."""


async def stream_run(
    caller: Caller, thread_id: str, run: Mapping[str, Any], translator: Translator
) -> Response:
    """Start a run and answer with its translated stream. The run goes on without the client.

    Args:
        caller: The user of the request.
        thread_id: The thread.
        run: As for `operations.stream_run`.
        translator: Translates the run's events.

    Raises:
        HTTPException: the platform refuses the run.
    """
    stream = await operations.stream_run(caller.user, thread_id, run)
    return stream.answer(_translated(stream, translator))


async def _translated(stream: RunStream, translator: Translator) -> AsyncIterator[Event]:
    for event in translator.begin(stream.run.thread_id, stream.run.run_id):
        yield event
    async for part in stream.parts():
        for event in translator.follow(part):
            yield event
    for event in translator.end():
        yield event
