"""What the graph takes and what it keeps."""

from typing import Annotated

from langchain_core.messages import AnyMessage
from langgraph.graph import add_messages
from typing_extensions import TypedDict


class Input(TypedDict):
    """What a caller may send."""

    # New messages only: they are appended to those of the thread, or replace one by its id.
    messages: Annotated[list[AnyMessage], add_messages]


class State(Input):
    """What a thread keeps: the whole conversation, each answer appended by `generate`."""
