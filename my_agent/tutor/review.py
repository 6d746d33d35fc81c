"""Review: ask a model for the mistakes in a message, and validate its answer."""

import logging
import re

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langgraph.constants import TAG_NOSTREAM
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from my_agent.tutor import prompts
from my_agent.tutor.corrections import Issue, IssueType

logger = logging.getLogger(__name__)

ATTEMPTS = 2


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
    """The model's answer is not a valid review of the message."""


FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "review", "strict": True, "schema": Review.model_json_schema()},
}


async def review(
    model: BaseChatModel, text: str, *, before: str = ""
) -> tuple[list[Issue], str] | None:
    """Ask a model for the issues in a message and a short explanation.

    Return None if the endpoint fails, or if its answer is invalid `ATTEMPTS` times. Both are
    logged.

    Args:
        model: the model of an endpoint.
        text: text of the message.
        before: the preceding answer, for context.
    """
    # Imported late: the endpoint's client takes half a second to import.
    from my_agent.endpoint import ModelCallError

    asked: list[BaseMessage] = [SystemMessage(prompts.REVIEW)]
    if before:
        asked.append(AIMessage(before))
    asked.append(HumanMessage(text))
    for attempt in range(1, ATTEMPTS + 1):
        try:
            # The review's tokens must not be streamed as part of the conversation.
            answer = await model.ainvoke(
                asked, config={"tags": [TAG_NOSTREAM]}, response_format=FORMAT
            )
            return read(answer.text, text)
        except ModelCallError as error:
            # Without the message: an endpoint may quote what the learner wrote.
            logger.warning("Model review failed; used Harper alone: %s", type(error).__name__)
            return None
        except InvalidReviewError as error:
            logger.warning(
                "Model review was invalid (attempt %s of %s): %s", attempt, ATTEMPTS, error
            )
    logger.warning("Model review gave up; used Harper alone")
    return None


def read(answer: str, text: str) -> tuple[list[Issue], str]:
    """Parse the model's answer.

    Raises:
        InvalidReviewError: the answer does not match the schema, or quotes words that `text` lacks.
    """
    try:
        found = Review.model_validate_json(answer)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        raise InvalidReviewError("; ".join(f"{e['loc']}: {e['msg']}" for e in problems)) from error
    issues: list[Issue] = []
    for finding in found.issues:
        if finding.replacement != finding.text:
            issues.append(_issue(finding, text, after=issues[-1]["end"] if issues else 0))
    return issues, found.explanation.strip()


def _issue(finding: Finding, text: str, *, after: int) -> Issue:
    start = _find(finding.text, text, after)
    if start is None:
        raise InvalidReviewError("it quotes words that the message does not contain")
    return Issue(
        type=finding.type,
        start=start,
        end=start + len(finding.text),
        original=finding.text,
        replacement=finding.replacement,
        message=finding.message,
        sources=["model"],
    )


def _find(words: str, text: str, after: int) -> int | None:
    """Find the position of `words`: whole words first, after the previous finding first."""
    whole = rf"(?<!\w){re.escape(words)}(?!\w)"
    for pattern in (whole, re.escape(words)):
        for start in (after, 0):
            if (found := re.compile(pattern).search(text, start)) is not None:
                return found.start()
    return None
