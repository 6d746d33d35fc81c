"""Input and state of the graph `chat`."""

from typing import Annotated

from langchain_core.messages import AnyMessage
from langgraph.graph import add_messages
from typing_extensions import TypedDict


class Input(TypedDict):
    """The input that a client may send."""

    # Messages are appended to the thread; a message with a known id replaces that message.
    messages: Annotated[list[AnyMessage], add_messages]


class Found(TypedDict):
    """A passage of a document, as the thread stores it."""

    # Position in the document, from 1.
    number: int
    title: str
    section: str
    text: str


class Citation(TypedDict):
    """A passage that the last answer cites."""

    # The number in brackets in the answer.
    number: int
    title: str
    section: str
    # Position in the document, from 1.
    passage: int
    text: str


class State(Input, total=False):
    """The stored state of a thread: the conversation, and the sources of the last answer."""

    # The last question, rewritten to stand alone: the query for the document search.
    main_question: str
    passages: list[Found]
    citations: list[Citation]


class Rewritten(TypedDict):
    """The update that `rewrite` returns."""

    main_question: str


class Retrieved(TypedDict):
    """The update that `retrieve` returns. It clears the citations of the previous answer."""

    passages: list[Found]
    citations: list[Citation]


class Answered(TypedDict):
    """The update that `generate` returns. The answer also carries its citations in
    `additional_kwargs`.
    """

    messages: list[AnyMessage]
    citations: list[Citation]
