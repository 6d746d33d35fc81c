"""Idempotency: answer a repeated creation with what the first request has created."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from langgraph_runtime_sql import request_context
from langgraph_runtime_sql.ops.idempotency import Repeatable
from langgraph_runtime_sql.tenancy import tenants

HEADER = "idempotency-key"
REPLAYED = "idempotent-replayed"
MAX_LENGTH = 255
# Their answer is the thread or run, so a repetition can have the same.
_CREATIONS = ("/threads", "/runs", "/threads/{thread_id}/runs")
# Their answer is a stream or a result. A repetition joins the run by another route.
_RUN = "/threads/{thread_id}/runs/{run_id}"
_STARTS = {
    f"{prefix}/{end}": f"{_RUN}/{join}"
    for prefix in ("/runs", "/threads/{thread_id}/runs")
    for end, join in (("stream", "stream"), ("wait", "join"))
}
_OF_BODY = (b"content-length", b"content-type", b"transfer-encoding", b"last-event-id")


class Idempotency:
    """Let a request with `Idempotency-Key` create its thread or run once.

    Args:
        app: The route.
        tenant_key: As in the runtime's options.
        join: The route that joins a run, and answers repetitions; None to answer with the thread
            or run itself.
    """

    def __init__(self, app: ASGIApp, tenant_key: str | None, join: tuple[str, ASGIApp] | None):
        self._app, self._tenant_key, self._join = app, tenant_key, join

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = Headers(scope=scope).getlist(HEADER) if scope["type"] == "http" else []
        if not found or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        header = found[0]
        if len(found) > 1 or not 0 < len(header) <= MAX_LENGTH:
            detail = f"There must be one header Idempotency-Key, with 1 to {MAX_LENGTH} characters"
            await JSONResponse({"detail": detail}, 422)(scope, receive, send)
            return
        body, messages = await _read(receive)
        request = Repeatable(self._key(scope, header), _digest(scope["path"], body))
        replay = iter(messages)

        async def receive_again() -> Message:
            message = next(replay, None)
            return await receive() if message is None else message

        async def answer(message: Message) -> None:
            # The refusal of a repetition, which gets another answer below.
            if request.found is None:
                await send(message)

        token = request_context.idempotency.set(request)
        try:
            await self._app(scope, receive_again, answer)
        finally:
            request_context.idempotency.reset(token)
        if request.found is not None:
            await self._repeat(request.found, scope, receive, send)

    async def _repeat(
        self, found: dict[str, Any], scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer a repetition with the thread, the run, or the run's stream or result."""

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[REPLAYED] = "true"
            await send(message)

        if self._join is None:
            await _response(found)(scope, receive, marked)
            return
        path, app = self._join
        ids = {name: str(found[name]) for name in ("thread_id", "run_id")}
        headers = [each for each in scope["headers"] if each[0] not in _OF_BODY]
        # From the beginning of the stream, as in the first answer.
        headers.append((b"last-event-id", b"-"))
        joining = {
            **scope,
            "method": "GET",
            "path": path.format(**ids),
            "raw_path": path.format(**ids).encode(),
            "path_params": ids,
            "query_string": b"",
            "headers": headers,
        }
        await app(joining, receive, marked)

    def _key(self, scope: Scope, header: str) -> str:
        user = scope.get("user")
        key = self._tenant_key
        tenant = None if key is None or user is None else tenants.of_user(user, key)
        return _digest(tenant or "", str(getattr(user, "identity", "") or ""), header)


async def _read(receive: Receive) -> tuple[bytes, list[Message]]:
    messages = [await receive()]
    while messages[-1]["type"] == "http.request" and messages[-1].get("more_body"):
        messages.append(await receive())
    return b"".join(message.get("body", b"") for message in messages), messages


def _digest(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def _response(found: dict[str, Any]) -> Any:
    from langgraph_api.route import ApiResponse

    return ApiResponse(found)


def install(routes: Iterable[BaseRoute], tenant_key: str | None) -> None:
    """Put `Idempotency` around each route that creates a thread or run, inside of authentication.

    Args:
        routes: The routes of the stock application.
        tenant_key: As in the runtime's options.
    """
    every = list(_flat(routes))
    joins = {route.path: route.app for route in every if "GET" in (route.methods or ())}
    for route in every:
        if "POST" not in (route.methods or ()):
            continue
        if route.path in _CREATIONS:
            route.app = Idempotency(route.app, tenant_key, None)
        elif route.path in _STARTS:
            path = _STARTS[route.path]
            route.app = Idempotency(route.app, tenant_key, (path, joins[path]))


def _flat(routes: Iterable[BaseRoute]) -> Iterator[Any]:
    from langgraph_api.route import ApiRoute

    for route in routes:
        if isinstance(route, ApiRoute):
            yield route
        else:
            yield from _flat(getattr(route, "routes", None) or ())
