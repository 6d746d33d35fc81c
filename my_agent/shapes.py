"""Shapes: what a model is told about the JSON that it shall write, and how its answer is read."""

import json
from collections.abc import Iterator
from typing import TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, ValidationError

S = TypeVar("S", bound=BaseModel)

# Characters of a problem, and of a wrong answer, that a model reads again.
PROBLEM_LENGTH = 500
QUOTED_LENGTH = 2_000
# Characters of an answer that are read, and places in it where its JSON may begin.
LONGEST = 200_000
STARTS = 50

_DECODER = json.JSONDecoder()


class WrongShapeError(ValueError):
    """An answer has no JSON that fits. The message says what does not."""


def told(schema: type[BaseModel]) -> str:
    """Return the request for JSON of a schema, in words."""
    described = json.dumps(schema.model_json_schema(), ensure_ascii=False)
    return f"Answer with nothing but JSON that fits this JSON Schema:\n{described}"


def in_words(messages: list[BaseMessage], schema: type[BaseModel]) -> list[BaseMessage]:
    """Return messages that ask for JSON of a schema in words, for endpoints without formats."""
    match messages:
        case [SystemMessage(), *rest]:
            return [SystemMessage(f"{messages[0].text}\n\n{told(schema)}"), *rest]
        case _:
            return [SystemMessage(told(schema)), *messages]


def again(answer: str, problem: Exception, schema: type[BaseModel]) -> list[BaseMessage]:
    """Return the messages that ask a model to repair a wrong answer."""
    quoted: list[BaseMessage] = [AIMessage(answer[:QUOTED_LENGTH])] if answer.strip() else []
    wish = f"This answer does not fit: {explained(problem)}\n{told(schema)}"
    return [*quoted, HumanMessage(wish)]


def explained(problem: Exception) -> str:
    """Return what is wrong with an answer, in at most `PROBLEM_LENGTH` characters."""
    if isinstance(problem, ValidationError):
        errors = problem.errors(include_url=False, include_context=False, include_input=False)
        words = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in errors)
    else:
        words = str(problem)
    return words[:PROBLEM_LENGTH]


def said(answer: AIMessage) -> str:
    """Return what a model has answered: its text, or the arguments of a tool that it calls."""
    if answer.tool_calls:
        return json.dumps(answer.tool_calls[0]["args"], ensure_ascii=False)
    if answer.invalid_tool_calls:
        return answer.invalid_tool_calls[0]["args"] or ""
    return str(answer.text)


def read(schema: type[S], answer: str) -> S:
    """Return the value in an answer: JSON, maybe fenced, among other words or after thoughts.

    Raises:
        WrongShapeError: there is no JSON.
        pydantic.ValidationError: the first JSON object does not fit, and no later one does.
    """
    # Thoughts come first, and may contain JSON too. Their beginning may stand in the prompt.
    text = answer[:LONGEST].rpartition("</think>")[2]
    problem: ValueError = WrongShapeError("it contains no JSON")
    for number, candidate in enumerate(_candidates(text)):
        try:
            return schema.model_validate_json(candidate)
        except ValidationError as error:
            problem = error if number == 0 else problem
    raise problem


def _candidates(text: str) -> Iterator[str]:
    """Yield the parts of a text that are JSON; objects before lists."""
    texts = [*text.split("```")[1::2], text]
    for opening in "{[":
        for each in texts:
            place = 0
            for _ in range(STARTS):
                if (start := each.find(opening, place)) < 0:
                    break
                try:
                    _, place = _DECODER.raw_decode(each, start)
                except (ValueError, RecursionError):
                    place = start + 1
                    continue
                yield each[start:place]
