"""The diagnosis: read a session as it is or was, follow it, add notes, and verify it.

`GET /diagnosis/{thread_id}/state`, `/events`, `/timeline` and
`/report` read the session, `POST /diagnosis/{thread_id}/events` adds notes of people, and
`POST /diagnosis/{thread_id}/replay` rebuilds the state and verifies the chain of hashes.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, aclosing
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from server.operations import NOTE_ADD, REPORT_EXPORT
from server.routes.endpoint import Caller, Json, Refusal, endpoint
from server.routes.sessions import LARGEST_SEQ, NO_STORE, Session, answer, find
from threadhold import operations
from threadhold.host import resume_event, wait_end

# Seconds between checks of a follower's rights, and between heartbeats.
RECHECK_SECONDS, HEARTBEAT_SECONDS = 2.0, 15.0
_PAGE, _LARGEST_PAGE = 200, 1000


class StateQuery(BaseModel):
    """The moment of a state: neither field for the current one."""

    model_config = ConfigDict(extra="ignore")

    at: datetime | None = None
    at_seq: Annotated[int, Field(ge=0, le=LARGEST_SEQ)] | None = None


class PageQuery(BaseModel):
    """A page of events."""

    model_config = ConfigDict(extra="ignore")

    after: Annotated[int, Field(ge=0, le=LARGEST_SEQ)] | None = None
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


@endpoint("GET /diagnosis/{thread_id}/state")
async def state(caller: Caller, query: StateQuery) -> Response:
    """Answer with the state of a session, now or at a moment, and the event that it stands for."""
    from my_agent.diagnosis.reading.record import micros
    from my_agent.diagnosis.record import log

    session = await find(caller)
    if query.at is not None and query.at_seq is not None:
        raise HTTPException(422, "Give either at or at_seq")
    when = query.at
    at = None if when is None else micros(when if when.tzinfo else when.replace(tzinfo=UTC))
    found = await session.read(
        lambda conn: log.moment(conn, session.tenant, session.id, at=at, at_seq=query.at_seq)
    )
    body = {"session_id": session.id, "seq": found.seq, "state": _shown_state(found.state)}
    return answer(body, seq=found.seq)


@endpoint("GET /diagnosis/{thread_id}/events")
async def events(caller: Caller, query: PageQuery) -> Response:
    """Answer with a page of events; with `Accept: text/event-stream`, follow them as they come."""
    from my_agent.diagnosis.record import log

    session = await find(caller)
    # A client that takes both gets the page, which ends.
    if caller.accepts("text/event-stream") and not caller.accepts("application/json"):
        start = query.after if query.after is not None else _seq(caller.header("last-event-id"))
        return _follow(session, start or 0)
    after = query.after or 0
    found, last = await session.read(
        lambda conn: (
            log.page(conn, session.tenant, session.id, after=after, count=query.limit),
            log.last_seq(conn, session.tenant, session.id),
        )
    )
    shown = [_shown(each) for each in found]
    following = found[-1].seq if found and found[-1].seq < last else None
    body = {"session_id": session.id, "events": shown, "last_seq": last, "next": following}
    return answer(body, seq=last)


@endpoint("GET /diagnosis/{thread_id}/timeline")
async def timeline(caller: Caller, query: PageQuery) -> Response:
    """Answer with the timeline of a page of events, in the order of the incident."""
    from my_agent.diagnosis.record import log
    from my_agent.diagnosis.record.fold import timeline_entry
    from my_agent.diagnosis.record.upcasting import current

    session = await find(caller)

    def read(conn: Connection) -> tuple[list[Json], int | None]:
        found = log.page(
            conn, session.tenant, session.id, after=query.after or 0, count=query.limit
        )
        entries = [
            timeline_entry(
                each.seq, each.type, current(each.type, each.version, each.data), each.at
            )
            for each in found
        ]
        following = found[-1].seq if len(found) == query.limit else None
        return [each for each in entries if each is not None], following

    entries, following = await session.read(read)
    entries.sort(key=lambda each: (each["when"], each["seq"]))
    shown = [{**each, "when": _iso(each["when"])} for each in entries]
    return answer({"session_id": session.id, "entries": shown, "next": following})


@endpoint("GET /diagnosis/{thread_id}/report")
async def report(caller: Caller) -> Response:
    """Answer with the report of a session in Markdown."""
    from my_agent.diagnosis.record import log
    from my_agent.diagnosis.report import render

    session = await find(caller)
    found = await session.read(lambda conn: log.moment(conn, session.tenant, session.id))
    await caller.enter(REPORT_EXPORT, **caller.request.path_params)
    text = render(session.id, found.state, found.state["timeline"])
    headers = {**NO_STORE, "etag": f'"{found.seq}"'}
    return PlainTextResponse(text, media_type="text/markdown", headers=headers)


@endpoint("POST /diagnosis/{thread_id}/events", acts_again=True)
async def add_notes(caller: Caller, body: Notes) -> Response:
    """Append notes, if the session is at the event that `If-Match` names."""
    from my_agent.diagnosis.record import following, log
    from my_agent.diagnosis.record.events import NoteAdded, new

    session = await find(caller)
    given = caller.request.headers.get("if-match")
    expected = None if given is None else _seq(given)
    if given is None or expected is None:
        detail = "Name the last event that you know: If-Match: SEQ, as in the ETag of the state"
        status = 428 if given is None else 422
        raise Refusal(status, {"error": "if_match", "detail": detail}, NO_STORE)
    author = caller.person.user_id[:80]
    notes = [new(NoteAdded(author=author, text=each.text)) for each in body.events]
    try:
        async with caller.writing(NOTE_ADD, thread_id=session.id, notes=len(notes)):
            done = await session.write(
                lambda conn: log.append(conn, session.tenant, session.id, notes, expected=expected)
            )
    except log.Conflict as error:
        refusal = {
            "error": "conflict",
            "detail": str(error),
            "current": error.current,
            "expected": error.expected,
        }
        return answer(refusal, status=412, seq=error.current)
    following.wake(session.tenant, session.id)
    added = {"session_id": session.id, "seq": done.seq}
    return answer(added, status=201 if notes else 200, seq=done.seq)


@endpoint("POST /diagnosis/{thread_id}/replay")
async def replay(caller: Caller) -> Response:
    """Rebuild the state from all events, and compare it with the stored one and the graph's."""
    from my_agent.diagnosis.record.verify import verify

    session = await find(caller)
    found = await operations.read_state(caller.user, session.id)
    live = (found["values"] or {}).get("diagnosis")
    verdict = await session.read(lambda conn: verify(conn, session.tenant, session.id, live))
    return answer({"session_id": session.id, **verdict._asdict()}, seq=verdict.seq)


