"""Corrections: what is wrong in a message, who found it, and how it should read."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

IssueType = Literal[
    "agreement",
    "article",
    "capitalization",
    "grammar",
    "preposition",
    "punctuation",
    "repetition",
    "spelling",
    "tense",
    "word_choice",
    "word_order",
]
Source = Literal["harper", "model"]


@with_config(ConfigDict(extra="forbid"))
class Issue(TypedDict):
    """One mistake; `start` and `end` count characters of the message."""

    type: IssueType
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]
    original: str
    replacement: str
    message: str
    sources: list[Source]


@with_config(ConfigDict(extra="forbid"))
class Correction(TypedDict):
    """What is wrong in one message."""

    message_id: Annotated[str, Field(min_length=1)]
    original: str
    corrected: str
    issues: Annotated[list[Issue], Field(min_length=1)]
    explanation: str


_CORRECTIONS = TypeAdapter(list[Correction])


def keep(kept: list[Correction], new: list[Correction]) -> list[Correction]:
    """`kept` with `new` after it; a correction of a message that has one takes its place.

    Raises:
        ValueError: something in `new` is no correction.
    """
    by_message = {each["message_id"]: each for each in kept}
    by_message |= {each["message_id"]: each for each in _CORRECTIONS.validate_python(new)}
    return list(by_message.values())


def merge(*found: Iterable[Issue]) -> list[Issue]:
    """Issues of several finders in the order of the text, none overlapping another.

    Of those that overlap, the one of the earlier finder stays; where both say the same, it names
    both sources.
    """
    merged: list[Issue] = []
    for issue in (each for issues in found for each in issues):
        others = [other for other in merged if _overlap(issue, other)]
        if not others:
            merged.append({**issue, "sources": list(issue["sources"])})
        for other in others:
            if _same(issue, other):
                other["sources"] += [s for s in issue["sources"] if s not in other["sources"]]
    return sorted(merged, key=lambda issue: issue["start"])


def _overlap(one: Issue, other: Issue) -> bool:
    # What is inserted between two words touches no word, but only one thing goes in one place.
    return (one["start"] < other["end"] and other["start"] < one["end"]) or (
        one["start"] == other["start"]
    )


def _same(one: Issue, other: Issue) -> bool:
    return (one["start"], one["end"], one["replacement"]) == (
        other["start"],
        other["end"],
        other["replacement"],
    )


def apply(text: str, issues: Iterable[Issue]) -> str:
    """`text` with each of `issues`, which do not overlap, put right."""
    for issue in sorted(issues, key=lambda issue: issue["start"], reverse=True):
        text = text[: issue["start"]] + issue["replacement"] + text[issue["end"] :]
    return text


def correction(
    message_id: str, text: str, issues: list[Issue], explanation: str = ""
) -> Correction | None:
    """The correction of a message, or None if nothing is wrong with it.

    Args:
        message_id: of the message.
        text: of it.
        issues: as `merge` returns them.
        explanation: for the learner; by default what the issues say.
    """
    corrected = apply(text, issues)
    if corrected == text:
        return None
    said = " ".join(dict.fromkeys(issue["message"] for issue in issues))
    return Correction(
        message_id=message_id,
        original=text,
        corrected=corrected,
        issues=issues,
        explanation=explanation or said,
    )
