"""Corrections: the mistakes in a message, their sources, and the corrected text."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, NotRequired

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
    "verb_form",
    "word_choice",
    "word_order",
]
Source = Literal["harper", "model", "rules"]


@with_config(ConfigDict(extra="forbid"))
class Issue(TypedDict):
    """One mistake. `start` and `end` are character offsets in the message."""

    type: IssueType
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]
    original: str
    replacement: str
    message: str
    sources: list[Source]


@with_config(ConfigDict(extra="forbid"))
class Correction(TypedDict):
    """All mistakes in one message."""

    message_id: Annotated[str, Field(min_length=1)]
    original: str
    corrected: str
    issues: Annotated[list[Issue], Field(min_length=1)]
    explanation: str
    # Corrections that an earlier version stored have neither.
    checked_by: NotRequired[list[Source]]
    degraded: NotRequired[str | None]


class Check(TypedDict):
    """How a message was checked. It is in the message's `additional_kwargs["check"]`.

    `degraded` is why the check is incomplete, or None. A message without issues whose check is
    degraded may have mistakes.
    """

    checked_by: list[Source]
    degraded: str | None
    issues: int


_CORRECTIONS = TypeAdapter(list[Correction])


def keep(kept: list[Correction], new: list[Correction]) -> list[Correction]:
    """Merge corrections: add `new` to `kept`. A new correction replaces the one of the same
    message.

    Raises:
        ValueError: an item of `new` is not a valid correction.
    """
    by_message = {each["message_id"]: each for each in kept}
    by_message |= {each["message_id"]: each for each in _CORRECTIONS.validate_python(new)}
    return list(by_message.values())


def merge(*found: Iterable[Issue]) -> list[Issue]:
    """Merge the issues of several checkers in text order, without overlaps.

    If issues overlap, the one of the earlier checker stays. If both are the same, it lists both
    sources.
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
    # Two insertions between the same words have no common character, but only one can be applied.
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
    """Return `text` with all `issues` corrected. The issues must not overlap."""
    for issue in sorted(issues, key=lambda issue: issue["start"], reverse=True):
        text = text[: issue["start"]] + issue["replacement"] + text[issue["end"] :]
    return text


def correction(
    message_id: str,
    text: str,
    issues: list[Issue],
    explanation: str = "",
    *,
    checked_by: Sequence[Source] = (),
    degraded: str | None = None,
) -> Correction | None:
    """Build the correction of a message, or return None if nothing is wrong with it.

    Args:
        message_id: id of the message.
        text: text of the message.
        issues: as `merge` returns them.
        explanation: for the learner; by default the messages of the issues.
        checked_by: the checkers that read the message.
        degraded: why the check is incomplete; None if it is complete.
    """
    corrected = apply(text, issues)
    if corrected == text:
        return None
    messages = " ".join(dict.fromkeys(issue["message"] for issue in issues))
    return Correction(
        message_id=message_id,
        original=text,
        corrected=corrected,
        issues=issues,
        explanation=explanation or messages,
        checked_by=list(checked_by),
        degraded=degraded,
    )
