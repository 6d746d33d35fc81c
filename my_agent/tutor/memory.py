"""Memory: what the nodes read and write of the caller's profile.

A profile that cannot be read or written is logged, and never costs the learner an answer.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.config import get_config
from sqlalchemy import Connection

from my_agent.tables import tables
from my_agent.tutor import learner, practice, prompts
from my_agent.tutor.corrections import Correction
from my_agent.tutor.practice import EXERCISE, PRACTICE
from my_agent.tutor.state import TIMESTAMP, now
from my_agent.understanding.replies import unanswered
from my_agent.user import NoTenantError, User, caller

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Mistakes that the answering model is told, and characters of each.
MISTAKES, LONGEST = 5, 60
# Answers after practice in which "stop" still means it.
RECENT = 3


async def about_learner() -> str:
    """Return what the answering model is told about the caller; empty if nothing is known."""

    def read(connection: Connection, user: User) -> str:
        known = learner.find(connection, user)
        often = [
            (each["type"], each["original"][:LONGEST], each["replacement"][:LONGEST])
            for each in learner.recurring(connection, user, MISTAKES)
            if each["count"] > 1
        ]
        return prompts.about_learner(known["level"], known["native_language"], often)

    return await _run(read) or ""


def open_exercise(messages: list[AnyMessage]) -> str | None:
    """Return the exercise that stays open beside a question: for one turn after it was asked."""
    asked = [each for each in messages if isinstance(each, AIMessage)]
    if not asked or not asked[-1].additional_kwargs.get(PRACTICE):
        return None
    return asked[-1].additional_kwargs.get(EXERCISE)


async def practise(messages: list[AnyMessage]) -> AIMessage | None:
    """Return the answer to a message that asks for an exercise or answers one, else None."""
    waiting = unanswered(messages)
    if len(waiting) != 1:
        return None
    text = str(waiting[0].text)
    last = messages[-2] if len(messages) > 1 else None
    open_id = last.additional_kwargs.get(EXERCISE) if isinstance(last, AIMessage) else None
    if open_id is None and practice.wish(text) is None:
        return None
    answers = [each for each in messages if isinstance(each, AIMessage)][-RECENT:]
    is_recent = any(each.additional_kwargs.get(PRACTICE) for each in answers)

    def work(connection: Connection, user: User) -> tuple[str, str | None] | None:
        return practice.turn(
            connection, user, text, open_id, datetime.now(UTC), is_recent=is_recent
        )

    found = await _run(work, write=True)
    if found is None:
        return None
    answer, exercise = found
    kwargs = {TIMESTAMP: now(), PRACTICE: True, **({EXERCISE: exercise} if exercise else {})}
    return AIMessage(answer, additional_kwargs=kwargs)


async def remember(texts: Sequence[str], corrections: Sequence[Correction]) -> None:
    """Store the mistakes of a turn, and the level and language that its messages state."""
    stated = {name: value for text in texts for name, value in practice.stated(text).items()}
    if not corrections and not stated:
        return

    def write(connection: Connection, user: User) -> None:
        learner.change(connection, user, stated)
        learner.remember(connection, user, corrections, datetime.now(UTC))

    await _run(write, write=True)


async def _run(work: Callable[[Connection, User], T], *, write: bool = False) -> T | None:
    """Run `work` for the caller. None: the caller has no tenant, or the database failed."""
    try:
        user = caller(get_config())
    except NoTenantError:
        return None
    try:
        return await tables.run(lambda each: work(each, user), user.tenant_id, write=write)
    except tables.errors:
        logger.exception("The learner's profile could not be %s", "written" if write else "read")
        return None
