"""Input and state of the graph `tutor`."""

from datetime import UTC, datetime
from typing import Annotated, Any, cast

from langchain_core.messages import AnyMessage
from langgraph.graph import add_messages
from typing_extensions import TypedDict

from my_agent.tutor import corrections
from my_agent.tutor.corrections import Correction

TIMESTAMP = "timestamp"
CHECK = "check"
FINISH = "finish"


def now() -> str:
    """Return the current time as stored in messages: ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def keep_messages(kept: list[AnyMessage], new: Any) -> list[AnyMessage]:
    """Merge messages like `add_messages`, and add a timestamp to each message that has none.

    The timestamp is in `additional_kwargs["timestamp"]`, which LangChain messages support: Studio
    and useStream can still read them.
    """
    timestamp = now()
    merged = cast(list[AnyMessage], add_messages(kept, new))  # type: ignore[arg-type]
    return [
        message if _has_timestamp(message) else _stamped(message, timestamp) for message in merged
    ]


def _has_timestamp(message: AnyMessage) -> bool:
    stamp = message.additional_kwargs.get(TIMESTAMP)
    try:
        return isinstance(stamp, str) and datetime.fromisoformat(stamp).tzinfo is not None
    except ValueError:
        return False


def _stamped(message: AnyMessage, timestamp: str) -> AnyMessage:
    return message.model_copy(
        update={"additional_kwargs": {**message.additional_kwargs, TIMESTAMP: timestamp}}
    )


class Input(TypedDict):
    """The input that a client may send."""

    # Messages are appended to the thread; a message with a known id replaces that message.
    messages: Annotated[list[AnyMessage], keep_messages]


class State(Input, total=False):
    """The stored state of a thread."""

    corrections: Annotated[list[Correction], corrections.keep]
    thread_id: str
