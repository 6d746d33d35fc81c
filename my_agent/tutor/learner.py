"""The learner: level, native language and mistakes of a user, across threads."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from sqlalchemy import Connection, Insert, case, delete, func, select
from typing_extensions import TypedDict

from my_agent.tables import insert
from my_agent.tutor.corrections import Correction, Issue, apply
from my_agent.tutor.tables import learners, mistakes
from my_agent.user import User

Level = Literal["A1", "A2", "B1", "B2", "C1", "C2"]
LEVELS: tuple[str, ...] = get_args(Level)
# Mistakes that are kept of a user; the ones made longest ago go first.
MOST_MISTAKES = 500
# A sentence that is longer makes no exercise.
LONGEST_SENTENCE = 300
_STOPS = ".!?\n"


class Learner(TypedDict):
    """What is known about a user apart from mistakes."""

    level: str | None
    native_language: str | None


class Mistake(TypedDict):
    """One mistake that a user made at least once."""

    id: str
    type: str
    original: str
    replacement: str
    message: str
    wrong: str
    right: str
    count: int
    last_at: datetime
    due: datetime
    reviews: int
    card: dict[str, Any] | None


def find(connection: Connection, user: User) -> Learner:
    """Return what is known about a user; unknown values are None."""
    row = connection.execute(
        select(learners.c.level, learners.c.native_language).where(*_of(learners, user))
    ).first()
    return Learner(
        level=row.level if row else None, native_language=row.native_language if row else None
    )


def change(connection: Connection, user: User, values: dict[str, str | None]) -> None:
    """Set some of `level` and `native_language`. None forgets a value."""
    if not values:
        return
    row = {**_key(user), **values, "updated_at": datetime.now(UTC)}
    statement = insert(connection, learners).values(row)
    connection.execute(
        _on_conflict(
            statement, ["tenant_id", "user_id"], {**values, "updated_at": row["updated_at"]}
        )
    )


def forget(connection: Connection, user: User) -> int:
    """Erase everything about a user. Return how many mistakes there were."""
    connection.execute(delete(learners).where(*_of(learners, user)))
    return connection.execute(delete(mistakes).where(*_of(mistakes, user))).rowcount


def forget_mistake(connection: Connection, user: User, mistake_id: str) -> bool:
    """Erase one mistake. Return whether it existed."""
    where = (*_of(mistakes, user), mistakes.c.mistake_id == mistake_id)
    return connection.execute(delete(mistakes).where(*where)).rowcount > 0


def recurring(connection: Connection, user: User, limit: int) -> list[Mistake]:
    """Return the mistakes of a user, the most frequent first."""
    order = (mistakes.c.count.desc(), mistakes.c.last_at.desc(), mistakes.c.mistake_id)
    found = select(mistakes).where(*_of(mistakes, user)).order_by(*order).limit(limit)
    return [_mistake(row) for row in connection.execute(found).mappings()]


def due(connection: Connection, user: User, now: datetime, limit: int) -> list[Mistake]:
    """Return the mistakes that are to be practised, the one that is due longest first."""
    found = (
        select(mistakes)
        .where(*_of(mistakes, user), mistakes.c.due <= now)
        .order_by(mistakes.c.due, mistakes.c.mistake_id)
        .limit(limit)
    )
    return [_mistake(row) for row in connection.execute(found).mappings()]


def count_due(connection: Connection, user: User, now: datetime) -> int:
    """Return how many mistakes are to be practised."""
    where = (*_of(mistakes, user), mistakes.c.due <= now)
    return int(connection.execute(select(func.count()).where(*where)).scalar_one())


def mistake(
    connection: Connection, user: User, mistake_id: str, *, lock: bool = False
) -> Mistake | None:
    """Return one mistake, or None. With `lock` no other transaction changes it meanwhile."""
    found = select(mistakes).where(*_of(mistakes, user), mistakes.c.mistake_id == mistake_id)
    row = connection.execute(found.with_for_update() if lock else found).mappings().first()
    return None if row is None else _mistake(row)


def remember(
    connection: Connection, user: User, corrections: Sequence[Correction], now: datetime
) -> None:
    """Add the mistakes of new corrections, or count them once more. They are due at once."""
    rows = {
        row["mistake_id"]: row
        for each in corrections
        for issue in each["issues"]
        if (row := _row(user, each, issue, now)) is not None
    }
    for row in rows.values():
        statement = insert(connection, mistakes).values(row)
        is_same = mistakes.c.last_message_id == row["last_message_id"]
        again = {name: row[name] for name in ("message", "wrong", "right", "last_message_id")}
        connection.execute(
            _on_conflict(
                statement,
                ["tenant_id", "user_id", "mistake_id"],
                {
                    **again,
                    "count": case((is_same, mistakes.c.count), else_=mistakes.c.count + 1),
                    "last_at": now,
                    "due": case((is_same, mistakes.c.due), else_=now),
                },
            )
        )
    if rows:
        _drop_oldest(connection, user)


def reviewed(
    connection: Connection, user: User, mistake_id: str, card: dict[str, Any], due_at: datetime
) -> None:
    """Store the scheduler's state after a review."""
    connection.execute(
        mistakes.update()
        .where(*_of(mistakes, user), mistakes.c.mistake_id == mistake_id)
        .values(card=card, due=due_at, reviews=mistakes.c.reviews + 1)
    )


