"""Exercises: a learner corrects an own sentence again, at growing intervals.

`fsrs` schedules them: a right answer makes the interval longer, a wrong one short.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import SequenceMatcher
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import Connection

from my_agent.tutor import learner
from my_agent.tutor.learner import Mistake
from my_agent.user import User

if TYPE_CHECKING:
    from fsrs import Scheduler

Verdict = Literal["right", "almost", "wrong"]

# After a wrong answer the exercise comes again.
AGAIN = timedelta(minutes=10)
# Below this likeness, from 0 to 1, a message is no answer to the exercise.
ALIKE = 0.6
_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")
# Types whose mistakes are in signs and capital letters.
_EXACT = frozenset({"capitalization", "punctuation"})


@dataclass(frozen=True)
class Graded:
    """The result of an answer.

    Attributes:
        verdict: `right`; `almost` if the mistake is corrected, but the rest of the sentence is not
            as it was; `wrong`.
        recorded: whether the answer counts. One to an exercise that is not due does not.
        due: when the exercise comes again.
    """

    verdict: Verdict
    recorded: bool
    due: datetime
    mistake: Mistake


def grade(mistake: Mistake, answer: str) -> Verdict:
    """Compare an answer with the right sentence."""
    exact = mistake["type"] in _EXACT
    given, right, wrong = (
        _normal(text, exact) for text in (answer, mistake["right"], mistake["wrong"])
    )
    if given == right:
        return "right"
    if given == wrong:
        return "wrong"
    difference = _difference(right, wrong)
    if _contains(right, given) and _contains(given, difference) and not _contains(wrong, given):
        # Only the corrected words.
        return "right"
    # The words around the mistake, with it and without it.
    fixed, left = _surroundings(right, wrong), _surroundings(wrong, right)
    if _contains(given, fixed) and not _contains(given, left):
        return "almost"
    return "wrong"


def is_answer(mistake: Mistake, text: str) -> bool:
    """Return whether a message of a conversation answers an exercise, right or wrong."""
    given, right = _normal(text, False), _normal(mistake["right"], False)
    if len(given) > 2 * len(right) + 3:
        return False
    difference = _difference(right, _normal(mistake["wrong"], False))
    if _contains(right, given) and _contains(given, difference):
        return True
    likeness = SequenceMatcher(None, given, right, autojunk=False).ratio()
    return likeness >= ALIKE


def answer(
    connection: Connection, user: User, mistake_id: str, text: str | None, now: datetime
) -> Graded | None:
    """Grade an answer and schedule the exercise. None: there is no such exercise.

    Args:
        connection: a write transaction.
        user: the learner.
        mistake_id: id of the exercise.
        text: the answer; None if the learner gives up.
        now: the time of the answer.
    """
    found = learner.mistake(connection, user, mistake_id, lock=True)
    if found is None:
        return None
    verdict = "wrong" if text is None else grade(found, text)
    if found["due"] > now:
        # A second click, or an answer before its time, must not make the interval longer.
        return Graded(verdict, False, found["due"], found)
    card, due = _scheduled(found["card"], verdict, now)
    learner.reviewed(connection, user, mistake_id, card, due)
    return Graded(verdict, True, due, found)


def _scheduled(
    card: dict[str, Any] | None, verdict: Verdict, now: datetime
) -> tuple[Any, datetime]:
    from fsrs import Card, Rating

    ratings = {"right": Rating.Good, "almost": Rating.Hard, "wrong": Rating.Again}
    # The card's id is the row's; the library makes one from the clock, and waits for it.
    known = Card(card_id=0, due=now) if card is None else Card.from_dict(card)  # type: ignore[arg-type]
    reviewed, _ = _scheduler().review_card(known, ratings[verdict], now.astimezone(UTC))
    return reviewed.to_dict(), reviewed.due


@cache
def _scheduler() -> "Scheduler":
    from fsrs import Scheduler

    return Scheduler(learning_steps=(AGAIN,), relearning_steps=(AGAIN,), enable_fuzzing=False)


def _normal(text: str, exact: bool) -> list[str]:
    text = text.replace("\u2019", "'").strip().strip('"“”')
    return text.split() if exact else _WORD.findall(text.lower())


def _difference(one: list[str], other: list[str]) -> list[str]:
    """Return the words of `one` between its common beginning and end with `other`."""
    first, last = _common(one, other)
    return one[first : len(one) - last]


def _surroundings(one: list[str], other: list[str]) -> list[str]:
    """Return the differing words of `one` with a neighbour on both sides."""
    first, last = _common(one, other)
    return one[max(0, first - 1) : len(one) - max(0, last - 1)]


def _common(one: list[str], other: list[str]) -> tuple[int, int]:
    most = min(len(one), len(other))
    first = 0
    while first < most and one[first] == other[first]:
        first += 1
    last = 0
    while last < most - first and one[-1 - last] == other[-1 - last]:
        last += 1
    return first, last


def _contains(words: list[str], part: list[str]) -> bool:
    size = len(part)
    return bool(part) and any(words[i : i + size] == part for i in range(len(words) - size + 1))
