"""Turn model: let the configured model read a message that the rules are not sure about.

The model is asked by a tool call, then for JSON, and once more with the error if its answer does not
fit. Without a usable answer the reading of the rules stays. A model never consents against the words
of the message, and what it calls a wish is confirmed before it is done.
"""

import asyncio
import json
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from my_agent.icp_finder import prompts
from my_agent.icp_finder.log import log_action
from my_agent.icp_finder.reading import answers, turns, vocabulary
from my_agent.icp_finder.reading.message_parser import NO_CONTENT, ParsedMessage, clean, has_content
from my_agent.icp_finder.reading.turns import Reading, Situation
from my_agent.icp_finder.sites import websites
from my_agent.models import requested_model
from my_agent.offline import OfflineChatModel

_QUESTIONS = (
    "show",
    "more",
    "explain",
    "profile",
    "status",
    "rejected",
    "help",
    "question",
    "other",
)
_FEEDBACK = ("reject", "keep", "like", "restore")
_TALK = ("greeting", "thanks", "bye", "chatter")
_TOPICS = {"question": _QUESTIONS, "feedback": _FEEDBACK, "talk": _TALK}
# Characters of a message that the model reads.
EXCERPT = 4000


class TurnReading(BaseModel):
    """What one message does."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["answer", "change", "question", "feedback", "talk", "unclear"]
    choice: str | None = Field(default=None, max_length=40)
    topic: str | None = Field(default=None, max_length=40)
    numbers: list[int] = Field(default_factory=list, max_length=50)
    name: str | None = Field(default=None, max_length=200)
    words: str | None = Field(default=None, max_length=500)
    industries: list[str] | None = Field(default=None, max_length=20)
    sizes: list[str] | None = Field(default=None, max_length=20)
    regions: list[str] | None = Field(default=None, max_length=20)
    keywords: list[str] | None = Field(default=None, max_length=40)
    own_website: str | None = Field(default=None, max_length=500)
    customer_websites: list[str] = Field(default_factory=list, max_length=20)
    wish: Literal["enrich", "rerun"] | None = None


class UnusableError(RuntimeError):
    """The model gave no usable answer. The cause is the reason."""


async def read(
    text: str, situation: Situation, by_rules: Reading, *, model: str | None, thread_id: str | None
) -> Reading:
    """Read a message by the configured model.

    Args:
        text: the message.
        situation: what it is read against.
        by_rules: the reading of the rules, which stays if no model is configured or usable.
        model: name of the model; None: the configured one.
        thread_id: the thread, for the log.

    Raises:
        ModelNotAllowedError: the settings do not allow the model.
    """
    chosen = await asyncio.to_thread(requested_model, model)
    if isinstance(chosen, OfflineChatModel) or not text.strip():
        return by_rules
    try:
        found = await _ask(chosen, text, situation)
    except UnusableError as error:
        problem = type(error.__cause__ or error).__name__
        log_action("model_fallback", thread_id, problem=problem, what="turn")
        return by_rules
    return _checked(found, text, situation, by_rules)


async def _ask(model: BaseChatModel, text: str, situation: Situation) -> TurnReading:
    """Ask by a tool call, then for JSON, then once more with the error."""
    from openai import BadRequestError

    from my_agent.endpoint import ModelCallError

    options = list(answers.OPTIONS[situation.asking]) if situation.asking else []
    about = prompts.turn_situation(situation.asking, options, situation.icp, situation.names)
    messages: list[BaseMessage] = [
        SystemMessage(prompts.TURN),
        HumanMessage(f"{about}\n\nThe message:\n{text[:EXCERPT]}"),
    ]
    problem: Exception
    # The tag keeps the answer out of the stream: it is not part of the conversation.
    silent: Any = {"tags": ["nostream"]}
    try:
        tool = model.bind_tools([TurnReading], tool_choice="TurnReading")
        said = await tool.ainvoke(messages, silent)
        return _parsed(said)
    except ModelCallError as error:
        if not isinstance(error.__cause__, BadRequestError):
            # Another request would fail in the same way.
            raise UnusableError(str(error)) from error
        problem = error
    except (ValueError, NotImplementedError) as error:
        problem = error
    schema = json.dumps(TurnReading.model_json_schema())
    asked = [*messages, HumanMessage(f"Answer only with JSON of this schema:\n{schema}")]
    if isinstance(problem, ValidationError):
        asked.append(HumanMessage(f"Your last answer did not fit: {_short(problem)}"))
    for _ in range(2):
        try:
            said = await model.ainvoke(asked, silent)
            return _parsed(said)
        except ModelCallError as error:
            raise UnusableError(str(error)) from error
        except ValueError as error:
            problem = error
            repair = f"That does not fit: {_short(error)}. Answer only with corrected JSON."
            asked = [*asked, AIMessage(str(said.text)[:EXCERPT]), HumanMessage(repair)]
    raise UnusableError("the model's answer does not fit the schema") from problem


def _parsed(said: Any) -> TurnReading:
    """Parse a tool call, or JSON in a text. Raises ValueError if there is neither."""
    calls = getattr(said, "tool_calls", None) or []
    if calls:
        return TurnReading.model_validate(calls[0]["args"])
    text = str(said.text)
    start, end = text.find("{"), text.rfind("}")
    if not 0 <= start < end:
        raise ValueError("there is no JSON in the answer")
    return TurnReading.model_validate_json(text[start : end + 1])


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:500]


def _checked(found: TurnReading, text: str, situation: Situation, by_rules: Reading) -> Reading:
    """Return the model's reading, or that of the rules if the model's is not safe or says nothing."""
    topics = _TOPICS.get(found.kind)
    topic: Any = found.topic if topics and found.topic in topics else ""
    if topics and not topic:
        return by_rules
    turn = turns.turn(
        found.kind,
        topic,
        numbers=[number for number in found.numbers if number > 0],
        name=found.name or "",
        words=found.words or "",
        by="model",
        # A model may have misread a wish, so the user is asked.
        sure=False,
    )
    if found.kind == "answer":
        return _answer(found, turn, text, situation, by_rules)
    if found.kind == "change":
        parsed = _data(found, text)
        return Reading(turn, parsed) if has_content(parsed) else by_rules
    if found.kind == "unclear":
        return by_rules
    return Reading(turn, {**NO_CONTENT, "text": text})


def _answer(
    found: TurnReading, turn: turns.Turn, text: str, situation: Situation, by_rules: Reading
) -> Reading:
    """Accept an option. A consent is accepted only if no word of the message limits it."""
    kind = situation.asking
    if kind is None or found.choice not in answers.OPTIONS[kind]:
        return by_rules
    plain = vocabulary.plain(text)
    is_limited = bool(
        "?" in plain
        or vocabulary.NEGATION.search(plain)
        or vocabulary.QUALIFIER.search(plain)
        or vocabulary.UNSURE.search(plain)
        or has_content(_data(found, text))
        or len(plain.split()) > answers.MAX_WORDS
    )
    if answers.is_consent(kind, found.choice) and is_limited:
        parsed = _data(found, text)
        is_change = has_content(parsed)
        return Reading({**turn, "kind": "change"}, parsed) if is_change else by_rules
    return Reading(turn, {**NO_CONTENT, "text": text}, choice=found.choice)


def _data(found: TurnReading, text: str) -> ParsedMessage:
    """Return the data of a reading. Websites count only if the message contains them."""
    given: dict[str, list[str] | None] = {
        "industries": found.industries,
        "sizes": found.sizes,
        "regions": found.regions,
        "keywords": found.keywords,
    }
    named = websites(text)
    own = next(iter(websites(found.own_website or "")), None)
    customers = [each for each in websites("\n".join(found.customer_websites)) if each in named]
    return {
        **NO_CONTENT,
        "website": own if own in named else None,
        "sites": customers,
        "customers": bool(customers),
        "icp": {name: clean(name, values) for name, values in given.items() if values is not None},
        "wish": found.wish,
        "text": text,
    }
