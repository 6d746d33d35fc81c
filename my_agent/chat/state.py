"""What the graph takes and what it keeps."""

from typing import Annotated

from langchain_core.messages import AnyMessage
from langgraph.graph import add_messages
from typing_extensions import TypedDict


class Input(TypedDict):
    """What a caller may send."""

    # New messages only: they are appended to those of the thread, or replace one by its id.
    messages: Annotated[list[AnyMessage], add_messages]


class Found(TypedDict):
    """A passage of a document, as the thread keeps it."""

    # Its place in the document, from 1.
    number: int
    title: str
    section: str
    text: str


class Citation(TypedDict):
    """A passage that the last answer names."""

    # Between brackets in the answer.
    number: int
    title: str
    section: str
    # Its place in the document, from 1.
    passage: int
    text: str


class State(Input, total=False):
    """What a thread keeps: the whole conversation, and what the last answer rests on."""

    # The last question, standing by itself: what documents are searched for.
    main_question: str
    passages: list[Found]
    citations: list[Citation]


class Rewritten(TypedDict):
    """What `rewrite` writes."""

    main_question: str


class Retrieved(TypedDict):
    """What `retrieve` writes. No citation, since the answer that had some was another one."""

    passages: list[Found]
    citations: list[Citation]


class Answered(TypedDict):
    """What `generate` writes; the answer is appended, with its citations beside its text."""

    messages: list[AnyMessage]
    citations: list[Citation]
