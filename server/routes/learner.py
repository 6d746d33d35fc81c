"""The learner's profile and exercises: see, edit, erase and practise.

`GET`, `PATCH` and `DELETE /tutor/profile` concern the caller alone. `GET /tutor/exercises` lists
the mistakes that are due, and `POST /tutor/exercises/{mistake_id}` answers one.
"""

from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection
from starlette.exceptions import HTTPException

from my_agent.user import User
from server.operations import EXERCISE_ANSWER, MISTAKE_DELETE, PROFILE_DELETE, PROFILE_UPDATE
from server.routes.endpoint import Caller, Json, endpoint
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


@endpoint("GET /tutor/profile")
async def show(caller: Caller) -> Json:
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

    return await _run(caller, read)


@endpoint("PATCH /tutor/profile")
async def change(caller: Caller, body: Change) -> Json:
    """Set or forget the level and the native language."""
    from my_agent.tutor import learner

    def write(connection: Connection, user: User) -> Json:
        values = body.model_dump(exclude_unset=True)
        learner.change(connection, user, values)
        return dict(learner.find(connection, user))

    return await _run(caller, write, PROFILE_UPDATE)


@endpoint("DELETE /tutor/profile")
async def erase(caller: Caller) -> Json:
    """Erase everything that is stored about the caller. The threads stay."""
    from my_agent.tutor import learner

    def write(connection: Connection, user: User) -> Json:
        return {"erased_mistakes": learner.forget(connection, user)}

    return await _run(caller, write, PROFILE_DELETE)


@endpoint("DELETE /tutor/profile/mistakes/{mistake_id}")
async def erase_mistake(caller: Caller) -> Json:
    """Erase one mistake, and its exercise."""
    from my_agent.tutor import learner

    name = caller.name("mistake_id")

    def write(connection: Connection, user: User) -> Json | None:
        return {"erased_mistakes": 1} if learner.forget_mistake(connection, user, name) else None

    return await _run(caller, write, MISTAKE_DELETE)


@endpoint("GET /tutor/exercises")
async def exercises(caller: Caller) -> Json:
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

    return await _run(caller, read)


@endpoint("POST /tutor/exercises/{mistake_id}", acts_again=True)
async def practise(caller: Caller, body: Given) -> Json:
    """Grade an answer to an exercise, and say when the exercise comes again."""
    from my_agent.tutor import exercises as practice

    name = caller.name("mistake_id")

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

    return await _run(caller, write, EXERCISE_ANSWER)


ROUTES = [show, change, erase, erase_mistake, exercises, practise]


async def _run(
    caller: Caller,
    work: Callable[[Connection, User], Json | None],
    operation: Operation | None = None,
) -> Json:
    """Return the result of `work` for the caller.

    Args:
        caller: The user of the request.
        work: Reads or writes the caller's rows.
        operation: What it writes; None if it reads.

    Raises:
        HTTPException: (404) `work` has found nothing.
    """
    # Imported here so that the server starts without loading the tutor.
    from my_agent.tables import tables

    user, names = caller.person, caller.request.path_params
    async with nullcontext() if operation is None else caller.writing(operation, **names):
        found = await tables.run(
            lambda each: work(each, user), user.tenant_id, write=operation is not None
        )
    if found is None:
        raise HTTPException(404, "You have no such mistake")
    return found


def _mistake(each: Any) -> Json:
    return {
        **{name: each[name] for name in ("id", "type", "original", "replacement", "message")},
        **{name: each[name] for name in ("wrong", "right", "count", "reviews")},
        "last_at": each["last_at"].isoformat(),
        "due": each["due"].isoformat(),
    }
