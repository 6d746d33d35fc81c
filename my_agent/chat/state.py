"""Input and state of the graph `chat`."""

from typing import Annotated, NotRequired

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
    # Where the passage stands; absent in threads of older versions.
    document_id: NotRequired[str]
    path: NotRequired[str]
    page: NotRequired[int | None]
    start: NotRequired[int]
    end: NotRequired[int]


class Citation(TypedDict):
    """A passage that the last answer cites."""

    # The number in brackets in the answer.
    number: int
    title: str
    section: str
    # Position in the document, from 1.
    passage: int
    text: str
    document_id: str
    # Path or name of a file with this document.
    path: str
    # Page of the file, from 1; none if the file has no pages.
    page: int | None
    # Offsets of the passage in the document's text, in characters.
    start: int
    end: int


class Unsupported(TypedDict):
    """A sentence of the last answer that rests on no passage."""

    # Offsets in the answer, in characters.
    start: int
    end: int
    text: str


class State(Input, total=False):
    """The stored state of a thread: the conversation, and the sources of the last answer."""

    # The last question, rewritten to stand alone: the query for the document search.
    main_question: str
    passages: list[Found]
    citations: list[Citation]
    unsupported: list[Unsupported]
    # Whether documents were searched for the last question.
    searched: bool


class Rewritten(TypedDict):
    """The update that `rewrite` returns."""

    main_question: str


class Retrieved(TypedDict):
    """The update that `retrieve` returns. It clears the citations of the previous answer."""

    passages: list[Found]
    citations: list[Citation]
    unsupported: list[Unsupported]
    searched: bool


class Answered(TypedDict):
    """The update that `generate` returns. The answer also carries its citations in
    `additional_kwargs`.
    """

    messages: list[AnyMessage]
    citations: list[Citation]
    unsupported: list[Unsupported]
