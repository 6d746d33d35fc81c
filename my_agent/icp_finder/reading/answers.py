"""Answers: find the option that a reply to a question chooses. Pure functions."""

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, NotRequired
from uuid import uuid4

from typing_extensions import TypedDict

from my_agent.icp_finder.reading import vocabulary
from my_agent.icp_finder.reading.vocabulary import FILLERS, NO, UNSURE, YES, YES_PHRASES

Kind = Literal["confirm_icp", "context_change", "rerun", "enrich", "domain"]

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
}
"""The options of each kind of question: value and label of a button."""

# Options that start something or change stored data. A text chooses them only if each of its words
# agrees; a limit or a condition in it would be lost.
_CONSENT: dict[Kind, str] = {
    "confirm_icp": "confirm",
    "context_change": "continue",
    "rerun": "rerun",
    "enrich": "enrich",
}
# The options that a refusal chooses.
_REFUSAL: dict[Kind, str] = {
    "confirm_icp": "change",
    "context_change": "keep",
    "rerun": "keep",
    "enrich": "later",
    "domain": "mention",
}
# Words that name the option of consent, and words that may stand next to them.
_NAMING: dict[Kind, re.Pattern[str]] = {
    "confirm_icp": re.compile(r"search|find|start|begin|run"),
    "context_change": re.compile(r"continue|here|apply|stay|hier|aquí|ici"),
    "rerun": re.compile(r"re-?run|refresh|again|search|repeat|renew"),
    "enrich": re.compile(r"enrich(?:ment)?|run|start|begin"),
}
_BESIDE = frozenset(
    [
        "search",
        "discovery",
        "companies",
        "such",
        "candidates",
        "same",
        "session",
        "best",
        "new",
        "run",
        "a",
    ]
)
_WORDS: dict[Kind, dict[str, re.Pattern[str]]] = {
    "confirm_icp": {"change": re.compile(r"\b(?:change|edit|adjust)\b")},
    "context_change": {
        "new": re.compile(r"\b(?:new|fresh|another)\b"),
        "keep": re.compile(r"\b(?:keep|old|ignore|cancel|never\s?mind|nothing)\b"),
        "continue": re.compile(r"\b(?:continue|here)\b"),
    },
    "rerun": {"keep": re.compile(r"\b(?:keep|cached?|skip|later)\b")},
    "enrich": {"later": re.compile(r"\b(?:later|skip)\b")},
    "domain": {
        # Not `a customer of ours`.
        "ours": re.compile(
            r"^(?!.*\b(?:customer|client|candidate|prospect))"
            r".*\b(?:ours?|us|we|my|mine|own|unsere?|nous|nosotros|nuestr[ao])\b"
        ),
        "customer": re.compile(r"\b(?:customers?|clients?|buyers?|kunde|cliente)\b"),
        "candidate": re.compile(r"\b(?:candidates?|prospects?|leads?|targets?|kandidat)\b"),
        "mention": re.compile(
            r"\b(?:mention(?:ed)?|none|neither|nothing|ignore|forget|just|never\s?mind)\b"
        ),
    },
}
# A longer text is no choice, unless it begins with a refusal.
MAX_WORDS = 9


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
    text = vocabulary.plain(reply).strip(" .!\N{IDEOGRAPHIC FULL STOP}")
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


def agrees(text: str, kind: Kind | None = None) -> bool:
    """Return whether every word of a plain text agrees, or names what the question proposes.

    Args:
        text: such as `yes, please`.
        kind: the kind of question; None: only words that agree count.
    """
    if "?" in text or UNSURE.search(text):
        return False
    # A phrase such as `no problem` has words that would refuse on their own.
    words = vocabulary.tokens(YES_PHRASES.sub(" yes ", text))
    naming = _NAMING.get(kind) if kind else None
    named = [word for word in words if naming and naming.fullmatch(word)]
    beside = _BESIDE if naming else frozenset()
    known = all(word in YES or word in FILLERS or word in beside or word in named for word in words)
    if not vocabulary.THANKED.isdisjoint(words) and not set(words) & YES - vocabulary.WEAK:
        # `Ok, thanks` takes note of an answer rather than agrees.
        return False
    return known and any(word in YES or word in named for word in words)


_WISHED: dict[str, re.Pattern[str]] = {
    "enrich": re.compile(
        r"enrich(?:ment)?|run|start|do|begin|continue|resume|retry|repeat|bereichere|reichere|an"
        r"|anreichern|enrichis(?:sez)?|enriquece[rn]?|enriqueça|can|could|you|want|need|let's"
    ),
    "rerun": re.compile(
        r"re-?run|run|re|refresh|search|discover|look|again|discovery|repeat|start|web|can|could|you"
        r"|want|need|let's|list|my|our|suche?|nochmal|erneut|busca|de|nuevo|busque|novo|relance|cari"
        r"|lagi|another|noch|die"
    ),
}


def names_only(text: str, wish: str) -> bool:
    """Return whether a plain text asks for an action with no other word that could limit it."""
    known = _WISHED[wish]
    words = vocabulary.tokens(YES_PHRASES.sub(" yes ", text.strip(" ?")))
    return all(
        word in YES or word in FILLERS or word in _BESIDE or known.fullmatch(word) for word in words
    )


def refuses(text: str) -> bool:
    """Return whether a plain text begins with a refusal."""
    return NO.match(YES_PHRASES.sub(" yes ", text).strip()) is not None


def _interpret(kind: Kind, text: str) -> str | None:
    """Return the option that a short text means; None if it means none or several."""
    is_refusal = refuses(text)
    # `Not sure` begins like a refusal.
    unsure = UNSURE.match(text) if is_refusal else UNSURE.search(text)
    if unsure or text.endswith("?"):
        return None
    if kind in _CONSENT and agrees(text, kind):
        return _CONSENT[kind]
    if len(text.split()) > MAX_WORDS and not is_refusal:
        return None
    matched = [value for value, words in _WORDS[kind].items() if words.search(text)]
    if kind in ("context_change", "domain"):
        denied = vocabulary.NEGATION.search(text) is not None
        if len(matched) == 1 and (not denied or matched[0] == _REFUSAL[kind]):
            # `continue` changes stored data, so a text with other words does not choose it.
            return matched[0] if matched[0] != _CONSENT.get(kind) else None
        return _REFUSAL[kind] if is_refusal and not matched else None
    if is_refusal:
        return _REFUSAL[kind]
    return matched[0] if len(matched) == 1 and not _is_limited(text) else None


def _is_limited(text: str) -> bool:
    return vocabulary.QUALIFIER.search(text) is not None


def _yes_or_no(kind: Kind, *, yes: bool) -> str | None:
    return _CONSENT.get(kind) if yes else _REFUSAL[kind]


def refusal(kind: Kind) -> str:
    """Return the option that a refusal chooses."""
    return _REFUSAL[kind]


def is_consent(kind: Kind, choice: str) -> bool:
    """Return whether an option starts something or changes stored data."""
    return choice == _CONSENT.get(kind) or choice in ("ours", "customer", "candidate", "new")
