"""Review: ask a model for the mistakes in a message, and keep what is valid in its answer."""

import json
import logging
import re
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
)
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from my_agent import token_budget
from my_agent.asking import Failed, Kind, structured
from my_agent.tutor import prompts
from my_agent.tutor.corrections import Issue, IssueType

logger = logging.getLogger(__name__)

# Issues of one message that are read.
MOST_ISSUES = 100
# Characters of an answer that are read.
LONGEST = 100_000

Problem = Literal["timeout", "unreachable", "refused", "length", "invalid", "busy"]
"""Why a check is incomplete: the model did not answer in time, its endpoint failed, it refused, its
answer was cut, its answer was no review, or the local checks had no turn in time."""

_TYPES: frozenset[str] = frozenset(get_args(IssueType))
# Names that models use for our types. A word of an unknown name decides, in this order.
_NAMES: tuple[tuple[str, IssueType], ...] = (
    ("agreement", "agreement"),
    ("concord", "agreement"),
    ("tense", "tense"),
    ("gerund", "verb_form"),
    ("infinitive", "verb_form"),
    ("participle", "verb_form"),
    ("modal", "verb_form"),
    ("verb", "verb_form"),
    ("article", "article"),
    ("determiner", "article"),
    ("preposition", "preposition"),
    ("capital", "capitalization"),
    ("case", "capitalization"),
    ("punct", "punctuation"),
    ("comma", "punctuation"),
    ("apostrophe", "punctuation"),
    ("duplicat", "repetition"),
    ("repeat", "repetition"),
    ("repet", "repetition"),
    ("spell", "spelling"),
    ("typo", "spelling"),
    ("orthograph", "spelling"),
    ("order", "word_order"),
    ("syntax", "word_order"),
    ("word", "word_choice"),
    ("vocab", "word_choice"),
    ("lexic", "word_choice"),
    ("colloc", "word_choice"),
    ("false_friend", "word_choice"),
    ("style", "word_choice"),
)


