"""Event session: events of a run of protocol 2, whose sequence numbers are places in the event log."""

from contextvars import ContextVar
from typing import Any

from threadhold.stock.stream_places import View

view: ContextVar[View | None] = ContextVar("view", default=None)
"""What a connection has been sent; None outside of a stream of the event log."""


def session_class(stock: Any) -> Any:
    """Return the session of `langgraph_api` with places in the log."""

    class LogSession(stock):
        """Makes the events of a run, with their places in the log."""

        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.attempt = 0
            self.view = view.get()
            self._buffer: list[dict[str, Any]] = []

        def _create_event(self, *args: Any, **options: Any) -> Any:
            if self.view is not None:
                self._next_seq = self.view.next_seq() - 1
            return super()._create_event(*args, **options)

        async def _handle_normalized_event(
            self, method_from_name: Any, namespace_from_name: Any, event: dict[str, Any]
        ) -> None:
            if event.get("method") == "custom":
                event = _as_payload(event)
            await super()._handle_normalized_event(method_from_name, namespace_from_name, event)

        async def _push_event(self, event: dict[str, Any]) -> None:
            if self.view is None:
                await super()._push_event(event)
                return
            self.view.note(event)
            if self.view.is_hidden(event):
                return
            if self.view.is_old(event):
                # A later subscription of the connection may ask for it.
                if self._max_buffer_size:
                    self._buffer.append(event)
                    del self._buffer[: -self._max_buffer_size]
                return
            await super()._push_event(event)

        async def begin_attempt(self, attempt: int, *, is_start: bool) -> None:
            """Tell the client that what an attempt has streamed in its last step comes again.

            Args:
                attempt: The number of the attempt.
                is_start: Whether its first event comes now. An attempt that a stopping server has
                    returned to the queue starts again under the same number.
            """
            if attempt < self.attempt or (attempt == self.attempt and not is_start):
                return
            view, is_first, self.attempt = self.view, self.attempt == 0, attempt
            if view is None or is_first:
                return
            for method, namespace, data, node in _taken_back(self, attempt):
                place = "-".join(map(str, view.order))
                made = f"synth:{self._run_id}:attempt:{attempt}:{place}:{view.index}"
                event = self._create_event(method, namespace, data, node=node, event_id=made)
                await self._push_event(event)

    return LogSession


def _as_payload(event: dict[str, Any]) -> dict[str, Any]:
    """Return a custom event as protocol 2 has it: langgraph sends what the node has written as it is.

    What has the form of the protocol already, a payload and perhaps a name, stays.
    """
    params = event["params"]
    data = params["data"]
    if isinstance(data, dict) and "payload" in data and data.keys() <= {"name", "payload"}:
        return event
    return {**event, "params": {**params, "data": {"payload": data}}}


def _taken_back(session: Any, attempt: int) -> list[tuple[str, list[str], Any, str | None]]:
    """Return what a client is sent before the events of a new attempt.

    The error closes a message. The client library shows a message of the stream until it has been
    in `values` and is there no more.
    """
    view: View = session.view
    unsaved, view.unsaved = dict(view.unsaved), {}
    graph = session._root_graph_name
    running = {"event": "running", "graph_name": graph, "attempt": attempt}
    found: list[tuple[str, list[str], Any, str | None]] = [("lifecycle", [], running, None)]
    text = "The attempt that streamed this message has ended. The next one streams it again."
    for namespace, node in unsaved.values():
        error = {"event": "error", "code": "attempt_superseded", "message": text}
        found.append(("messages", namespace, error, node))
    values = view.values
    messages = None if values is None else values.get("messages")
    if unsaved and values is not None and isinstance(messages, list):
        kept = {each.get("id") for each in messages if isinstance(each, dict)}
        empty = [{"type": "ai", "content": "", "id": i} for i in unsaved if i not in kept]
        if empty:
            found.append(("values", [], {**values, "messages": [*messages, *empty]}, None))
            found.append(("values", [], values, None))
    return found
