"""The learner's profile and exercises: see, edit, erase and practise.

`GET`, `PATCH` and `DELETE /tutor/profile` concern the caller alone. `GET /tutor/exercises` lists
the mistakes that are due, and `POST /tutor/exercises/{mistake_id}` answers one.
"""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from my_agent.user import LOCAL, User
from server.operations import EXERCISE_ANSWER, MISTAKE_DELETE, PROFILE_DELETE, PROFILE_UPDATE
from server.project import has_our_identity
from server.routes.conversation import Json
from server.routes.forwarding import Answer, Request, read_body
from threadhold import LangGraphPlatform
from threadhold.gate import Operation

# Mistakes of a profile, and exercises of an answer.
MOST_MISTAKES, MOST_EXERCISES = 500, 20


class Change(BaseModel):
    """A change of the profile. A field that is null is forgotten, one that is absent stays."""

    model_config = ConfigDict(extra="forbid", strict=True)

    level: Literal["A1", "A2", "B1", "B2", "C1", "C2"] | None = None
    native_language: str | None = Field(
        None, pattern=r"^[^\W\d_][^\W\d_ -]*(?:[ -][^\W\d_]+)*$", max_length=40
    )


class Given(BaseModel):
    """An answer to an exercise. Null: the learner gives up."""

    model_config = ConfigDict(extra="forbid", strict=True)

    answer: str | None = Field(max_length=1000)


async def show(request: Request) -> None:
    """Answer with everything that is stored about the caller."""
    from my_agent.tutor import learner

    def read(connection: Connection, user: User) -> Json:
        now = datetime.now(UTC)
        return {
            **learner.find(connection, user),
            "due": learner.count_due(connection, user, now),
            "mistakes": [
                _mistake(each) for each in learner.recurring(connection, user, MOST_MISTAKES)
            ],
        }

    await _answer(request, read)


async def change(request: Request) -> None:
    """Set or forget the level and the native language."""
    from my_agent.tutor import learner

    body = await read_body(request, Change)
    if body is None:
        return

    def write(connection: Connection, user: User) -> Json:
        values = body.model_dump(exclude_unset=True)
        learner.change(connection, user, values)
        return dict(learner.find(connection, user))

    await _answer(request, write, PROFILE_UPDATE)


async def erase(request: Request) -> None:
    """Erase everything that is stored about the caller. The threads stay."""
    from my_agent.tutor import learner

    def write(connection: Connection, user: User) -> Json:
        return {"erased_mistakes": learner.forget(connection, user)}

    await _answer(request, write, PROFILE_DELETE)


async def erase_mistake(request: Request) -> None:
    """Erase one mistake, and its exercise."""
    from my_agent.tutor import learner

    name = request.names["mistake_id"]

    def write(connection: Connection, user: User) -> Json | None:
        return {"erased_mistakes": 1} if learner.forget_mistake(connection, user, name) else None

    await _answer(request, write, MISTAKE_DELETE)


async def exercises(request: Request) -> None:
    """Answer with the exercises that are due, the one that is due longest first."""
    from my_agent.tutor import learner

    def read(connection: Connection, user: User) -> Json:
        now = datetime.now(UTC)
        due = learner.due(connection, user, now, MOST_EXERCISES)
        return {
            "due": learner.count_due(connection, user, now),
            "exercises": [
                {"id": each["id"], "type": each["type"], "sentence": each["wrong"]} for each in due
            ],
        }

    await _answer(request, read)


async def practise(request: Request) -> None:
    """Grade an answer to an exercise, and say when the exercise comes again."""
    from my_agent.tutor import exercises as practice

    body = await read_body(request, Given)
    if body is None:
        return
    name = request.names["mistake_id"]

    def write(connection: Connection, user: User) -> Json | None:
        graded = practice.answer(connection, user, name, body.answer, datetime.now(UTC))
        if graded is None:
            return None
        return {
            "id": name,
            "verdict": graded.verdict,
            "recorded": graded.recorded,
            "right": graded.mistake["right"],
            "message": graded.mistake["message"],
            "due": graded.due.isoformat(),
        }

    await _answer(request, write, EXERCISE_ANSWER)


ROUTES: dict[str, Callable[[Request], Awaitable[None]]] = {
    "GET /tutor/profile": show,
    "PATCH /tutor/profile": change,
    "DELETE /tutor/profile": erase,
    "DELETE /tutor/profile/mistakes/{mistake_id}": erase_mistake,
    "GET /tutor/exercises": exercises,
    "POST /tutor/exercises/{mistake_id}": practise,
}


async def _answer(
    request: Request,
    work: Callable[[Connection, User], Json | None],
    operation: Operation | None = None,
) -> None:
    """Answer with the result of `work` for the caller; 404 for None.

    Args:
        request: The request.
        work: Reads or writes the caller's rows.
        operation: What it writes; None if it reads.
    """
    # Imported here so that the server starts without loading the tutor.
    import asyncio

    from my_agent.database import database

    # A request to the platform checks the caller's rights. A refusal is passed on unchanged.
    probe = await request.call("POST", "/threads/count", {})
    if probe.status != 200:
        await request.relay(probe)
        return
    user = await _caller(request)
    if user is None:
        await request.pass_on()
        return
    opened = await asyncio.to_thread(database)
    async with nullcontext() if operation is None else request.writing(operation, **request.names):
        found = await opened.run(
            lambda each: work(each, user), user.tenant_id, write=operation is not None
        )
    await _respond(request, found, probe)


async def _respond(request: Request, found: Json | None, like: Answer) -> None:
    if found is None:
        await request.answer({"detail": "You have no such mistake"}, like, status=404)
    else:
        await request.answer(found, like)


async def _caller(request: Request) -> User | None:
    """Return the caller of a request that the platform has accepted.

    None: the caller has no tenant, or the project has its own authentication, whose tenants are
    unknown.
    """
    platform = request.platform
    auth: Any = (
        platform.config.sections["auth"] if isinstance(platform, LangGraphPlatform) else None
    )
    if auth is None:
        return None
    if has_our_identity(auth):
        # Imported here: other projects do not need the package cryptography.
        from hooks.identity import authenticator

        known = await authenticator().identify(request.scope)
        tenant = known["tenant_id"]
        return User(str(tenant), str(known["identity"])) if tenant else None
    return None if auth else LOCAL


def _mistake(each: Any) -> Json:
    return {
        **{name: each[name] for name in ("id", "type", "original", "replacement", "message")},
        **{name: each[name] for name in ("wrong", "right", "count", "reviews")},
        "last_at": each["last_at"].isoformat(),
        "due": each["due"].isoformat(),
    }