class Finding(BaseModel):
    """One mistake, as the model reports it."""

    model_config = ConfigDict(extra="forbid")

    type: IssueType
    text: str = Field(description="The wrong words, exactly as in the message")
    replacement: str = Field(description="What should stand in their place")
    message: str = Field(description="What is wrong, in one sentence")

    # Checked here and not in the schema: strict endpoints reject schemas with length limits.
    @field_validator("text", "message")
    @classmethod
    def _is_not_empty(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("must not be empty")
        return text


class Review(BaseModel):
    """The model's whole answer about a message."""

    model_config = ConfigDict(extra="forbid")

    issues: list[Finding]
    explanation: str = Field(description="What to learn from the mistakes")


class InvalidReviewError(ValueError):
    """The model's answer contains no review of the message."""


@dataclass(frozen=True)
class Reviewed:
    """What a model said about a message.

    Attributes:
        issues: the valid ones, in the order of the answer.
        explanation: for the learner.
        problem: why the review is incomplete; None if it is complete.
        answered: whether the model gave a review at all. Without one, `issues` is empty, which
            does not mean that the message is right.
    """

    issues: list[Issue] = field(default_factory=list)
    explanation: str = ""
    problem: Problem | None = None
    answered: bool = True


_PROBLEMS: dict[Kind, Problem] = {
    "late": "timeout",
    "unreachable": "unreachable",
    "overloaded": "unreachable",
    "paused": "unreachable",
    "refused": "refused",
    "filtered": "refused",
    "cut": "length",
    "unusable": "invalid",
}


async def review(
    model: str | None,
    text: str,
    *,
    config: RunnableConfig,
    trusted: bool = False,
    before: str = "",
    findings: list[Issue] | None = None,
    seconds: float = 30.0,
    tokens: int = token_budget.MOST,
) -> Reviewed:
    """Ask a model for the issues in a message and a short explanation.

    A failure is logged, and is the `problem` of the result.

    Args:
        model: name of the model; None: the configured one.
        text: text of the message.
        config: config of the run.
        trusted: whether the name is from the settings, and need not be allowed.
        before: the preceding answer, for context.
        findings: what the checks without a model found, for the model to judge.
        seconds: the time for all attempts.
        tokens: budget of a call. What does not fit is left out: the answer before, then findings. A
            message that alone is too long is not reviewed.

    Raises:
        ModelNotAllowedError: the settings do not allow the model.
    """
    asked = _asked(text, before, findings or [], tokens)
    if asked is None:
        logger.warning("The message is too long for the model; used the local checks")
        return Reviewed(problem="length", answered=False)
    found = await structured(
        Review,
        asked,
        model=model,
        config=config,
        seconds=seconds,
        read=lambda answer, cut: read(answer, text, cut=cut),
        trusted=trusted,
    )
    if isinstance(found, Failed):
        logger.warning("Model review failed (%s); used the local checks", found.kind)
        return Reviewed(problem=_PROBLEMS[found.kind], answered=False)
    if found is None:
        logger.warning("No model is configured any more; used the local checks")
        return Reviewed(problem="unreachable", answered=False)
    return found.value


def _asked(text: str, before: str, findings: list[Issue], tokens: int) -> list[BaseMessage] | None:
    """Return the messages of a review that fit into a budget; None: not even the text does.

    A message that is cut would be corrected wrongly, so nothing is cut.
    """
    some = len(findings)
    for answer, offered in ((before, some), ("", some), ("", some // 4), ("", 0)):
        asked: list[AnyMessage] = [SystemMessage(prompts.REVIEW)]
        if answer:
            asked.append(AIMessage(answer))
        asked.append(HumanMessage(question(text, findings[:offered])))
        if sum(map(token_budget.size, asked)) <= tokens:
            return list(asked)
    return None


def question(text: str, findings: list[Issue]) -> str:
    """Return what the model is asked. JSON keeps the learner's words apart from our own."""
    named = [
        {"text": each["original"], "replacement": each["replacement"], "message": each["message"]}
        for each in findings[:MOST_ISSUES]
    ]
    return json.dumps({"message": text, "findings": named}, ensure_ascii=False)


def read(answer: str, text: str, *, cut: bool = False) -> Reviewed:
    """Read the model's answer. Issues that are not valid are dropped one by one.

    Args:
        answer: the answer: JSON, maybe among other words.
        text: the message.
        cut: whether the answer broke off at its maximum length.

    Raises:
        InvalidReviewError: the answer contains no review, or all its issues are invalid.
    """
    found, complete = _parse(answer[:LONGEST])
    issues: list[Issue] = []
    dropped = 0
    for raw in found["issues"][:MOST_ISSUES]:
        issue = _issue(raw, text, after=issues[-1]["end"] if issues else 0)
        if issue is None:
            dropped += 1
        elif issue["replacement"] != issue["original"]:
            issues.append(issue)
    if dropped:
        logger.warning("Dropped %s of %s issues of a model review", dropped, len(found["issues"]))
        if not issues:
            raise InvalidReviewError("none of its issues is valid")
    explanation = found["explanation"]
    problem: Problem | None = "length" if cut or not complete else "invalid" if dropped else None
    return Reviewed(
        issues, explanation.strip() if isinstance(explanation, str) else "", problem=problem
    )


def _parse(answer: str) -> tuple[dict[str, Any], bool]:
    """Return the issues and the explanation, and whether the JSON was complete."""
    # Thoughts come first, and may contain JSON too.
    answer = answer.rpartition("</think>")[2]
    decoder = json.JSONDecoder()
    for start in (each.start() for each in re.finditer(r"[\[{]", answer)):
        try:
            found, _ = decoder.raw_decode(answer, start)
        except (ValueError, RecursionError):
            break
        if isinstance(found, list) and all(isinstance(each, dict) for each in found):
            found = {"issues": found}
        if isinstance(found, dict) and isinstance(found.get("issues"), list):
            return {"issues": found["issues"], "explanation": found.get("explanation", "")}, True
    return {"issues": _beginning(answer, decoder), "explanation": ""}, False


def _beginning(answer: str, decoder: json.JSONDecoder) -> list[Any]:
    """Return the complete issues of an answer that broke off.

    Raises:
        InvalidReviewError: there is none.
    """
    start = re.search(r'"issues"\s*:\s*\[', answer)
    place = start.end() if start else len(answer)
    found: list[Any] = []
    while (brace := answer.find("{", place)) >= 0 and len(found) < MOST_ISSUES:
        try:
            issue, place = decoder.raw_decode(answer, brace)
        except (ValueError, RecursionError):
            break
        found.append(issue)
    if not found:
        raise InvalidReviewError("it contains no JSON with issues")
    return found


def _issue(raw: Any, text: str, *, after: int) -> Issue | None:
    """Return a valid issue, or None."""
    if not isinstance(raw, dict):
        return None
    known = {name: raw[name] for name in Finding.model_fields if name in raw}
    try:
        finding = Finding.model_validate({**known, "type": type_of(raw.get("type"))})
    except ValidationError:
        return None
    start = _find(finding.text, text, after)
    if start is None:
        return None
    return Issue(
        type=finding.type,
        start=start,
        end=start + len(finding.text),
        original=finding.text,
        replacement=finding.replacement,
        message=finding.message,
        sources=["model"],
    )


def type_of(name: Any) -> IssueType:
    """Return our type for a model's name of one; `grammar` for unknown names."""
    plain = re.sub(r"[\s-]+", "_", str(name).strip().lower())
    if plain in _TYPES:
        return plain  # type: ignore[return-value]
    return next((kind for word, kind in _NAMES if word in plain), "grammar")


def _find(words: str, text: str, after: int) -> int | None:
    """Find the position of `words`: whole words first, after the previous finding first."""
    whole = rf"(?<!\w){re.escape(words)}(?!\w)"
    for pattern in (whole, re.escape(words)):
        for start in (after, 0):
            if (found := re.compile(pattern).search(text, start)) is not None:
                return found.start()
    return None
