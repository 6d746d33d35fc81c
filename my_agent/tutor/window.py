"""The window: how much of a conversation the model reads. The thread itself is never cut."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, trim_messages


def window(messages: Sequence[AnyMessage], *, turns: int, length: int) -> list[BaseMessage]:
    """The end of a conversation, from a message of the learner's on.

    Args:
        messages: all of them; the last is to be answered.
        turns: how many of the learner's messages before it, with their answers, at most.
        length: characters, at most.
    """
    talk = [message for message in messages if isinstance(message, HumanMessage | AIMessage)]
    asked = [index for index, message in enumerate(talk) if isinstance(message, HumanMessage)]
    recent = talk[asked[-1 - turns] :] if len(asked) > turns else talk
    found: list[BaseMessage] = trim_messages(
        recent, max_tokens=length, token_counter=_length, strategy="last", start_on="human"
    )
    return found


def _length(messages: list[BaseMessage]) -> int:
    return sum(len(message.text) for message in messages)
