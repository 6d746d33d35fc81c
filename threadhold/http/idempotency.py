"""Idempotency: answer a repeated creation with what the first request has created."""

import hashlib
from collections.abc import Iterable
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from langgraph_runtime_sql import request_context
from langgraph_runtime_sql.ops.idempotency import Repeatable
from langgraph_runtime_sql.tenancy import tenants

HEADER = "idempotency-key"
MAX_LENGTH = 255
# Their answer is the thread or run, so a repetition can have the same.
_CREATIONS = ("/threads", "/runs", "/threads/{thread_id}/runs")
# Their answer is a stream or a result. A repetition gets a 409 that names the run.
_STARTS = tuple(
    f"{prefix}/{end}"
    for prefix in ("/runs", "/threads/{thread_id}/runs")
    for end in ("stream", "wait")
)


class Idempotency:
    """Let a request with `Idempotency-Key` create its thread or run once."""

    def __init__(self, app: ASGIApp, tenant_key: str | None, *, answers: bool) -> None:
        self._app, self._tenant_key, self._answers = app, tenant_key, answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        header = Headers(scope=scope).get(HEADER) if scope["type"] == "http" else None
        if header is None or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        if not 0 < len(header) <= MAX_LENGTH:
            detail = f"The header Idempotency-Key must have 1 to {MAX_LENGTH} characters"
            await JSONResponse({"detail": detail}, 422)(scope, receive, send)
            return
        body, messages = await _read(receive)
        request = Repeatable(self._key(scope, header), _digest(scope["path"], body))
        replay = iter(messages)

        async def receive_again() -> Message:
            message = next(replay, None)
            return await receive() if message is None else message

        replaced = False

        async def answer(message: Message) -> None:
            nonlocal replaced
            if replaced:
                return
            if self._answers and request.found is not None:
                replaced = True
                await _response(request.found)(scope, receive, send)
                return
            await send(message)

        token = request_context.idempotency.set(request)
        try:
            await self._app(scope, receive_again, answer)
        finally:
            request_context.idempotency.reset(token)

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

    return ApiResponse(found, headers={"Idempotent-Replayed": "true"})


def install(routes: Iterable[BaseRoute], tenant_key: str | None) -> None:
    """Put `Idempotency` around each route that creates a thread or run, inside of authentication.

    Args:
        routes: The routes of the stock application.
        tenant_key: As in the runtime's options.
    """
    from langgraph_api.route import ApiRoute

    for route in routes:
        if not isinstance(route, ApiRoute):
            install(getattr(route, "routes", None) or (), tenant_key)
        elif route.path in (*_CREATIONS, *_STARTS):
            route.app = Idempotency(route.app, tenant_key, answers=route.path in _CREATIONS)
