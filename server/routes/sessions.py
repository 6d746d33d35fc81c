"""Sessions: what the routes of the diagnosis share."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from sqlalchemy import Connection
from starlette.responses import JSONResponse, Response

from server.operations import SESSION_TAKE
from server.routes.conversation import find_thread
from server.routes.endpoint import Caller, Json, Refusal

T = TypeVar("T")

GRAPH = "diagnosis"
NO_STORE = {"cache-control": "no-store"}
LARGEST_SEQ = 2**53


class Session(NamedTuple):
    """A session that the caller may read.

    Attributes:
        caller: The user of the request.
        id: The id of the session, which is that of its thread.
    """

    caller: Caller
    id: str

    @property
    def tenant(self) -> str:
        """The tenant of the session."""
        return self.caller.tenant

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Read the tables of the sessions."""
        return await self._run(work)

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Write the tables of the sessions."""
        return await self._run(work, write=True)

    async def _run(self, work: Callable[[Connection], T], *, write: bool = False) -> T:
        from my_agent.diagnosis.record.upcasting import UnknownEvent
        from my_agent.tables import tables

        try:
            return await tables.run(work, self.tenant, write=write)
        except UnknownEvent as error:
            # A newer release has written it. A state without it would be wrong.
            raise Refusal(
                409, {"error": "unknown_event", "detail": str(error)}, NO_STORE
            ) from error


async def find(caller: Caller) -> Session:
    """Return the session of a request, whose thread the caller may read.

    That of a copied thread begins here with the events of the thread that was copied.
    """
    from my_agent.diagnosis.record import log

    thread = await find_thread(caller, caller.name("thread_id"), GRAPH)
    session = Session(caller, thread["thread_id"])
    last = await session.read(lambda conn: log.last_seq(conn, session.tenant, session.id))
    # Before its first run, only the state of a copied thread says where it comes from.
    place = (thread.get("values") or {}).get("place") if last == 0 else None
    if isinstance(place, dict) and place.get("session_id") != session.id:
        await _take_over(session, place)
    return session


async def _take_over(session: Session, place: Json) -> None:
    from my_agent.diagnosis.record import branching
    from my_agent.tables import tables

    tenant = session.tenant
    async with session.caller.writing(SESSION_TAKE, thread_id=session.id):
        if (
            origin := await session.read(lambda conn: branching.known(conn, tenant, place))
        ) is not None:
            await branching.copy_texts(tables, tenant, *origin, session.id)
        await session.write(
            lambda conn: branching.resume(conn, session.tenant, session.id, place, None)
        )


def answer(content: Json, *, status: int = 200, seq: int | None = None) -> Response:
    """Return an answer. `seq` becomes the ETag, for a later `If-Match`."""
    tag = {} if seq is None else {"etag": f'"{seq}"'}
    return JSONResponse(content, status, {**NO_STORE, **tag})
