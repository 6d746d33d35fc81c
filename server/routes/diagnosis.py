"""The diagnosis: read a session as it is or was, follow it, add notes, and verify it.

`GET /diagnosis/{thread_id}/state`, `/events`, `/timeline` and
`/report` read the session, `POST /diagnosis/{thread_id}/events` adds notes of people, and
`POST /diagnosis/{thread_id}/replay` rebuilds the state and verifies the chain of hashes.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NamedTuple, TypeVar
from urllib.parse import parse_qs
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import Connection
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from my_agent.user import LOCAL, User
from server.operations import NOTE_ADD, REPORT_EXPORT
from server.project import has_our_identity
from server.routes.conversation import Json, find_thread
from server.routes.forwarding import Answer, Request, read_body
from threadhold import LangGraphPlatform
from threadhold.host import resume_event, wait_end

T = TypeVar("T")
Query = TypeVar("Query", bound=BaseModel)

GRAPH = "diagnosis"
# Seconds between checks of a follower's rights, and between heartbeats.
RECHECK_SECONDS, HEARTBEAT_SECONDS = 2.0, 15.0
REFUSALS = (401, 403, 404)
_PAGE, _LARGEST_PAGE = 200, 1000
_LARGEST_SEQ = 2**53
_Handler = Callable[["Access"], Awaitable[None]]


class Access(NamedTuple):
    """An authorized request for a session.

    Attributes:
        request: the request.
        session: the id of the session.
        user: the authenticated user.
        like: an answer of the platform, whose headers the answers have.
    """

    request: Request
    session: str
    user: User
    like: Answer

    async def answer(self, content: Any, *, status: int = 200, seq: int | None = None) -> None:
        """Answer with JSON. `seq` becomes the ETag, for a later `If-Match`."""
        await self.respond(JSONResponse(content, status), seq=seq)

    async def respond(self, response: Response, *, seq: int | None = None) -> None:
        """Send a response with the platform's headers."""
        if seq is not None:
            response.headers["etag"] = f'"{seq}"'
        response.headers["cache-control"] = "no-store"
        await self.request.respond(response, self.like.headers)


class StateQuery(BaseModel):
    """The moment of a state: neither field for the current one."""

    model_config = ConfigDict(extra="ignore")

    at: datetime | None = None
    at_seq: Annotated[int, Field(ge=0, le=_LARGEST_SEQ)] | None = None


class PageQuery(BaseModel):
    """A page of events."""

    model_config = ConfigDict(extra="ignore")

    after: Annotated[int, Field(ge=0, le=_LARGEST_SEQ)] | None = None
    limit: Annotated[int, Field(ge=1, le=_LARGEST_PAGE)] = _PAGE


class Note(BaseModel):
    """A person's note."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["note_added"] = "note_added"
    text: Annotated[str, Field(min_length=1, max_length=4000)]


class Notes(BaseModel):
    """The body of a request that adds notes. Other events are the graph's own."""

    model_config = ConfigDict(extra="forbid", strict=True)

    events: Annotated[list[Note], Field(max_length=100)]


async def state(access: Access) -> None:
    """Answer with the state of a session, now or at a moment, and the event that it stands for."""
    from my_agent.diagnosis import log
    from my_agent.diagnosis.reading.record import micros

    query = await _query(access, StateQuery)
    if query is None:
        return
    if query.at is not None and query.at_seq is not None:
        await access.answer({"detail": "Give either at or at_seq"}, status=422)
        return
    when = query.at
    at = None if when is None else micros(when if when.tzinfo else when.replace(tzinfo=UTC))
    found = await _read(
        access,
        lambda conn: log.moment(
            conn, access.user.tenant_id, access.session, at=at, at_seq=query.at_seq
        ),
    )
    body = {"session_id": access.session, "seq": found.seq, "state": _shown_state(found.state)}
    await access.answer(body, seq=found.seq)


async def events(access: Access) -> None:
    """Answer with a page of events; with `Accept: text/event-stream`, follow them as they come."""
    from my_agent.diagnosis import log

    query = await _query(access, PageQuery)
    if query is None:
        return
    headers = dict(access.request.scope["headers"])
    accepted = headers.get(b"accept", b"").lower()
    # A client that takes both gets the page, which ends.
    if b"text/event-stream" in accepted and b"application/json" not in accepted:
        await _follow(access, query.after, headers.get(b"last-event-id", b""))
        return
    after = query.after or 0
    tenant, session, limit = access.user.tenant_id, access.session, query.limit
    found, last = await _read(
        access,
        lambda conn: (
            log.page(conn, tenant, session, after=after, count=limit),
            log.last_seq(conn, tenant, session),
        ),
    )
    shown = [_shown(each) for each in found]
    following = found[-1].seq if found and found[-1].seq < last else None
    body = {"session_id": session, "events": shown, "last_seq": last, "next": following}
    await access.answer(body, seq=last)


