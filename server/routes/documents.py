"""Documents: upload, list and delete the documents of the caller's tenant.

`PUT /api/documents/{name}` takes the bytes of a file. If the client accepts `text/event-stream`, the
answer is a stream of `progress` events and then `document` or `error`.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextvars import copy_context
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response, StreamingResponse

from my_agent.parsing import Unreadable
from my_agent.turns import TenantThreads, TooManyWaiting
from server.operations import DOCUMENT_DELETE, DOCUMENT_PUT
from server.routes.endpoint import Caller, Json, endpoint
from server.routes.events import Event
from threadhold.host import LargeBody, resume_event, wait_end

if TYPE_CHECKING:
    from my_agent.chat.documents.uploads import Stored

PAGE = 100
LARGEST_PAGE = 1_000
_LARGEST_NUMBER = 2**31
STOPS = "The server stops. Send the document again: what has been indexed is kept"

logger = logging.getLogger(__name__)
# One batch of passages is embedded at a time, tenants in turn, and questions go first.
_turns = TenantThreads("uploads", niceness=10)
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


class Page(BaseModel):
    """A page of documents."""

    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = PAGE
    after: Annotated[str, Field(description="`next` of the page before")] = ""
    name: Annotated[str | None, Field(description="Only this document")] = None


class PassageSpan(BaseModel):
    """A place in a document."""

    number: Annotated[int, Field(ge=1, le=_LARGEST_NUMBER)] = 1


def largest() -> LargeBody:
    """Return the maximum size of a document."""
    # Imported here because the import loads the graph, which other projects do not have.
    from my_agent.chat.settings import ChatSettings

    limit = ChatSettings.from_environment().document_max_bytes
    refusal = f"The document is larger than {limit:,} bytes (CHAT_DOCUMENT_MAX_BYTES)"
    return LargeBody(limit, refusal)


@endpoint("PUT /api/documents/{name}", large=largest)
async def upload(caller: Caller) -> Response:
    """Store a document, and answer when it can be found. A known name replaces its document."""
    from my_agent.chat.documents import uploads

    name = caller.name("name")
    if (problem := uploads.find_problem(name)) is not None:
        raise HTTPException(422, problem)
    content = await caller.request.body()
    progress = _Progress(caller.tenant, name)
    async with caller.writing(DOCUMENT_PUT, name=name):
        # If the client disconnects, the document is stored all the same.
        stored = asyncio.create_task(_store(caller.tenant, name, content, progress))
    _storing.add(stored)
    stored.add_done_callback(_storing.discard)
    if caller.accepts("text/event-stream"):
        path = caller.request.scope["path"]
        return StreamingResponse(_followed(stored, progress, path), media_type="text/event-stream")
    async for _ in _reported(progress):
        pass
    if not stored.done():
        raise HTTPException(503, STOPS, {"Retry-After": "1"})
    status, found = await _outcome(stored)
    return JSONResponse(found, status)


async def _reported(progress: "_Progress") -> AsyncIterator[float]:
    """Yield how far an upload is, until its end or that of the process."""
    ending = asyncio.create_task(wait_end())
    ending.add_done_callback(lambda _: progress.put_nowait(None))
    try:
        while (done := await progress.get()) is not None:
            yield done
    finally:
        ending.cancel()


async def _followed(
    stored: "asyncio.Task[Stored | None]", progress: "_Progress", path: str
) -> AsyncIterator[bytes]:
    """Yield the events of an upload."""
    async for done in _reported(progress):
        yield Event("progress", {"done": round(done, 3)}).encode()
    if not stored.done():
        yield resume_event(path, None, reason=STOPS)
        return
    try:
        status, found = await _outcome(stored)
    except Exception:
        logger.exception("Upload failed")
        status, found = 500, {"detail": "The document could not be stored. Try again"}
    yield Event("document" if status == 200 else "error", found).encode()


async def _outcome(stored: "asyncio.Task[Stored | None]") -> tuple[int, Json]:
    """Return the status and the body of the answer to an upload that has ended."""
    from my_agent.chat.documents import uploads

    try:
        done = await asyncio.shield(stored)
    except Unreadable as error:
        return 422, {"detail": f"The document cannot be read: {error}"}
    except uploads.TooManyDocuments as error:
        return 409, {"detail": str(error)}
    except TooManyWaiting as error:
        return 429, {"detail": str(error)}
    # None: another request has deleted it meanwhile.
    return (409, {"detail": "The document was deleted"}) if done is None else (200, asdict(done))


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


@endpoint("GET /api/documents")
async def show(caller: Caller, query: Page) -> Json:
    """Answer a page of the tenant's documents; `after` is the `next` of the page before.

    `name` asks for one document. `uploading` has the uploads that this process stores now.
    """
    from my_agent.chat.documents import uploads

    tenant, following = caller.tenant, None
    if query.name is not None:
        only = await asyncio.to_thread(uploads.find, tenant, query.name.replace("\0", ""))
        found = [] if only is None else [only]
    else:
        after = query.after.replace("\0", "")
        found = await asyncio.to_thread(uploads.listed, tenant, after, query.limit)
        following = found[-1].name if len(found) == query.limit else None
    return {
        "documents": [asdict(each) for each in found],
        "next": following,
        "uploading": dict(_uploading.get(tenant, {})),
    }


@endpoint("GET /api/passages/{document_id}")
async def passages(caller: Caller, query: PassageSpan) -> Json:
    """Answer a passage and its neighbours; `number` is its position in the document, from 1 (default)."""
    from my_agent.chat.documents import surroundings
    from my_agent.tables import tables

    tenant, document = caller.tenant, caller.name("document_id").replace("\0", "")
    found = await tables.run(
        lambda connection: surroundings.around(connection, tenant, document, query.number), tenant
    )
    if not found:
        raise HTTPException(404, "You have no document with this passage")
    return {"passages": found}


@endpoint("DELETE /api/documents/{name}")
async def delete(caller: Caller) -> Response:
    """Delete an uploaded document. Answer 404 if there is none."""
    from my_agent.chat.documents import uploads

    name, deleted = caller.name("name"), False
    if not uploads.find_problem(name):
        async with caller.writing(DOCUMENT_DELETE, name=name):
            deleted = await asyncio.to_thread(uploads.delete, caller.tenant, name)
    if not deleted:
        raise HTTPException(404, "You have no uploaded document with this name")
    return Response(status_code=204)


ROUTES = [show, passages, upload, delete]
