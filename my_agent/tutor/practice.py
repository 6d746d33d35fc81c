"""Practice: exercises in the conversation, and what a learner says about level and language."""

import re
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection

from my_agent.tutor import exercises, learner
from my_agent.tutor.exercises import Graded
from my_agent.tutor.learner import Mistake
from my_agent.user import User

EXERCISE = "exercise"
"""Key in an answer's `additional_kwargs`: the id of the exercise that the answer asks."""

PRACTICE = "practice"
"""Key in an answer's `additional_kwargs`: the answer was part of practice."""

STOPPED = "We stop here. Say “practise” to go on later."
NO_EXERCISE = "No exercise is open. Say “practise” for one."

Wish = Literal["practise", "stop", "solution", "skip"]
_POLITE = (
    r"(?:(?:please|ok|okay|yes|no|now|so|thanks|thank you|por favor|obrigad[oa]|can we|let's|let us|"
    r"i want to|i'd like to|i would like to|can i|could we|can you|could you|quero|vamos|posso|"
    r"podemos),? )*"
)
_AFTER = r"(?:,? (?:please|now|again|thanks|thank you|for today|por favor|agora|hoje))*"
_EXERCISE = r"(?:exercises?|practi[sc]e|practi[sc]ing|exerc[ií]cios?)"
# The first that fits: "no more exercises" is no wish for more of them.
_WISHES: tuple[tuple[Wish, re.Pattern[str]], ...] = (
    (
        "stop",
        re.compile(
            rf"{_POLITE}(?:(?:stop|enough|that's enough|no more|cancel|quit|finish|end|parar?|chega|pare),? ?)+"
            rf"(?: (?:it|this|here|with))*(?: (?:the |a |o |os |these |my )?{_EXERCISE})?{_AFTER}"
        ),
    ),
    (
        "practise",
        re.compile(
            rf"{_POLITE}(?:practi[sc]e|quiz me|test me|praticar|treinar|"
            r"(?:give me|have|i want|i need|want)(?: (?:an?|another|some|more|the next) exercises?| exercises)|"
            r"(?:do |start )?(?:an?|another|some|more|the|my)? ?exercises?|"
            r"(?:um |outro |mais |fazer |me d[aáê] um )*exerc[ií]cios?|"
            rf"review my mistakes|practi[sc]e my mistakes){_AFTER}"
        ),
    ),
    (
        "solution",
        re.compile(
            r"(?:(?:sorry|hmm|um|no),? )*"
            r"(?:i (?:don't|do not|dont) know(?: it| this| that)?|no idea|i give up|"
            r"(?:tell|show) me(?: the (?:answer|solution))?|"
            r"what(?:'s| is) the (?:right |correct )?(?:answer|solution)|\?+|n[ãa]o sei|desisto|"
            r"qual (?:é|e) a resposta)"
        ),
    ),
    (
        "skip",
        re.compile(
            rf"{_POLITE}(?:skip|next|another one|pular?|pr[oó]xim[oa])"
            rf"(?: (?:it|this|this one|one|exercise|esse|este))?{_AFTER}"
        ),
    ),
)
_LEVEL = re.compile(
    r"\bmy (?:english )?level (?:in english )?is (?P<level>[abc][12])\b"
    r"|\bi(?:'m| am) (?:at|on) (?:the )?level (?P<at>[abc][12])\b",
    re.IGNORECASE,
)
_LANGUAGE = re.compile(
    r"\bmy (?:native|first|mother) (?:language|tongue) is (?P<language>[^\W\d_]{3,20})\b"
    r"|\bi(?:'m| am) a native (?:speaker of )?(?P<of>[^\W\d_]{3,20})\b(?<!speaker)",
    re.IGNORECASE,
)


def stated(text: str) -> dict[str, str | None]:
    """Return the level and native language that a message states."""
    values: dict[str, str | None] = {}
    if (found := _LEVEL.search(text)) is not None:
        values["level"] = (found["level"] or found["at"]).upper()
    if (found := _LANGUAGE.search(text)) is not None:
        values["native_language"] = (found["language"] or found["of"]).capitalize()
    return values


# A longer message is no command.
_LONGEST_WISH = 200


def wish(text: str) -> Wish | None:
    """Return what a message asks for; None: it is part of the conversation."""
    plain = " ".join(text.lower().replace("\u2019", "'").split()).strip(" .!")
    if len(plain) > _LONGEST_WISH:
        return None
    if plain.strip("?"):
        plain = plain.rstrip(" ?")
    for name, pattern in _WISHES:
        if pattern.fullmatch(plain):
            return name
    return None


def turn(
    connection: Connection,
    user: User,
    text: str,
    open_id: str | None,
    now: datetime,
    *,
    is_recent: bool = False,
) -> tuple[str, str | None] | None:
    """Answer a message that asks for an exercise or answers one.

    Args:
        connection: a write transaction.
        user: the learner.
        text: the message.
        open_id: id of the exercise that the last answer asked, if it asked one.
        now: the current time.
        is_recent: whether there was practice in the answers before, so that "stop" means it.

    Returns:
        The answer, and the id of the exercise that it asks. None: the message is conversation.
    """
    wanted = wish(text)
    found = None if open_id is None else learner.mistake(connection, user, open_id)
    if found is not None and exercises.grade(found, text) == "right":
        # "Finish" answers an exercise about "to finish".
        wanted = None
    if wanted == "stop" and (is_recent or open_id is not None):
        return STOPPED, None
    if open_id is None:
        if wanted in ("skip", "solution") and is_recent:
            return NO_EXERCISE, None
        return _ask(connection, user, now) if wanted == "practise" else None
    if wanted == "practise" or found is None:
        return _ask(connection, user, now) if wanted == "practise" else None
    if wanted == "skip":
        # A skipped exercise is not graded; it stays due, and another one comes first.
        return _ask(connection, user, now, besides=open_id)
    if wanted != "solution" and not exercises.is_answer(found, text):
        return None
    graded = exercises.answer(connection, user, open_id, None if wanted else text, now)
    if graded is None:
        return None
    after = _ask(connection, user, now, besides=open_id)
    return f"{verdict_of(graded)}\n\n{after[0]}", after[1]


def _ask(
    connection: Connection, user: User, now: datetime, *, besides: str | None = None
) -> tuple[str, str | None]:
    due = [each for each in learner.due(connection, user, now, 2) if each["id"] != besides]
    if not due:
        return "There is nothing to practise now. New mistakes become exercises.", None
    return question(due[0]), due[0]["id"]


def question(mistake: Mistake) -> str:
    """Return the text of an exercise."""
    kind = mistake["type"].replace("_", " ")
    return f"Correct your sentence ({kind}):\n\n> {mistake['wrong']}"


def verdict_of(graded: Graded) -> str:
    """Return the result of an answer for the learner."""
    right, why = graded.mistake["right"], graded.mistake["message"]
    said = {
        "right": f"Right: “{right}”",
        "almost": f"The mistake is corrected, but the rest differs. The sentence is: “{right}”",
        "wrong": f"Not right. The sentence is: “{right}” {why}",
    }[graded.verdict]
    return said if graded.recorded else f"{said} (It was not due, so this does not count.)"
