"""Documents: upload, list and delete the documents of the caller's tenant.

`PUT /api/documents/{name}` takes the bytes of a file. If the client accepts `text/event-stream`, the
answer is a stream of `progress` events and then `document` or `error`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from starlette.responses import Response

from my_agent.turns import Turns
from server.routes.events import CONTENT_TYPE, Event
from server.routes.export import tenant_of
from server.routes.forwarding import Answer, Request
from threadhold import LangGraphPlatform

if TYPE_CHECKING:
    from my_agent.chat.documents.uploads import Stored

GRAPH = "chat"
PAGE = 100
LARGEST_PAGE = 1_000

logger = logging.getLogger(__name__)
# One document is read and embedded at a time, tenants in turn.
_turns = Turns("uploads")


async def upload(request: Request) -> None:
    """Store a document, and answer when it can be found. A known name replaces its document."""
    from my_agent.chat.documents import uploads
    from my_agent.chat.documents.reading import Unreadable

    permitted = await _permitted(request)
    if permitted is None:
        return
    tenant, like = permitted
    name = request.names["name"]
    if (problem := uploads.find_problem(name)) is not None:
        await request.answer({"detail": problem}, like, status=422)
        return
    content, loop = request.body, asyncio.get_running_loop()
    progress: asyncio.Queue[float | None] = asyncio.Queue()

    def work() -> "Stored | None":
        try:
            for done in uploads.store(tenant, name, content):
                loop.call_soon_threadsafe(progress.put_nowait, done)
            return uploads.find(tenant, name)
        finally:
            loop.call_soon_threadsafe(progress.put_nowait, None)

    # If the client disconnects, the document is stored all the same.
    stored = asyncio.wrap_future(_turns.submit(tenant, work))
    streams = _wants_events(request)
    if streams:
        headers = [*like.headers, CONTENT_TYPE]
        await request.send({"type": "http.response.start", "status": 200, "headers": headers})
    while (done := await progress.get()) is not None:
        if streams:
            await _send(request, Event("progress", {"done": round(done, 3)}))
    status, found = 200, dict[str, Any]()
    try:
        done_now = await stored
        # None: another request has deleted it meanwhile.
        found = {"detail": "The document was deleted"} if done_now is None else asdict(done_now)
        status = 409 if done_now is None else 200
    except Unreadable as error:
        status, found = 422, {"detail": f"The document cannot be read: {error}"}
    except uploads.TooManyDocuments as error:
        status, found = 409, {"detail": str(error)}
    except Exception:
        if not streams:
            raise
        logger.exception("Upload failed")
        status, found = 500, {"detail": "The document could not be stored. Try again"}
    if streams:
        await _send(request, Event("document" if status == 200 else "error", found), more=False)
    else:
        await request.answer(found, like, status=status)


async def show(request: Request) -> None:
    """Answer a page of the tenant's documents; `after` is the `next` of the page before."""
    from my_agent.chat.documents import uploads

    permitted = await _permitted(request)
    if permitted is None:
        return
    tenant, like = permitted
    query = parse_qs(request.scope.get("query_string", b"").decode("utf-8", "replace"))
    limit, after = query.get("limit", [str(PAGE)])[-1], query.get("after", [""])[-1]
    if not (limit.isascii() and limit.isdigit() and 1 <= int(limit[:9]) <= LARGEST_PAGE):
        detail = f"limit must be a number from 1 to {LARGEST_PAGE}"
        await request.answer({"detail": detail}, like, status=422)
        return
    found = await asyncio.to_thread(uploads.listed, tenant, after.replace("\0", ""), int(limit))
    following = found[-1].name if len(found) == int(limit) else None
    content = {"documents": [asdict(each) for each in found], "next": following}
    await request.answer(content, like)


async def delete(request: Request) -> None:
    """Delete an uploaded document. Answer 404 if there is none."""
    from my_agent.chat.documents import uploads

    permitted = await _permitted(request)
    if permitted is None:
        return
    tenant, like = permitted
    name = request.names["name"]
    if uploads.find_problem(name) or not await asyncio.to_thread(uploads.delete, tenant, name):
        detail = "You have no uploaded document with this name"
        await request.answer({"detail": detail}, like, status=404)
        return
    await request.respond(Response(status_code=204), like.headers)


ROUTES: dict[str, Callable[[Request], Awaitable[None]]] = {
    "GET /api/documents": show,
    "PUT /api/documents/{name}": upload,
    "DELETE /api/documents/{name}": delete,
}


def largest() -> int:
    """Return the maximum size of a document in bytes."""
    # Imported here because the import loads the graph, which other projects do not have.
    from my_agent.chat.settings import ChatSettings

    return ChatSettings.from_environment().document_max_bytes


async def _permitted(request: Request) -> tuple[str, Answer] | None:
    """Return the caller's tenant and the platform's answer to them; None: it was refused."""
    probe = await request.call("POST", "/threads/count", {})
    if probe.status != 200:
        await request.relay(probe)
        return None
    platform = request.platform
    auth = platform.config.sections["auth"] if isinstance(platform, LangGraphPlatform) else None
    tenant = None if auth is None else await tenant_of(auth, request.scope)
    if tenant is None:
        await request.pass_on()
        return None
    return tenant, probe


def _wants_events(request: Request) -> bool:
    accepted = [value for name, value in request.scope["headers"] if name.lower() == b"accept"]
    return b"text/event-stream" in b",".join(accepted).lower()


async def _send(request: Request, event: Event, *, more: bool = True) -> None:
    await request.send({"type": "http.response.body", "body": event.encode(), "more_body": more})
