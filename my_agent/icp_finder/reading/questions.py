"""Questions: what the finder asks with buttons, and which option a press chooses. Pure functions."""

import json
from collections.abc import Mapping
from typing import Any, Literal, NotRequired
from uuid import uuid4

from typing_extensions import TypedDict

Kind = Literal[
    "confirm_icp",
    "context_change",
    "rerun",
    "enrich",
    "domain",
    "start_over",
    "new_session",
    "offer",
]

OPTIONS: dict[Kind, dict[str, str]] = {
    "confirm_icp": {"confirm": "Yes, search with it", "change": "No, I want to change it"},
    "context_change": {
        "continue": "Continue here and search again",
        "new": "Start a new session",
        "keep": "Change nothing",
    },
    "rerun": {"rerun": "Search again", "keep": "No, keep what there is"},
    "enrich": {"enrich": "Enrich them", "later": "Not now"},
    "domain": {
        "ours": "Our own website",
        "customer": "A customer of ours",
        "candidate": "A candidate",
        "mention": "None of these",
    },
    "start_over": {"start_over": "Forget it and start over", "cancel": "No, keep it"},
    "new_session": {"new": "Open a new session", "keep": "No, stay here"},
    "offer": {"do": "Yes, do that", "skip": "No"},
}
"""The options of each kind of question: value and label of a button."""

AGREED: dict[Kind, str] = {
    "confirm_icp": "confirm",
    "context_change": "continue",
    "rerun": "rerun",
    "enrich": "enrich",
    "start_over": "start_over",
    "new_session": "new",
    "offer": "do",
}
"""The options that a yes chooses. The question for a website has none."""
REFUSED: dict[Kind, str] = {
    "confirm_icp": "change",
    "context_change": "keep",
    "rerun": "keep",
    "enrich": "later",
    "domain": "mention",
    "start_over": "cancel",
    "new_session": "keep",
    "offer": "skip",
}
"""The options that a no chooses."""


class Question(TypedDict):
    """A question that waits for an answer; also the payload of its interrupt.

    Attributes:
        id: identifies the question. An answer that names another question is ignored.
        kind: the kind of question; decides the options.
        question: the text of the question.
        options: value and label of each option.
        details: data that the client may show or need for its next request.
    """

    id: NotRequired[str]
    kind: Kind
    question: str
    options: list[dict[str, str]]
    details: dict[str, Any]


def question(kind: Kind, text: str, **details: Any) -> Question:
    """Build a question of a kind, with an id of its own."""
    options = [{"value": value, "label": label} for value, label in OPTIONS[kind].items()]
    return {
        "id": uuid4().hex,
        "kind": kind,
        "question": text,
        "options": options,
        "details": details,
    }


def same(asking: Question, before: Question | None) -> Question:
    """Return a question with the id of the one before if both ask the same."""
    if before is None or (before["kind"], before["details"]) != (asking["kind"], asking["details"]):
        return asking
    return {**asking, "id": before["id"]} if "id" in before else asking


def names_other(reply: Any, asking: Question) -> bool:
    """Return whether a structured reply names a question other than the waiting one."""
    named = reply.get("question") if isinstance(reply, Mapping) else None
    return isinstance(named, str) and named != asking.get("id")


def pressed(kind: Kind, reply: Any) -> str | None:
    """Return the option that a press chooses; None if the reply is something else.

    Args:
        kind: the kind of question.
        reply: the value or label of an option, its number, true or false, or a dictionary or a list
            with one of these.
    """
    options = list(OPTIONS[kind])
    if isinstance(reply, bool):
        return AGREED.get(kind) if reply else REFUSED[kind]
    if isinstance(reply, int):
        return options[reply - 1] if 0 < reply <= len(options) else None
    if not isinstance(reply, str):
        inner = _unwrap(reply)
        return None if inner is None else pressed(kind, inner)
    text = " ".join(reply.casefold().split()).strip(" .!)#")
    for value, label in OPTIONS[kind].items():
        if text in (value, label.casefold()):
            return value
    return (
        pressed(kind, int(text)) if text.isascii() and text.isdigit() and len(text) == 1 else None
    )


def reply_text(reply: Any) -> str:
    """Return a reply as the text of a message."""
    if isinstance(reply, str):
        return reply
    inner = _unwrap(reply)
    if inner is not None:
        return reply_text(inner)
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
