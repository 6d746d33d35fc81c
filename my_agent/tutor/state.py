"""What the graph takes and what it keeps."""

from datetime import UTC, datetime
from typing import Annotated, Any, cast

from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.graph import add_messages
from typing_extensions import TypedDict

from my_agent.tutor import corrections
from my_agent.tutor.corrections import Correction

TIMESTAMP = "timestamp"


def now() -> str:
    """This moment, as messages carry it: ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def keep_messages(kept: list[AnyMessage], new: Any) -> list[AnyMessage]:
    """`add_messages`, with the time in `additional_kwargs["timestamp"]` of whatever has none.

    That is where a LangChain message has room for it: Studio and useStream go on reading the
    messages they know.
    """
    moment = now()
    merged = cast(list[AnyMessage], add_messages(kept, new))  # type: ignore[arg-type]
    return [message if _has_timestamp(message) else _stamped(message, moment) for message in merged]


def _has_timestamp(message: AnyMessage) -> bool:
    stamp = message.additional_kwargs.get(TIMESTAMP)
    try:
        return isinstance(stamp, str) and datetime.fromisoformat(stamp).tzinfo is not None
    except ValueError:
        return False


def _stamped(message: AnyMessage, moment: str) -> AnyMessage:
    return message.model_copy(
        update={"additional_kwargs": {**message.additional_kwargs, TIMESTAMP: moment}}
    )


class Input(TypedDict):
    """What a caller may send."""

    # New messages only: they are appended to those of the thread, or replace one by its id.
    messages: Annotated[list[AnyMessage], keep_messages]


class State(Input, total=False):
    """What a thread keeps."""

    corrections: Annotated[list[Correction], corrections.keep]
    thread_id: str


def unanswered(messages: list[AnyMessage]) -> list[HumanMessage]:
    """The learner's messages after the last answer: one, or more if a run before had failed."""
    waiting: list[HumanMessage] = []
    for message in reversed(messages):
        if not isinstance(message, HumanMessage):
            break
        waiting.append(message)
    return waiting[::-1]
