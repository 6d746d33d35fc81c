"""Layers: ASGI apps that take each request through a list of steps.

A step is `async def step(exchange)`. It may refuse the request by returning an answer, change what the
app receives and sends, and leave something to do at the end. A layer is one ASGI app, however many steps
it has: a message of a stream passes it in one call.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

Hook = Callable[[Message], Awaitable[None]]
End = Callable[[BaseException | None], Awaitable[bool | None]]

# The messages that begin an answer, or end a WebSocket.
_STARTS = frozenset(
    {
        "http.response.start",
        "websocket.accept",
        "websocket.close",
        "websocket.http.response.start",
    }
)
_ACCEPTED = 101


class Exchange:
    """A request in a layer, and what has been sent of its answer.

    Args:
        scope: The ASGI scope. Steps change it in place: outer layers read the user and the route from it.
        receive: Receives what the client sends.
        send: Sends out of the layer.

    Attributes:
        scope: The ASGI scope.
        receive: What the app receives by. A step may replace it.
        send: What the app sends by. A step may replace it.
        status: The HTTP status, 101 for an accepted WebSocket, or 0 before an answer.
        is_complete: Whether the whole answer has been sent.
    """

    __slots__ = ("_ends", "_hooks", "_out", "is_complete", "receive", "scope", "send", "status")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope, self.receive = scope, receive
        self.send: Send = self.answer
        self.status, self.is_complete = 0, False
        self._out = send
        self._hooks: list[Hook] = []
        # A function and its arguments, or one that gets the error. `AsyncExitStack` takes longer than
        # the steps themselves.
        self._ends: list[tuple[Callable[..., Any], tuple[Any, ...] | None]] = []

    def at_start(self, hook: Hook) -> None:
        """Call a function with the message that begins the answer, before it is sent.

        The last one is called first, as that of the innermost step.
        """
        self._hooks.insert(0, hook)

    def at_end(self, end: End) -> None:
        """Call a function after the app, with its error or None. It returns True for an error that it answers.

        The last one is called first, as that of the innermost step. So are those of `after`.
        """
        self._ends.append((end, None))

    def after(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function with arguments after the app, however it ends."""
        self._ends.append((function, arguments))

    def enter(self, context: AbstractContextManager[Any]) -> None:
        """Enter a context until the app ends. It is not told of errors."""
        context.__enter__()
        self.after(context.__exit__, None, None, None)

    async def finish(self, error: BaseException | None) -> bool:
        """Do what is left to do after the app.

        Args:
            error: What the app has raised.

        Returns:
            Whether no error is left.
        """
        while self._ends:
            function, arguments = self._ends.pop()
            try:
                if arguments is not None:
                    function(*arguments)
                elif await function(error):
                    error = None
            except BaseException as raised:
                if not await self.finish(raised):
                    raise
                return True
        return error is None

    async def answer(self, message: Message) -> None:
        """Send out of the layer, past what its steps put around `send`."""
        kind = message["type"]
        if kind in _STARTS:
            self.status = _status_of(message) or self.status
            self.is_complete = kind in ("websocket.close", "websocket.http.response.start")
            for hook in self._hooks:
                await hook(message)
        elif kind == "http.response.body" and not message.get("more_body"):
            self.is_complete = True
        await self._out(message)


Step = Callable[[Exchange], Awaitable[ASGIApp | None]]


class Layer:
    """Take the requests and WebSockets of an app through steps, the outermost first.

    Args:
        app: The app.
        steps: The steps.
    """

    def __init__(self, app: ASGIApp, steps: Sequence[Step]) -> None:
        self.app, self.steps = app, tuple(steps)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        exchange = Exchange(scope, receive, send)
        app = self.app
        try:
            for step in self.steps:
                if (refusal := await step(exchange)) is not None:
                    app = refusal
                    break
            await app(scope, exchange.receive, exchange.send)
        except BaseException as error:
            if not await exchange.finish(error):
                raise
        else:
            await exchange.finish(None)
        finally:
            # It refers to itself by them. Garbage collection would keep the request and its body for long.
            exchange.receive, exchange.send = receive, send


def _status_of(message: Message) -> int:
    return _ACCEPTED if message["type"] == "websocket.accept" else int(message.get("status", 0))
