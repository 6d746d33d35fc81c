"""Proposal: a possible cause, with the words it rests on and what would refute it."""

from dataclasses import dataclass
from typing import Literal

from my_agent.diagnosis.reading.summary import Place

Basis = Literal["stated", "inferred"]
Role = Literal["cause", "effect", "change", "context", "against"]


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of the evidence, verbatim.

    Attributes:
        source: The id of the source; empty: any.
        text: The words, of one line.
        role: What they show: the cause itself, an effect of it, a change before it, something
            beside it, or the opposite.
        place: Where they stand in the source, if it is known; else they are searched.
    """

    source: str
    text: str
    role: Role = "cause"
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Refutation:
    """A search that could refute a cause.

    Attributes:
        words: Words that stand together in one line.
        expect: Whether such a line must be there, or must not be there, if the cause is right.
        says: What it tests, in words.
    """

    words: tuple[str, ...]
    expect: Literal["present", "absent"]
    says: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A possible cause.

    Attributes:
        component: What failed first.
        kind: A short name of the kind of cause, such as `disk_full`.
        cause: The cause as a sentence.
        quotes: The words it rests on.
        refutation: What would refute it, or None.
        basis: Whether lines state the cause, or it takes knowledge that no line has.
        effect_of: The id of the proposal that led to it, or an empty text.
    """

    component: str
    kind: str
    cause: str
    quotes: tuple[Quote, ...]
    refutation: Refutation | None = None
    basis: Basis = "stated"
    effect_of: str = ""

    @property
    def id(self) -> str:
        """The id of its hypothesis: the same component and kind are the same hypothesis."""
        return f"{self.component[:39]}:{self.kind[:40]}"
