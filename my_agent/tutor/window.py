"""The window: how much of a conversation the model reads. The thread keeps all messages."""

from collections.abc import Sequence
from typing import cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, trim_messages


def window(messages: Sequence[AnyMessage], *, turns: int, length: int) -> list[AnyMessage]:
    """Return the end of a conversation, starting with a message of the learner.

    Args:
        messages: all messages; the last one is to be answered.
        turns: maximum number of the learner's earlier messages, with their answers.
        length: maximum number of characters.
    """
    dialogue = [message for message in messages if isinstance(message, HumanMessage | AIMessage)]
    asked = [index for index, message in enumerate(dialogue) if isinstance(message, HumanMessage)]
    recent = dialogue[asked[-1 - turns] :] if len(asked) > turns else dialogue
    found = trim_messages(
        recent, max_tokens=length, token_counter=_length, strategy="last", start_on="human"
    )
    return cast(list[AnyMessage], found)


def _length(messages: list[BaseMessage]) -> int:
    return sum(len(message.text) for message in messages)
