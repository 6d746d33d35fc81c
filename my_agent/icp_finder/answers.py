"""Answers: find the option that a reply to a question chooses. Pure functions."""

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
"""The options of each kind of question: value and label of a button."""

# A longer message is taken for new information rather than for a choice.
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
        kind: the kind of question; decides the options.
        question: the text of the question.
        options: value and label of each option.
        details: data that the client may show or need for its next request.
    """

    kind: Kind
    question: str
    options: list[dict[str, str]]
    details: dict[str, Any]


def question(kind: Kind, text: str, **details: Any) -> Question:
    """Build a question of a kind."""
    options = [{"value": value, "label": label} for value, label in OPTIONS[kind].items()]
    return {"kind": kind, "question": text, "options": options, "details": details}


def parse(kind: Kind, reply: Any) -> str | None:
    """Return the option that a reply chooses, or None if the reply is unclear.

    Args:
        kind: the kind of question.
        reply: free text, the value or label of an option, its number, true or false, or a
            dictionary or a list with one of these.
    """
    options = list(OPTIONS[kind])
    if isinstance(reply, bool):
        return _yes_or_no(kind, yes=reply)
    if isinstance(reply, int):
        return options[reply - 1] if 0 < reply <= len(options) else None
    if not isinstance(reply, str):
        wrapped = _unwrap(reply)
        return None if wrapped is None else parse(kind, wrapped)
    text = " ".join(reply.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").split())
    text = text.strip(" .!")
    for value, label in OPTIONS[kind].items():
        if text in (value, label.casefold()):
            return value
    if text.isascii() and text.isdigit() and len(text) == 1:
        return parse(kind, int(text))
    return _interpret(kind, text)


def reply_text(reply: Any) -> str:
    """Return a reply as the text of a message."""
    if isinstance(reply, str):
        return reply
    wrapped = _unwrap(reply)
    if wrapped is not None:
        return reply_text(wrapped)
    if isinstance(reply, bool):
        return "Yes" if reply else "No"
    return json.dumps(reply, ensure_ascii=False, default=str)


def _unwrap(reply: Any) -> Any:
    """Return the reply inside the list or dictionary of a user interface, or None."""
    if isinstance(reply, list | tuple) and len(reply) == 1:
        return reply[0]
    if isinstance(reply, Mapping):
        return next(
            (reply[key] for key in ("choice", "answer", "value", "args") if key in reply), None
        )
    return None


def _interpret(kind: Kind, text: str) -> str | None:
    """Return the option that a short text means; None if it means none or several."""
    yes, no = _YES.match(text), _NO.match(text)
    if _UNSURE.search(text) or (text.endswith("?") and not yes):
        return None
    if len(text.split()) > MAX_WORDS and not (yes or no):
        return None
    matched = [value for value, words in _WORDS[kind].items() if words.search(text)]
    refused = _NO.search(text) is not None
    if kind == "context_change":
        return matched[0] if len(matched) == 1 and not refused else None
    if no or (refused and not yes):
        return _yes_or_no(kind, yes=False)
    if len(matched) == 1:
        return matched[0]
    return _yes_or_no(kind, yes=True) if _YES.search(text) and not matched else None


def _yes_or_no(kind: Kind, *, yes: bool) -> str | None:
    if kind == "context_change":
        return None
    return list(OPTIONS[kind])[0 if yes else 1]
