"""Questions: what the finder asks with buttons, and which option a press chooses. Pure functions."""

from typing import Any, Literal, NotRequired
from uuid import uuid4

from typing_extensions import TypedDict

from my_agent.understanding import replies

# fmt: off
Kind = Literal[
    "confirm_icp", "context_change", "rerun", "enrich", "domain", "start_over", "new_session", "offer"
]
# fmt: on
OPTIONS: dict[Kind, dict[str, str]] = {
    "confirm_icp": {"confirm": "Search with it", "change": "Change it first"},
    "context_change": {
        "continue": "Change it here and search again",
        "new": "Start a new session",
        "keep": "Change nothing",
    },
    "rerun": {"rerun": "Search again", "keep": "Keep what there is"},
    "enrich": {"enrich": "Read them", "later": "Not now"},
    "domain": {
        "ours": "Our own website",
        "customer": "A customer of ours",
        "candidate": "A candidate",
        "mention": "None of these",
    },
    "start_over": {"start_over": "Forget it and start over", "cancel": "Keep it"},
    "new_session": {"new": "Start a new session", "keep": "Stay here"},
    "offer": {"do": "Yes, do that", "skip": "No"},
}
"""The options of each kind of question: value and label of a button. A yes means the first one, a no the last."""

AGREED: dict[Kind, str] = {
    kind: next(iter(options)) for kind, options in OPTIONS.items() if kind != "domain"
}
"""The options that a yes chooses: the first ones. The question for a website has none."""
REFUSED: dict[Kind, str] = {kind: list(options)[-1] for kind, options in OPTIONS.items()}
"""The options that a no chooses: the last ones."""


class Question(TypedDict):
    """A question that waits for an answer; also the payload of its interrupt."""

    id: NotRequired[str]  # an answer that names another question is ignored
    kind: Kind
    question: str
    options: list[dict[str, str]]  # value and label of each option
    details: dict[str, Any]  # data that the client may show or need for its next request


def question(kind: Kind, text: str, **details: Any) -> Question:
    """Build a question of a kind, with an id of its own."""
    options = [{"value": value, "label": label} for value, label in OPTIONS[kind].items()]
    asked: Question = {"kind": kind, "question": text, "options": options, "details": details}
    return {"id": uuid4().hex, **asked}


def same(asking: Question, before: Question | None) -> Question:
    """Return a question with the id of the one before if both ask the same."""
    if before is None or (before["kind"], before["details"]) != (asking["kind"], asking["details"]):
        return asking
    return {**asking, "id": before["id"]} if "id" in before else asking


def pressed(kind: Kind, reply: Any) -> str | None:
    """Return the option of a kind of question that a press chooses; None if it is something else."""
    return replies.pressed(OPTIONS[kind], reply, AGREED.get(kind), REFUSED[kind])
