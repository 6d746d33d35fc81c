"""Product routes: what stands before the platform for agents that have the thread policy."""

from collections.abc import Awaitable, Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from langgraph_runtime_sql import hooks
from server.routes import runs, threads
from server.routes.forwarding import Request

Handler = Callable[[Request, frozenset[str]], Awaitable[None]]

ROUTES: dict[str, Handler] = {
    "/threads/resolve": threads.resolve,
    "/threads/{thread_id}/resume": threads.resume,
    "/threads/search": threads.search,
    "/threads/count": threads.search,
    "/runs": runs.start,
    "/runs/wait": runs.start,
    "/runs/stream": runs.start,
}
"""Path below the mount to what answers a POST there."""


class ProductRoutes:
    """Middleware around the platform: answers `ROUTES`, and passes on everything else.

    It asks the platform with the caller's own headers, so that authentication
    and authorization are the platform's, and does nothing where the project's
    hooks are not the thread policy.

    Args:
        app: The platform.
        max_body_bytes: Larger bodies are refused, as the platform does.
    """

    def __init__(self, app: ASGIApp, *, max_body_bytes: int) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        handler = self._handler(scope)
        settings = getattr(hooks.configured(), "thread_settings", None)
        if handler is None or settings is None or not settings.thread_policy_agents:
            await self._app(scope, receive, send)
            return
        request = await Request.read(self._app, scope, receive, send, limit=self._max_body_bytes)
        if request.whole:
            await handler(request, frozenset(settings.thread_policy_agents))
        elif request.is_too_large:
            detail = f"Request body too large (limit: {self._max_body_bytes} bytes)"
            await request.refuse(413, {"detail": detail})

    @staticmethod
    def _handler(scope: Scope) -> Handler | None:
        if scope["type"] != "http" or scope["method"] != "POST":
            return None
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        parts = path.split("/")
        if len(parts) == 4 and parts[1] == "threads" and parts[3] == "resume":
            path = "/threads/{thread_id}/resume"
        return ROUTES.get(path)
