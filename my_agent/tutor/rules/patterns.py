"""Patterns: rules that are a regular expression and its correction."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from my_agent.tutor.corrections import Issue, IssueType
from my_agent.tutor.rules.sentences import Sentence, make

Remedy = str | Callable[[re.Match[str]], str | None]


@dataclass(frozen=True)
class Pattern:
    """A mistake that stands in the group `wrong` of a pattern.

    Attributes:
        type: type of the issue.
        pattern: searched in each sentence.
        remedy: what replaces the group, or a function that returns it; None: no mistake.
        message: explains the mistake to the learner.
    """

    type: IssueType
    pattern: re.Pattern[str]
    remedy: Remedy
    message: str


def pattern(kind: IssueType, expression: str, remedy: Remedy, message: str) -> Pattern:
    """Return a pattern. `[[...]]` in its expression is the wrong part."""
    expression = expression.replace("[[", "(?P<wrong>").replace("]]", ")")
    return Pattern(kind, re.compile(expression, re.IGNORECASE), remedy, message)


def found(sentence: Sentence, patterns: tuple[Pattern, ...]) -> Iterator[Issue]:
    """Yield the issues of all patterns in a sentence."""
    for each in patterns:
        for match in each.pattern.finditer(sentence.text):
            remedy = each.remedy if isinstance(each.remedy, str) else each.remedy(match)
            start, end = match.span("wrong")
            if remedy is None or remedy == match["wrong"]:
                continue
            yield make(
                sentence.message,
                each.type,
                sentence.start + start,
                sentence.start + end,
                remedy,
                each.message,
            )
