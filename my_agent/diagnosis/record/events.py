"""Events: the types of changes of a session, each with its current version and its content.

A stored event never changes. If the content of a type changes, raise its version here, add a
function to `upcasting.UPCASTERS`, and a fixture of the old version to the tests.
"""

import json
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from my_agent.diagnosis.reading.summary import Kind

Id = Annotated[str, Field(min_length=1, max_length=80)]
Line = Annotated[str, Field(min_length=1, max_length=400)]
Words = Annotated[str, Field(min_length=1, max_length=4000)]

Outcome = Literal["passed", "failed", "unclear"]


class EventRefused(RuntimeError):
    """An event does not fit its type, or the state of its session. The message says why.

    A RuntimeError, since the API hides from its callers the message of any class it does not know.
    """


class Content(BaseModel):
    """The content of an event."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    VERSION: ClassVar[int] = 1


class SessionOpened(Content):
    """A session began."""

    title: Line


class MessageAdded(Content):
    """The user or the assistant wrote a message. Long messages are shortened."""

    id: Id
    role: Literal["user", "assistant"]
    text: Words


class SourceAdded(Content):
    """Something to read was given: a log, metrics, traces, a text, or the result of a probe.

    Version 1 had no `format`; version 2 had no `name`. Until version 3 the event had the `text`,
    which is in the table of texts now.

    Attributes:
        sha256: Of the text in UTF-8.
        text: The text of an older version; else empty.
    """

    VERSION = 4

    id: Id
    kind: Kind
    format: Annotated[str, Field(max_length=40)]
    name: Annotated[str, Field(max_length=200)]
    lines: Annotated[int, Field(ge=0)]
    chars: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    text: str = ""


class ObservationRecorded(Content):
    """Something was read in a source, at these offsets in its text.

    `when` is the time of what was observed, in microseconds since 1970, if the source says it.
    """

    id: Id
    source: Id
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]
    quote: Line
    kind: Id
    service: Annotated[str, Field(max_length=100)]
    when: int | None
    text: Line


class HypothesisProposed(Content):
    """A cause was proposed. Version 1 had `cause` as one text, `service: fault`."""

    VERSION = 2

    id: Id
    parent: Id | None
    service: Id
    fault: Id
    statement: Line
    by: Literal["rules", "model"]


class InvestigationStarted(Content):
    """The investigation of a hypothesis began."""

    hypothesis: Id


class EvidenceRecorded(Content):
    """An observation speaks for or against a hypothesis. It repeats what the observation says."""

    hypothesis: Id
    test: Id
    direction: Literal["for", "against"]
    observation: Id
    source: Id
    start: int
    end: int
    quote: Line


class ResultRecorded(Content):
    """A test of a hypothesis ended. A later result of the same test replaces this one."""

    hypothesis: Id
    test: Id
    outcome: Outcome
    reason: Line


class QuestionAsked(Content):
    """The user was asked for what is missing."""

    id: Id
    text: Words
    missing: Annotated[list[Line], Field(max_length=10)]


class QuestionAnswered(Content):
    """The user answered the open question."""

    id: Id
    text: Words


class NoteAdded(Content):
    """A person wrote a note."""

    author: Id
    text: Words


class SessionBranched(Content):
    """The session goes on from an earlier event, of itself or of the session that it was copied from.

    Attributes:
        origin: The session of that event.
        seq: The event.
        state: The state after it, if it is one of this session; else the events before this one are
            copies of it, and their state is the state.
    """

    origin: Id
    seq: Annotated[int, Field(ge=0)]
    state: dict[str, Any] | None = None


class ConclusionDrawn(Content):
    """The investigation ended. The fold decides what it found."""

    missing: Annotated[list[Line], Field(max_length=10)]


CONTENTS: dict[str, type[Content]] = {
    "session_opened": SessionOpened,
    "message_added": MessageAdded,
    "source_added": SourceAdded,
    "observation_recorded": ObservationRecorded,
    "hypothesis_proposed": HypothesisProposed,
    "investigation_started": InvestigationStarted,
    "evidence_recorded": EvidenceRecorded,
    "test_recorded": ResultRecorded,
    "question_asked": QuestionAsked,
    "question_answered": QuestionAnswered,
    "note_added": NoteAdded,
    "session_branched": SessionBranched,
    "conclusion_drawn": ConclusionDrawn,
}
"""The content of each type of event, in its current version."""


class New(NamedTuple):
    """An event that is not stored yet, in the current version of its type."""

    type: str
    data: dict[str, Any]


class Event(NamedTuple):
    """A stored event.

    Attributes:
        seq: Its number in the session, from 1.
        data: Its content, in the version in which it was stored.
        at: Microseconds since 1970.
        command: What wrote it, or None.
        previous: Hash of the event before it.
    """

    seq: int
    type: str
    version: int
    data: dict[str, Any]
    at: int
    command: str | None
    previous: str
    hash: str


def new(content: Content) -> New:
    """Return the event of a content."""
    return New(_TYPES[type(content)], content.model_dump())


def checked(event: New) -> New:
    """Return the event if its content fits its type.

    Raises:
        EventRefused: it does not.
    """
    content = CONTENTS.get(event.type)
    if content is None:
        raise EventRefused(f"There is no event type {event.type!r}")
    try:
        return New(event.type, content.model_validate(event.data).model_dump())
    except ValidationError as error:
        fields = ", ".join(".".join(map(str, each["loc"])) for each in error.errors())
        raise EventRefused(f"An event {event.type!r} has wrong values: {fields}") from error


def dumps(value: Any) -> str:
    """Return the one JSON text of a value: sorted, compact, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


_TYPES = {content: name for name, content in CONTENTS.items()}
