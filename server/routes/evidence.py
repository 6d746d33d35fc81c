"""Evidence: upload a file as a source of a diagnosis, and read the text of a source in parts.

`PUT /diagnosis/{thread_id}/sources/{name}` takes the bytes of a text file, and
`GET /diagnosis/{thread_id}/sources/{source_id}` answers with a part of a source.
"""

import asyncio
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from my_agent.turns import TenantThreads, TooManyWaiting
from server.operations import SOURCE_ADD
from server.routes.endpoint import Caller, Refusal, endpoint
from server.routes.sessions import LARGEST_SEQ, NO_STORE, answer, find
from threadhold.host import LargeBody
from threadhold.tables import TablesError

_PART, _LARGEST_PART = 20_000, 200_000
# Bytes that are written to the disk together, so that not every packet needs a thread.
_TOGETHER = 1 << 20
_WAITING = 20
# One file is decoded at a time, tenants in turn, and requests go first.
_turns = TenantThreads("evidence", niceness=10, most=_WAITING)


class Part(BaseModel):
    """A part of a text, in characters."""

    model_config = ConfigDict(extra="ignore")

    start: Annotated[int, Field(ge=0, le=LARGEST_SEQ)] = 0
    end: Annotated[
        int | None,
        Field(ge=0, le=LARGEST_SEQ, description=f"At most {_LARGEST_PART} after `start`"),
    ] = None


def largest() -> LargeBody:
    """Return the maximum size of an uploaded file."""
    # Imported here because the import loads the graph, which other projects do not have.
    from my_agent.diagnosis.settings import DiagnosisSettings

    limit = DiagnosisSettings.from_environment().source_max_bytes
    advice = "Send the part around the incident, or several files"
    return LargeBody(
        limit, f"The file is larger than {limit:,} bytes (DIAGNOSIS_SOURCE_MAX_BYTES). {advice}"
    )


@endpoint("PUT /diagnosis/{thread_id}/sources/{name}", large=largest)
async def upload(caller: Caller) -> Response:
    """Add a text file as a source. The same text under the same name is added once."""
    from my_agent.diagnosis import uploads
    from my_agent.diagnosis.record import following
    from my_agent.diagnosis.settings import DiagnosisSettings

    session = await find(caller)
    settings = DiagnosisSettings.from_environment()
    with uploads.Upload(caller.name("name")) as file:
        await _receive(caller, file)
        try:
            made = await _turns.run(session.tenant, file.measure)
            # Of a thread that was deleted meanwhile, a text would stay behind.
            await find(caller)
            async with caller.writing(SOURCE_ADD, thread_id=session.id, source=made.source):
                done = await session.write(
                    lambda conn: file.store(conn, session.tenant, session.id, settings)
                )
        except uploads.Unsuitable as error:
            raise HTTPException(422, str(error), NO_STORE) from error
        except uploads.SessionFull as error:
            raise _refused(409, "session_full", error) from error
        except TablesError as error:
            busy = "The database is too busy to store the file: send it again, or a smaller one"
            raise HTTPException(503, busy, {**NO_STORE, "Retry-After": "5"}) from error
        except TooManyWaiting as error:
            raise HTTPException(429, str(error), {**NO_STORE, "Retry-After": "5"}) from error
    following.wake(session.tenant, session.id)
    source = {"id": done.source, **done.about}
    body = {"session_id": session.id, "seq": done.seq, "source": source}
    return answer(body, status=201 if done.is_new else 200, seq=done.seq)


@endpoint("GET /diagnosis/{thread_id}/sources/{source_id}")
async def part(caller: Caller, query: Part) -> Response:
    """Answer with the characters of a source from `start` to `end`, and how many it has."""
    from my_agent.diagnosis.record import log, texts

    session = await find(caller)
    name = caller.name("source_id")
    end = query.start + _PART if query.end is None else query.end
    if not query.start <= end <= query.start + _LARGEST_PART:
        raise HTTPException(
            422, f"`end` is at least `start`, and at most {_LARGEST_PART} more", NO_STORE
        )

    def read(conn: Any) -> tuple[dict[str, Any] | None, str]:
        known = log.moment(conn, session.tenant, session.id).state["sources"].get(name)
        if known is None:
            return None, ""
        return known, texts.read(conn, session.tenant, session.id, name, query.start, end)

    known, text = await session.read(read)
    if known is None:
        raise HTTPException(404, "The session has no such source", NO_STORE)
    following = query.start + len(text)
    return answer(
        {
            "session_id": session.id,
            "source": {"id": name, **known},
            "start": query.start,
            "end": following,
            "text": text,
            "next": following if text and following < known["chars"] else None,
        }
    )


ROUTES = [upload, part]


async def _receive(caller: Caller, file: Any) -> None:
    """Write the body of a request to a file as it arrives."""
    waiting, size = [], 0
    async for content in caller.request.stream():
        waiting.append(content)
        size += len(content)
        if size >= _TOGETHER:
            await asyncio.to_thread(file.add, b"".join(waiting))
            waiting, size = [], 0
    await asyncio.to_thread(file.add, b"".join(waiting))


def _refused(status: int, name: str, error: Exception) -> Refusal:
    return Refusal(status, {"error": name, "detail": str(error)}, NO_STORE)