def _drop_oldest(connection: Connection, user: User) -> None:
    kept = (
        select(mistakes.c.mistake_id)
        .where(*_of(mistakes, user))
        .order_by(mistakes.c.last_at.desc(), mistakes.c.mistake_id)
        .offset(MOST_MISTAKES)
        .limit(MOST_MISTAKES)
    )
    old = [row.mistake_id for row in connection.execute(kept)]
    if old:
        connection.execute(
            delete(mistakes).where(*_of(mistakes, user), mistakes.c.mistake_id.in_(old))
        )


def _row(user: User, found: Correction, issue: Issue, now: datetime) -> dict[str, Any] | None:
    sentences = sentence_pair(found, issue)
    if sentences is None:
        return None
    wrong, right = sentences
    if issue["type"] == "capitalization" and wrong.startswith(issue["original"]):
        # In a chat a small first letter is no mistake that needs practice.
        return None
    return {
        **_key(user),
        "mistake_id": mistake_id(issue),
        **{name: issue[name] for name in ("type", "original", "replacement", "message")},
        "wrong": wrong,
        "right": right,
        "count": 1,
        "last_message_id": found["message_id"],
        "first_at": now,
        "last_at": now,
        "card": None,
        "due": now,
        "reviews": 0,
    }


def mistake_id(issue: Issue) -> str:
    """Return the id of a mistake: the same words with the same correction are one mistake."""
    parts = (issue["type"], issue["original"].lower(), issue["replacement"].lower())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def sentence_pair(found: Correction, issue: Issue) -> tuple[str, str] | None:
    """Return the sentence of an issue with this mistake only, and without it.

    None: the sentence is too long for an exercise.
    """
    text = found["original"]
    start = max(text.rfind(stop, 0, issue["start"]) for stop in _STOPS) + 1
    ends = [place for stop in _STOPS if (place := text.find(stop, issue["end"])) >= 0]
    end = min(ends, default=len(text) - 1) + 1
    if end - start > LONGEST_SENTENCE:
        return None
    inside = [
        {**each, "start": each["start"] - start, "end": each["end"] - start}
        for each in found["issues"]
        if start <= each["start"] and each["end"] <= end
    ]
    others = [each for each in inside if each["start"] != issue["start"] - start]
    wrong, right = apply(text[start:end], others), apply(text[start:end], inside)  # type: ignore[arg-type]
    return (wrong.strip(), right.strip()) if wrong != right else None


def _mistake(row: Any) -> Mistake:
    return Mistake(
        id=row["mistake_id"],
        type=row["type"],
        original=row["original"],
        replacement=row["replacement"],
        message=row["message"],
        wrong=row["wrong"],
        right=row["right"],
        count=row["count"],
        last_at=row["last_at"],
        due=row["due"],
        reviews=row["reviews"],
        card=row["card"],
    )


def _key(user: User) -> dict[str, str]:
    return {"tenant_id": user.tenant_id, "user_id": user.user_id}


def _of(table: Any, user: User) -> tuple[Any, ...]:
    return (table.c.tenant_id == user.tenant_id, table.c.user_id == user.user_id)


def _on_conflict(statement: Any, key: list[str], values: dict[str, Any]) -> Insert:
    found: Insert = statement.on_conflict_do_update(index_elements=key, set_=values)
    return found
