"""Branches: go on from an earlier moment of a diagnosis in a new thread, and compare two moments.

`POST /diagnosis/{thread_id}/branch` makes the thread, and `GET /diagnosis/{thread_id}/diff` says what
became of the session between two events.
"""

from typing import Annotated, Any
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection
from starlette.exceptions import HTTPException
from starlette.responses import Response

from server.operations import SESSION_BRANCH
from server.routes.endpoint import Caller, Json, endpoint
from server.routes.sessions import GRAPH, LARGEST_SEQ, NO_STORE, Session, answer, find
from threadhold import operations

# The newest messages that a branch shows.
MESSAGES = 200
# The node that ends a run with an answer.
_NODE = "answer"
_TITLE = 200
_TYPES = {"user": "human", "assistant": "ai"}


class Moment(BaseModel):
    """The moment from which a branch goes on."""

    model_config = ConfigDict(extra="forbid", strict=True)

    at_seq: Annotated[
        int, Field(ge=1, le=LARGEST_SEQ, description="The number of the last event that it has")
    ]


class Moments(BaseModel):
    """Two moments, by default the beginning and now."""

    model_config = ConfigDict(extra="ignore")

    from_seq: Annotated[int, Field(ge=0, le=LARGEST_SEQ)] = 0
    to_seq: Annotated[int, Field(ge=0, le=LARGEST_SEQ)] | None = None


@endpoint("POST /diagnosis/{thread_id}/branch")
async def branch(caller: Caller, body: Moment) -> Response:
    """Make a thread with the session and the conversation until an event; the origin stays."""
    from my_agent.diagnosis.record import branching, log

    session = await find(caller)
    last = await session.read(lambda conn: log.last_seq(conn, session.tenant, session.id))
    if body.at_seq > last:
        raise HTTPException(422, f"at_seq: the session has {last} events", NO_STORE)
    origin = (await operations.read_thread(caller.user, session.id))["metadata"]
    made = await operations.create_thread(
        caller.user, thread_id=str(uuid4()), metadata=_metadata(session, origin, body.at_seq)
    )
    into = Session(caller, made["thread_id"])
    try:
        done = await _copy(session, into, body.at_seq)
        messages = await _messages(session, body.at_seq)
        if messages and not await _has_begun(into):
            shown = {"messages": messages}
            await operations.update_state(caller.user, into.id, shown, as_node=_NODE)
    except branching.NoSuchMoment as error:
        await operations.delete_thread(caller.user, into.id)
        raise HTTPException(409, f"{error}. Read the session again", NO_STORE) from error
    return answer({"thread_id": into.id, "seq": done}, status=201, seq=done)


@endpoint("GET /diagnosis/{thread_id}/diff")
async def compare(caller: Caller, query: Moments) -> Response:
    """Answer with what became of a session from one event to another: added, removed, changed."""
    from my_agent.diagnosis.record import log
    from my_agent.diagnosis.record.diff import diff

    session = await find(caller)

    def read(conn: Connection) -> tuple[Any, Any]:
        tenant, name = session.tenant, session.id
        return (
            log.moment(conn, tenant, name, at_seq=query.from_seq),
            log.moment(conn, tenant, name, at_seq=query.to_seq),
        )

    before, after = await session.read(read)
    found = diff(before.state, after.state)
    return answer(
        {"session_id": session.id, "from_seq": before.seq, "to_seq": after.seq, "diff": found}
    )


ROUTES = [branch, compare]


def _metadata(session: Session, origin: Json, seq: int) -> Json:
    """Return the metadata of a branch, which is a thread of the graph before its first run."""
    title = origin.get("title")
    shown = f"{title} (from event {seq})" if isinstance(title, str) and title else None
    return {
        "graph_id": GRAPH,
        "branched_from": {"thread_id": session.id, "seq": seq},
        **({} if shown is None else {"title": shown[:_TITLE]}),
        # Under the thread policy, a thread of the same context would lock the origin.
        "rule_name": f"Branch of {session.id}",
        "payload": {"branch": str(uuid4())},
    }


async def _copy(session: Session, into: Session, seq: int) -> int:
    """Copy the events of a session; return the last event of the copy."""
    from my_agent.diagnosis.record import branching, log
    from my_agent.tables import tables

    def work(conn: Connection) -> int:
        # A repeated request may find what the first one has done.
        done = log.last_seq(conn, into.tenant, into.id)
        return done or branching.branch(conn, session.tenant, session.id, seq, into.id).seq

    caller = session.caller
    async with caller.writing(SESSION_BRANCH, thread_id=session.id, at_seq=seq, into=into.id):
        await branching.copy_texts(tables, session.tenant, session.id, seq, into.id)
        return await into.write(work)


async def _has_begun(session: Session) -> bool:
    """Return whether a thread has a state already."""
    return bool((await operations.read_state(session.caller.user, session.id))["values"])


async def _messages(session: Session, seq: int) -> list[Json]:
    """Return the conversation until an event: each message as the thread has it, if it has it."""
    from my_agent.diagnosis.record import branching

    said = await session.read(
        lambda conn: branching.conversation(conn, session.tenant, session.id, seq, MESSAGES)
    )
    state = await operations.read_state(session.caller.user, session.id)
    known = {each.get("id"): each for each in (state["values"] or {}).get("messages", [])}
    return [
        known.get(each.id) or {"type": _TYPES[each.role], "content": each.text, "id": each.id}
        for each in said
    ]
