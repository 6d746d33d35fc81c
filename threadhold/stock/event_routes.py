"""Event routes: let the routes of protocol 2 read cursors, and refuse invalid ones."""

from typing import Any

import orjson
from starlette.responses import JSONResponse
from starlette.routing import websocket_session
from starlette.types import ASGIApp

from langgraph_runtime_sql import pacing
from langgraph_runtime_sql.tenancy import scope
from threadhold.http import stream_ends
from threadhold.stock.event_streaming import cursor_of_request
from threadhold.stock.stream_places import Cursor, InvalidCursor, parse_cursor

# The expected time on the event loop until a stream sends its first event, in milliseconds.
BEGIN_MS = 8.0


def events(stock: Any) -> ASGIApp:
    """Return the app of the stream of server-sent events."""
    from langgraph_api.route import api_request_response

    async def thread_events(request: Any) -> Any:
        try:
            cursor_of_request.set(await _read_cursor(request))
        except InvalidCursor as error:
            return JSONResponse({"detail": str(error)}, 400)
        await pacing.turn(scope.turn(), "streams", BEGIN_MS)
        return await stock.endpoint(request)

    app: ASGIApp = api_request_response(thread_events)
    return app


def websocket(stock: Any) -> ASGIApp:
    """Return the app of the WebSocket."""

    async def thread_websocket(socket: Any) -> None:
        query = socket.query_params
        since = query.get("since")
        try:
            asked = query.get("since_event_id") or since or socket.headers.get("last-event-id")
            cursor_of_request.set(parse_cursor(None, asked))
        except InvalidCursor as error:
            await socket.accept()
            refused = {"type": "error", "id": None, "error": "invalid_argument"}
            await socket.send_json({**refused, "message": str(error)})
            await socket.close(1008)
            return
        await pacing.turn(scope.turn(), "streams", BEGIN_MS)
        await stream_ends.hand_over_socket(socket, stock.endpoint)

    return websocket_session(thread_websocket)


async def _read_cursor(request: Any) -> Cursor | None:
    """Return the cursor of a request, and remove it from the body.

    Raises:
        InvalidCursor: no event has it.
    """
    try:
        body = orjson.loads(await request.body())
    except orjson.JSONDecodeError:
        return None
    if not isinstance(body, dict):
        return None
    since, event_id = body.pop("since", None), body.pop("since_event_id", None)
    if since is None and event_id is None:
        event_id = request.headers.get("last-event-id") or None
    request._body = orjson.dumps(body)
    return parse_cursor(since, event_id)
