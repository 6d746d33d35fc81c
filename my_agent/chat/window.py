"""The window: how much of a conversation one model call reads. The thread stores all of it."""

from collections.abc import Sequence

from langchain_core.messages import AnyMessage, HumanMessage

PAIRS = 20
"""Number of earlier questions, with their answers, that the model reads besides the last question.
"""


def window(messages: Sequence[AnyMessage], pairs: int = PAIRS) -> list[AnyMessage]:
    """Return the end of a conversation: the last question and at most `pairs` earlier ones.

    All messages that follow a question stay with it, whether it got one answer, several or none.
    """
    asked = [place for place, each in enumerate(messages) if isinstance(each, HumanMessage)]
    return list(messages[asked[-pairs - 1] :] if len(asked) > pairs else messages)


def question(messages: Sequence[AnyMessage]) -> str:
    """Return the text of the last question; empty if there is none or it has no text."""
    asked = [each for each in messages if isinstance(each, HumanMessage)]
    return str(asked[-1].text).strip() if asked else ""


def before(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return the messages before the last question."""
    asked = [place for place, each in enumerate(messages) if isinstance(each, HumanMessage)]
    return list(messages[: asked[-1]]) if asked else []
