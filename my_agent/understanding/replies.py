"""Replies: which messages are not answered yet, and what an answer to a question with buttons means. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage

_KEYS = ("choice", "answer", "value", "args", "text", "content")


def pressed(options: Mapping[str, str], reply: Any, yes: str | None, no: str) -> str | None:
    """Return the option that a press chooses; None if the reply is something else.

    Args:
        options: value and label of each button.
        reply: the value or label of an option, its number, true or false, or a dictionary or a list
            with one of these.
        yes: the option that true chooses, if any.
        no: the option that false chooses.
    """
    if isinstance(reply, bool):
        return yes if reply else no
    if isinstance(reply, int):
        return list(options)[reply - 1] if 0 < reply <= len(options) else None
    if not isinstance(reply, str):
        inner = _unwrap(reply)
        return None if inner is None else pressed(options, inner, yes, no)
    text = " ".join(reply.casefold().split()).strip(" .!)#")
    if text.isascii() and text.isdigit() and len(text) == 1:
        return pressed(options, int(text), yes, no)
    return next((v for v, label in options.items() if text in (v, label.casefold())), None)


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


def spoken(options: Mapping[str, str], reply: Any) -> str:
    """Return a reply as the text of a message; a press of a button as the label that the person saw.

    Args:
        options: value and label of each button.
        reply: the reply. A page that shows another label, such as a translated one, sends it as `label`.
    """
    chosen = reply.get("choice") if isinstance(reply, Mapping) else None
    if isinstance(chosen, str) and chosen in options:
        return str(reply.get("label") or options[chosen])
    return reply_text(reply)


def _unwrap(reply: Any) -> Any:
    """Return the reply inside the list or dictionary of a user interface, or None."""
    if isinstance(reply, list | tuple) and len(reply) == 1:
        return reply[0]
    if isinstance(reply, Mapping):
        said = reply.get("messages")
        # The hook of LangChain answers an open question with what would have been the next input.
        if isinstance(said, list) and said:
            return said[-1]
        return next((reply[key] for key in _KEYS if key in reply), None)
    return None


def names_other(reply: Any, question: str | None) -> bool:
    """Return whether a structured reply names a question other than the waiting one, by its id."""
    named = reply.get("question") if isinstance(reply, Mapping) else None
    return isinstance(named, str) and named != question


def unanswered(messages: list[AnyMessage]) -> list[HumanMessage]:
    """Return the user's messages after the last answer: several if an earlier run failed."""
    waiting: list[HumanMessage] = []
    for message in reversed(messages):
        if not isinstance(message, HumanMessage):
            break
        waiting.append(message)
    return waiting[::-1]
