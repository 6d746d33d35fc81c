"""Review: the mistakes that a model finds in a message, taken only in the form asked for."""

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
    """One mistake, as the model names it."""

    model_config = ConfigDict(extra="forbid")

    type: IssueType
    text: str = Field(description="The wrong words, exactly as in the message")
    replacement: str = Field(description="What should stand in their place")
    message: str = Field(description="What is wrong, in one sentence")

    # Not in the schema, which strict endpoints accept without lengths only.
    @field_validator("text", "message")
    @classmethod
    def _says_something(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("must not be empty")
        return text


class Review(BaseModel):
    """All that the model finds in a message."""

    model_config = ConfigDict(extra="forbid")

    issues: list[Finding]
    explanation: str = Field(description="What to learn from the mistakes")


class InvalidReviewError(ValueError):
    """What the model answered is no review of the message."""


FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "review", "strict": True, "schema": Review.model_json_schema()},
}


async def review(
    model: BaseChatModel, text: str, *, before: str = ""
) -> tuple[list[Issue], str] | None:
    """The issues that a model finds in a message, and what to learn from them.

    None if it cannot be asked or twice answers something else; the log says so.

    Args:
        model: an endpoint's.
        text: of the message.
        before: what the learner was told last, so that the model knows what is talked about.
    """
    # Here and not above: it brings the endpoint's client, which takes half a second to import.
    from my_agent.endpoint import ModelCallError

    asked: list[BaseMessage] = [SystemMessage(prompts.REVIEW)]
    if before:
        asked.append(AIMessage(before))
    asked.append(HumanMessage(text))
    for attempt in range(1, ATTEMPTS + 1):
        try:
            # Its tokens are no part of the conversation.
            answer = await model.ainvoke(
                asked, config={"tags": [TAG_NOSTREAM]}, response_format=FORMAT
            )
            return read(answer.text, text)
        except ModelCallError as error:
            logger.warning("No review by the model, Harper goes on alone: %s", error)
            return None
        except InvalidReviewError as error:
            logger.warning("Review %s of %s is invalid: %s", attempt, ATTEMPTS, error)
    logger.warning("No valid review by the model, Harper goes on alone")
    return None


def read(answer: str, text: str) -> tuple[list[Issue], str]:
    """The review in a model's answer.

    Raises:
        InvalidReviewError: it has another shape, or names words that are not in `text`.
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
        raise InvalidReviewError("it names words that the message does not have")
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
    """Where `words` are: after what was found before if they can be, and whole if they can be."""
    whole = rf"(?<!\w){re.escape(words)}(?!\w)"
    for pattern in (whole, re.escape(words)):
        for start in (after, 0):
            if (found := re.compile(pattern).search(text, start)) is not None:
                return found.start()
    return None