ROUTES = [state, events, timeline, report, add_notes, replay]


def _follow(session: Session, start: int) -> Response:
    from my_agent.diagnosis.record.following import TooManyFollowers, counted
    from my_agent.diagnosis.settings import DiagnosisSettings

    most = DiagnosisSettings.from_environment().max_followers
    count = ExitStack()
    try:
        count.enter_context(counted(session.tenant, most))
    except TooManyFollowers as error:
        detail = f"At most {most} streams can follow sessions at once: close one"
        raise HTTPException(429, detail, NO_STORE) from error

    class Followed(StreamingResponse):
        async def __call__(self, *arguments: Any) -> None:
            with count:
                await super().__call__(*arguments)

    return Followed(_sent(session, start), media_type="text/event-stream", headers=NO_STORE)


async def _sent(session: Session, after: int) -> AsyncIterator[bytes]:
    """Yield the events as server-sent events, until the caller may no longer read them."""
    from my_agent.diagnosis.record.following import follow
    from my_agent.tables import tables

    clock = asyncio.get_running_loop().time
    checked = beaten = clock()
    yield b": following\n\n"
    ending = asyncio.create_task(wait_end(UUID(session.id)))
    is_last, last = False, after
    async with AsyncExitStack() as stack:
        stack.callback(ending.cancel)
        pages = await stack.enter_async_context(
            aclosing(follow(tables, session.tenant, session.id, after))
        )
        async for page in pages:
            if page:
                last = page[-1].seq
                yield b"".join(
                    f"id: {each.seq}\nevent: {each.type}\ndata: {json.dumps(_shown(each))}\n\n".encode()
                    for each in page
                )
            elif is_last:
                yield resume_event(session.caller.request.scope["path"], str(last))
                return
            # The process stops, and the next empty page is the last one.
            is_last = ending.done()
            now = clock()
            if now - checked > RECHECK_SECONDS:
                checked = now
                if not await _may_read(session):
                    return
            if now - beaten > HEARTBEAT_SECONDS:
                beaten = now
                yield b": heartbeat\n\n"


async def _may_read(session: Session) -> bool:
    try:
        await session.caller.user.check()
        await operations.read_thread(session.caller.user, session.id)
    except HTTPException as error:
        return error.status_code not in (401, 403, 404)
    return True


def _seq(header: str) -> int | None:
    """Return the number in an ETag or an event's id, or None."""
    text = header.strip().removeprefix("W/").strip('"')
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