async def timeline(access: Access) -> None:
    """Answer with the timeline of a page of events, in the order of the incident."""
    from my_agent.diagnosis import log
    from my_agent.diagnosis.fold import timeline_entry
    from my_agent.diagnosis.upcasting import current

    query = await _query(access, PageQuery)
    if query is None:
        return
    after, limit = query.after or 0, query.limit
    found = await _read(
        access,
        lambda conn: log.page(
            conn, access.user.tenant_id, access.session, after=after, count=limit
        ),
    )
    entries = [
        entry
        for each in found
        for entry in [
            timeline_entry(
                each.seq, each.type, current(each.type, each.version, each.data), each.at
            )
        ]
        if entry is not None
    ]
    entries.sort(key=lambda each: (each["when"], each["seq"]))
    shown = [{**each, "when": _iso(each["when"])} for each in entries]
    following = found[-1].seq if len(found) == limit else None
    await access.answer({"session_id": access.session, "entries": shown, "next": following})


async def report(access: Access) -> None:
    """Answer with the report of a session in Markdown."""
    from my_agent.diagnosis import log
    from my_agent.diagnosis.report import render

    found = await _read(
        access, lambda conn: log.moment(conn, access.user.tenant_id, access.session)
    )
    await access.request.enter(REPORT_EXPORT, **access.request.names)
    text = render(access.session, found.state, found.state["timeline"])
    await access.respond(PlainTextResponse(text, media_type="text/markdown"), seq=found.seq)


async def add_notes(access: Access) -> None:
    """Append notes, if the session is at the event that `If-Match` names."""
    from my_agent.diagnosis import following, log
    from my_agent.diagnosis.events import NoteAdded, new

    body = await read_body(access.request, Notes)
    if body is None:
        return
    given = dict(access.request.scope["headers"]).get(b"if-match")
    expected = None if given is None else _seq(given)
    if given is None or expected is None:
        status = 428 if given is None else 422
        detail = "Name the last event that you know: If-Match: SEQ, as in the ETag of the state"
        await access.answer({"error": "if_match", "detail": detail}, status=status)
        return
    notes = [new(NoteAdded(author=access.user.user_id[:80], text=e.text)) for e in body.events]
    tenant, session = access.user.tenant_id, access.session
    try:
        async with access.request.writing(NOTE_ADD, thread_id=session, notes=len(notes)):
            done = await _write(
                access, lambda conn: log.append(conn, tenant, session, notes, expected=expected)
            )
    except log.Conflict as error:
        refusal = {
            "error": "conflict",
            "detail": str(error),
            "current": error.current,
            "expected": error.expected,
        }
        await access.answer(refusal, status=412, seq=error.current)
        return
    following.wake(tenant, session)
    status = 201 if notes else 200
    await access.answer({"session_id": session, "seq": done.seq}, status=status, seq=done.seq)


async def replay(access: Access) -> None:
    """Rebuild the state from all events, and compare it with the stored one and the graph's."""
    from my_agent.diagnosis.verify import verify

    found = await access.request.call("GET", f"/threads/{access.session}/state")
    if found.status != 200:
        await access.request.relay(found)
        return
    live = (found.content["values"] or {}).get("diagnosis")
    verdict = await _read(
        access, lambda conn: verify(conn, access.user.tenant_id, access.session, live)
    )
    await access.answer({"session_id": access.session, **verdict._asdict()}, seq=verdict.seq)


def _authorized(handler: _Handler) -> Callable[[Request], Awaitable[None]]:
    """Return a handler that first lets the platform check that the caller may read the thread."""

    async def handle(request: Request) -> None:
        # Imported here because the import loads the graph, which other projects do not have.
        from my_agent.diagnosis.upcasting import UnknownEvent

        thread = await find_thread(request, request.names["thread_id"], GRAPH)
        if thread is None:
            return
        like = await request.call("GET", f"/threads/{thread}")
        if like.status != 200:
            await request.relay(like)
            return
        user = await _user(request)
        if user is None:
            # The project has its own authentication, whose tenants are unknown.
            await request.pass_on()
            return
        access = Access(request, str(thread), user, like)
        try:
            await handler(access)
        except UnknownEvent as error:
            # A newer release has written it. A state without it would be wrong.
            detail = {"error": "unknown_event", "detail": str(error)}
            await access.answer(detail, status=409)

    handle.__doc__ = handler.__doc__
    return handle


