"""Answers: what a reply to one of our questions chooses, or that it is unclear. Pure."""

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

from typing_extensions import TypedDict

Kind = Literal["confirm_icp", "context_change", "rerun", "enrich"]

OPTIONS: dict[Kind, dict[str, str]] = {
    "confirm_icp": {"confirm": "Yes, search with it", "change": "No, I want to change it"},
    "context_change": {
        "continue": "Continue here and search again",
        "new": "Start a new session",
        "keep": "Change nothing",
    },
    "rerun": {"rerun": "Search again", "keep": "No, keep what there is"},
    "enrich": {"enrich": "Enrich them", "later": "Not now"},
}
"""What each question offers: values, and what a button would say."""

# A longer message tells something, rather than choosing.
MAX_WORDS = 9

_YES = re.compile(
    r"\b(?:y|yes|yeah|yep|sure|ok|okay|right|correct|confirm(?:ed)?|agreed?|approved?|go(?:\s+ahead|\s+on)?"
    r"|please\s+do|do\s+it|looks?\s+good|perfect|absolutely|of\s+course)\b"
)
_NO = re.compile(r"\b(?:n|no|nope|nah|not|don'?t|never|wrong|incorrect)\b")
_UNSURE = re.compile(r"\b(?:don'?t\s+know|not\s+sure|no\s+idea|maybe|perhaps)\b")
_WORDS: dict[Kind, dict[str, re.Pattern[str]]] = {
    "confirm_icp": {"change": re.compile(r"\b(?:change|edit|adjust)\b")},
    "context_change": {
        "continue": re.compile(r"\b(?:continue|here|same|go\s+on|stay)\b"),
        "new": re.compile(r"\b(?:new|fresh|another)\b"),
        "keep": re.compile(r"\b(?:keep|old|ignore|cancel|never\s?mind|nothing)\b"),
    },
    "rerun": {
        "rerun": re.compile(r"\b(?:re-?\s?run|refresh|again|search)\b"),
        "keep": re.compile(r"\b(?:keep|cached?|skip|later)\b"),
    },
    "enrich": {
        "enrich": re.compile(r"\benrich(?:ment)?\b|^(?:run|start)\b"),
        "later": re.compile(r"\b(?:later|skip)\b"),
    },
}


class Question(TypedDict):
    """A question that waits for an answer; also the payload of its interrupt.

    Attributes:
        question: in words.
        options: values to answer with, each with a label.
        details: what the client may need to show or do.
    """

    kind: Kind
    question: str
    options: list[dict[str, str]]
    details: dict[str, Any]


def question(kind: Kind, text: str, **details: Any) -> Question:
    """A question of a kind."""
    options = [{"value": value, "label": label} for value, label in OPTIONS[kind].items()]
    return {"kind": kind, "question": text, "options": options, "details": details}


def parse(kind: Kind, reply: Any) -> str | None:
    """The option that a reply chooses, or None where that is unclear.

    Args:
        reply: free text, the value or label of an option, its number, true or false, or a
            dictionary with one of those.
    """
    options = list(OPTIONS[kind])
    if isinstance(reply, bool):
        return _yes_or_no(kind, yes=reply)
    if isinstance(reply, int):
        return options[reply - 1] if 0 < reply <= len(options) else None
    if not isinstance(reply, str):
        inner = _inner(reply)
        return None if inner is None else parse(kind, inner)
    text = " ".join(reply.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").split())
    text = text.strip(" .!")
    for value, label in OPTIONS[kind].items():
        if text in (value, label.casefold()):
            return value
    if text.isascii() and text.isdigit() and len(text) == 1:
        return parse(kind, int(text))
    return _meant(kind, text)


def spoken(reply: Any) -> str:
    """A reply as a message of the conversation."""
    if isinstance(reply, str):
        return reply
    inner = _inner(reply)
    if inner is not None:
        return spoken(inner)
    if isinstance(reply, bool):
        return "Yes" if reply else "No"
    return json.dumps(reply, ensure_ascii=False, default=str)


def _inner(reply: Any) -> Any:
    """The reply inside of what a user interface wraps it in."""
    if isinstance(reply, list | tuple) and len(reply) == 1:
        return reply[0]
    if isinstance(reply, Mapping):
        return next(
            (reply[key] for key in ("choice", "answer", "value", "args") if key in reply), None
        )
    return None


def _meant(kind: Kind, text: str) -> str | None:
    """What a short text means; None if it says nothing of the kind, or two things."""
    yes, no = _YES.match(text), _NO.match(text)
    if _UNSURE.search(text) or (text.endswith("?") and not yes):
        return None
    if len(text.split()) > MAX_WORDS and not (yes or no):
        return None
    named = [value for value, words in _WORDS[kind].items() if words.search(text)]
    refused = _NO.search(text) is not None
    if kind == "context_change":
        return named[0] if len(named) == 1 and not refused else None
    if no or (refused and not yes):
        return _yes_or_no(kind, yes=False)
    if len(named) == 1:
        return named[0]
    return _yes_or_no(kind, yes=True) if _YES.search(text) and not named else None


def _yes_or_no(kind: Kind, *, yes: bool) -> str | None:
    if kind == "context_change":
        return None
    return list(OPTIONS[kind])[0 if yes else 1]
