"""Documents: upload, list and delete the documents of the caller's tenant.

`PUT /api/documents/{name}` takes the bytes of a file. If the client accepts `text/event-stream`, the
answer is a stream of `progress` events and then `document` or `error`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from starlette.responses import JSONResponse, Response

from my_agent.parsing import Unreadable
from my_agent.turns import TooManyWaiting, Turns
from server.operations import DOCUMENT_DELETE, DOCUMENT_PUT
from server.routes.events import CONTENT_TYPE, Event
from server.routes.export import tenant_of
from server.routes.forwarding import Answer, Request
from threadhold import LangGraphPlatform
from threadhold.host import resume_event, wait_end

if TYPE_CHECKING:
    from my_agent.chat.documents.uploads import Stored

GRAPH = "chat"
PAGE = 100
LARGEST_PAGE = 1_000
_LARGEST_NUMBER = 2**31

logger = logging.getLogger(__name__)
# One batch of passages is embedded at a time, tenants in turn, and questions go first.
_turns = Turns("uploads", niceness=10)
# The event loop keeps only weak references to its tasks.
_storing: set[asyncio.Task["Stored | None"]] = set()
# What this process stores now: how far each upload of a tenant is, by name.
_uploading: dict[str, dict[str, float]] = {}


class _Progress(asyncio.Queue[float | None]):
    """The progress of an upload, from 0 to 1, and None at its end. The listing shows it, too."""

    def __init__(self, tenant: str, name: str) -> None:
        super().__init__()
        self._tenant, self._name = tenant, name
        _uploading.setdefault(tenant, {})[name] = 0.0

    def put_nowait(self, item: float | None) -> None:
        running = _uploading.setdefault(self._tenant, {})
        if item is None:
            running.pop(self._name, None)
        else:
            running[self._name] = round(item, 3)
        if not running:
            del _uploading[self._tenant]
        super().put_nowait(item)


async def upload(request: Request) -> None:
    """Store a document, and answer when it can be found. A known name replaces its document."""
    from my_agent.chat.documents import uploads

    permitted = await _permitted(request)
    if permitted is None:
        return
    tenant, like = permitted
    name = request.names["name"]
    if (problem := uploads.find_problem(name)) is not None:
        await request.answer({"detail": problem}, like, status=422)
        return
    progress = _Progress(tenant, name)
    async with request.writing(DOCUMENT_PUT, name=name):
        # If the client disconnects, the document is stored all the same.
        stored = asyncio.create_task(_store(tenant, name, request.body, progress))
    _storing.add(stored)
    stored.add_done_callback(_storing.discard)
    streams = _wants_events(request)
    if streams:
        headers = [*like.headers, CONTENT_TYPE]
        await request.send({"type": "http.response.start", "status": 200, "headers": headers})
    ending = asyncio.create_task(wait_end())
    ending.add_done_callback(lambda _: progress.put_nowait(None))
    try:
        while (done := await progress.get()) is not None:
            if streams:
                await _send(request, Event("progress", {"done": round(done, 3)}))
    finally:
        ending.cancel()
    if not stored.done():
        await _hand_over(request, like, streams=streams)
        return
    status, found = 200, dict[str, Any]()
    try:
        done_now = await asyncio.shield(stored)
        # None: another request has deleted it meanwhile.
        found = {"detail": "The document was deleted"} if done_now is None else asdict(done_now)
        status = 409 if done_now is None else 200
    except Unreadable as error:
        status, found = 422, {"detail": f"The document cannot be read: {error}"}
    except uploads.TooManyDocuments as error:
        status, found = 409, {"detail": str(error)}
    except TooManyWaiting as error:
        status, found = 429, {"detail": str(error)}
    except Exception:
        if not streams:
            raise
        logger.exception("Upload failed")
        status, found = 500, {"detail": "The document could not be stored. Try again"}
    if streams:
        await _send(request, Event("document" if status == 200 else "error", found), more=False)
    else:
        await request.answer(found, like, status=status)


async def _hand_over(request: Request, like: Answer, *, streams: bool) -> None:
    """End the answer to an upload that the process cannot complete, because it stops."""
    reason = "The server stops. Send the document again: what has been indexed is kept"
    if streams:
        body = resume_event(request.scope["path"], None, reason=reason)
        await request.send({"type": "http.response.body", "body": body, "more_body": False})
        return
    response = JSONResponse({"detail": reason}, 503, {"Retry-After": "1"})
    await request.respond(response, like.headers)


async def _store(tenant: str, name: str, content: bytes, progress: "_Progress") -> "Stored | None":
    """Store a document batch by batch; other tenants take turns in between."""
    from my_agent.chat.documents import uploads

    # The thread's own context knows neither the request nor what it may write.
    within = copy_context().run
    try:
        known = partial(within, uploads.is_stored, tenant, name, content)
        if not await _turns.run(tenant, known):
            passages = await uploads.parse(tenant, name, content)
            step = partial(within, next, uploads.store(tenant, name, content, passages), None)
            while (done := await _turns.run(tenant, step)) is not None:
                progress.put_nowait(done)
        progress.put_nowait(1.0)
        return await asyncio.to_thread(uploads.find, tenant, name)
    finally:
        progress.put_nowait(None)


async def show(request: Request) -> None:
    """Answer a page of the tenant's documents; `after` is the `next` of the page before.

    `name` asks for one document. `uploading` has the uploads that this process stores now.
    """
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
    following = None
    if "name" in query:
        name = query["name"][-1].replace("\0", "")
        only = await asyncio.to_thread(uploads.find, tenant, name)
        found = [] if only is None else [only]
    else:
        found = await asyncio.to_thread(uploads.listed, tenant, after.replace("\0", ""), int(limit))
        following = found[-1].name if len(found) == int(limit) else None
    content = {
        "documents": [asdict(each) for each in found],
        "next": following,
        "uploading": dict(_uploading.get(tenant, {})),
    }
    await request.answer(content, like)


async def passages(request: Request) -> None:
    """Answer a passage and its neighbours; `number` is its position in the document, from 1 (default)."""
    from my_agent.chat.documents import surroundings
    from my_agent.database import database

    permitted = await _permitted(request)
    if permitted is None:
        return
    tenant, like = permitted
    query = parse_qs(request.scope.get("query_string", b"").decode("utf-8", "replace"))
    number = query.get("number", ["1"])[-1]
    if not (number.isascii() and number.isdigit() and 1 <= int(number[:12]) <= _LARGEST_NUMBER):
        detail = "number must be the position of a passage in its document, from 1"
        await request.answer({"detail": detail}, like, status=422)
        return
    document = request.names["document_id"].replace("\0", "")
    store = await asyncio.to_thread(database)
    found = await store.run(
        lambda connection: surroundings.around(connection, tenant, document, int(number)), tenant
    )
    if not found:
        detail = "You have no document with this passage"
        await request.answer({"detail": detail}, like, status=404)
        return
    await request.answer({"passages": found}, like)


async def delete(request: Request) -> None:
    """Delete an uploaded document. Answer 404 if there is none."""
    from my_agent.chat.documents import uploads

    permitted = await _permitted(request)
    if permitted is None:
        return
    tenant, like = permitted
    name = request.names["name"]
    deleted = False
    if not uploads.find_problem(name):
        async with request.writing(DOCUMENT_DELETE, name=name):
            deleted = await asyncio.to_thread(uploads.delete, tenant, name)
    if not deleted:
        detail = "You have no uploaded document with this name"
        await request.answer({"detail": detail}, like, status=404)
        return
    await request.respond(Response(status_code=204), like.headers)


ROUTES: dict[str, Callable[[Request], Awaitable[None]]] = {
    "GET /api/documents": show,
    "GET /api/passages/{document_id}": passages,
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
