"""Input and state of the graph `diagnosis`."""

from typing import Annotated, Any, Literal

from langchain_core.messages import AnyMessage
from langgraph.graph import add_messages
from typing_extensions import TypedDict

Wish = Literal["gather", "conclude", "status", "report", "thanks", "help", "ask", "remark"]
"""What the user wants: to have something read, the end, an answer, or nothing."""


class Input(TypedDict):
    """The input that a client may send."""

    # Messages are appended to the thread; a message with a known id replaces that message.
    messages: Annotated[list[AnyMessage], add_messages]


class State(Input, total=False):
    """The stored state of a thread."""

    # The state of the session, as the fold of its events computes it.
    diagnosis: dict[str, Any]
    # The last event that this state knows: `session_id`, `seq` and `hash`. A copied thread, and a
    # run from an earlier checkpoint, go on from there.
    place: dict[str, Any]
    # What the last message wants, and sentences for the next answer: what could not be read in it,
    # and what probes found.
    wish: Wish
    problems: list[str]
    # Hosts that the last message asks to probe.
    probes: list[str]
    # What would decide about the leading hypothesis.
    missing: list[str]
    # Why there is no cause of a model in this round: empty if it has answered, or if there is none.
    model_failed: str
