"""The window: how much of a conversation is read for one answer. The thread keeps all of it."""

from collections.abc import Sequence

from langchain_core.messages import AnyMessage, HumanMessage

PAIRS = 20
"""Questions with their answers that are read, beside the question that is to be answered."""


def window(messages: Sequence[AnyMessage], pairs: int = PAIRS) -> list[AnyMessage]:
    """The end of a conversation: the last question, and at most so many pairs before it.

    What came with a question stays with it, whether an answer, several, or none.
    """
    asked = [place for place, each in enumerate(messages) if isinstance(each, HumanMessage)]
    return list(messages[asked[-pairs - 1] :] if len(asked) > pairs else messages)


def question(messages: Sequence[AnyMessage]) -> str:
    """The last question; empty where there is none, or none in words."""
    asked = [each for each in messages if isinstance(each, HumanMessage)]
    return str(asked[-1].text).strip() if asked else ""


def before(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """What came before the last question."""
    asked = [place for place, each in enumerate(messages) if isinstance(each, HumanMessage)]
    return list(messages[: asked[-1]]) if asked else []