ROUTES: dict[str, Callable[[Request], Awaitable[None]]] = {
    "GET /diagnosis/{thread_id}/state": _authorized(state),
    "GET /diagnosis/{thread_id}/events": _authorized(events),
    "GET /diagnosis/{thread_id}/timeline": _authorized(timeline),
    "GET /diagnosis/{thread_id}/report": _authorized(report),
    "POST /diagnosis/{thread_id}/events": _authorized(add_notes),
    "POST /diagnosis/{thread_id}/replay": _authorized(replay),
}


async def _user(request: Request) -> User | None:
    platform = request.platform
    if not isinstance(platform, LangGraphPlatform):
        return None
    auth = platform.config.sections["auth"]
    if not has_our_identity(auth):
        return None if auth else LOCAL
    # Imported here: other projects do not need the package cryptography.
    from hooks.identity import authenticator

    found = await authenticator().identify(request.scope)
    return User(found["tenant_id"], found["identity"])


async def _follow(access: Access, after: int | None, last: bytes) -> None:
    from my_agent.diagnosis.following import TooManyFollowers, counted
    from my_agent.diagnosis.settings import DiagnosisSettings

    start = after if after is not None else _seq(last) or 0
    most = DiagnosisSettings.from_environment().max_followers
    count = counted(access.user.tenant_id, most)
    try:
        count.__enter__()
    except TooManyFollowers:
        detail = f"At most {most} streams can follow sessions at once: close one"
        await access.answer({"detail": detail}, status=429)
        return
    try:
        stream = StreamingResponse(_sent(access, start), media_type="text/event-stream")
        await access.respond(stream)
    finally:
        count.__exit__(None, None, None)


async def _sent(access: Access, after: int) -> AsyncIterator[bytes]:
    """Yield the events as server-sent events, until the caller may no longer read them."""
    from my_agent.database import database
    from my_agent.diagnosis.following import follow

    clock = asyncio.get_running_loop().time
    checked = beaten = clock()
    yield b": following\n\n"
    store = await asyncio.to_thread(database)
    ending = asyncio.create_task(wait_end(UUID(access.session)))
    is_last, last = False, after
    async with AsyncExitStack() as stack:
        stack.callback(ending.cancel)
        pages = await stack.enter_async_context(
            aclosing(follow(store, access.user.tenant_id, access.session, after))
        )
        async for page in pages:
            if page:
                last = page[-1].seq
                yield b"".join(
                    f"id: {each.seq}\nevent: {each.type}\ndata: {json.dumps(_shown(each))}\n\n".encode()
                    for each in page
                )
            elif is_last:
                yield resume_event(access.request.scope["path"], str(last))
                return
            # The process stops, and the next empty page is the last one.
            is_last = ending.done()
            now = clock()
            if now - checked > RECHECK_SECONDS:
                checked = now
                found = await access.request.call("GET", f"/threads/{access.session}")
                if found.status in REFUSALS:
                    return
            if now - beaten > HEARTBEAT_SECONDS:
                beaten = now
                yield b": heartbeat\n\n"


async def _read(access: Access, work: Callable[[Connection], T]) -> T:
    from my_agent.database import database

    store = await asyncio.to_thread(database)
    return await store.run(work, access.user.tenant_id)


async def _write(access: Access, work: Callable[[Connection], T]) -> T:
    from my_agent.database import database

    store = await asyncio.to_thread(database)
    return await store.run(work, access.user.tenant_id, write=True)


async def _query(access: Access, model: type[Query]) -> Query | None:
    """Parse the query of a request. If it is invalid, answer with 422 and return None."""
    raw = parse_qs(access.request.scope["query_string"].decode("latin-1"))
    try:
        return model.model_validate({name: values[-1] for name, values in raw.items()})
    except (ValidationError, OverflowError) as error:
        names = (
            [f"{each['loc'][0]}: {each['msg']}" for each in error.errors()]
            if isinstance(error, ValidationError)
            else ["at: is out of range"]
        )
        await access.answer({"detail": "; ".join(names)}, status=422)
        return None


def _seq(header: bytes) -> int | None:
    """Return the number in an ETag or an event's id, or None."""
    text = header.decode("latin-1").strip().removeprefix("W/").strip('"')
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def _shown(event: Any) -> Json:
    return {**event._asdict(), "at": _iso(event.at)}


def _shown_state(found: Json) -> Json:
    """Return a state for clients: with times as text, and the timeline in the incident's order."""
    entries = sorted(found["timeline"], key=lambda each: (each["when"], each["seq"]))
    return {
        **found,
        "at": None if found["at"] is None else _iso(found["at"]),
        "timeline": [{**each, "when": _iso(each["when"])} for each in entries],
    }


def _iso(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1e6, UTC).isoformat(timespec="microseconds")
