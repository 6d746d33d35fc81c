"""Rewriting: complete a follow-up question by a model, or by word lists if the model fails."""

import asyncio
import logging
import re
from collections.abc import Sequence
from functools import partial

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.constants import TAG_NOSTREAM

from my_agent import answering, token_budget
from my_agent.answering import Ending
from my_agent.chat import prompts
from my_agent.chat.reference import resolve
from my_agent.chat.settings import ChatSettings
from my_agent.chat.small_talk import is_small_talk
from my_agent.models import ModelSettings, chat_model

logger = logging.getLogger(__name__)

# Tokens of the reply. Models that reason need some for that.
MOST_TOKENS = 1_000
# Characters that a completed question may have more than the question itself.
LONGER = 300
# Models that accept no other temperature than their own.
_FIXED_TEMPERATURE = re.compile(r"(?:.*/)?(?:o\d|gpt-5)", re.IGNORECASE)
# Replies that are no question.
_UNUSABLE: tuple[Ending, ...] = ("refused", "filtered", "cut", "empty")

_THOUGHT = re.compile(r"<(/?)(think|thinking|reasoning)>", re.IGNORECASE)
_PREFIX = re.compile(
    r"(?:(?:the |a )?(?:(?:rewritten|standalone|complete[d]?|final|last) )*+(?:question|query)"
    r"|(?:a )?(?:pergunta|consulta)(?: (?:reescrita|completa|final))*+)(?: is)? ?[:\uff1a] ?",
    re.IGNORECASE,
)
_QUOTES = {'"': '"', "'": "'", "“": "”", "\u2018": "\u2019", "«": "»", "`": "`", "*": "*"}


class Unusable(Exception):
    """Raised when a model's reply is no question. The message is the reason."""


async def completed(asked: str, earlier: Sequence[AnyMessage], config: RunnableConfig) -> str:
    """Return the question with the names and topics that it takes from earlier messages.

    Without a model, or if it fails, is late or replies something else, `resolve` fills in the
    references from the earlier questions.
    """
    settings = ChatSettings.from_environment()
    endpoint = ModelSettings.from_environment()
    if settings.rewrite and endpoint.is_configured:
        name = settings.rewrite_model or endpoint.model
        try:
            return await _by_model(name, asked, earlier, config, settings.rewrite_seconds)
        except Unusable as reason:
            logger.warning("Question rewrite was unusable (%s); used word lists", reason)
        except Exception:
            # Any failure is acceptable here: the word lists need no model.
            logger.warning("Question rewrite failed; used word lists", exc_info=True)
    said = [str(each.text) for each in earlier if isinstance(each, HumanMessage)]
    return resolve(asked, [each for each in said if not is_small_talk(each)])


def clean(reply: str, asked: str) -> str:
    """Return the question in a model's reply, without thoughts, quotes and prefixes.

    Raises:
        Unusable: the reply is empty, much longer than the question, or an unfinished thought.
    """
    text = " ".join(_without_thoughts(reply).replace("```", " ").split())
    before = None
    while text != before:
        before = text
        text = text[found.end() :] if (found := _PREFIX.match(text)) else text
        while len(text) > 1 and _QUOTES.get(text[0]) == text[-1]:
            text = text[1:-1].strip()
    if not text:
        raise Unusable("empty")
    if len(text) > len(asked) + LONGER:
        raise Unusable(f"{len(text)} characters")
    return text


def _without_thoughts(reply: str) -> str:
    """Return a reply without what stands between `<think>` and `</think>`."""
    parts, last, thought = list[str](), 0, ""
    for tag in _THOUGHT.finditer(reply):
        closes, name = bool(tag[1]), tag[2].lower()
        if not thought:
            if closes:
                raise Unusable("an unfinished thought")
            parts.append(reply[last : tag.start()])
            thought = name
        elif closes and name == thought:
            thought, last = "", tag.end()
    if thought:
        raise Unusable("an unfinished thought")
    return " ".join([*parts, reply[last:]])


async def _by_model(
    name: str, asked: str, earlier: Sequence[AnyMessage], config: RunnableConfig, seconds: float
) -> str:
    endpoint = ModelSettings.from_environment()
    # One attempt: a second one would make the user wait, and the word lists are at hand.
    once = endpoint.model_copy(update={"model": name, "max_retries": 0})
    model: BaseChatModel = await asyncio.to_thread(chat_model, settings=once)
    fixed = _FIXED_TEMPERATURE.match(name)
    options = {} if fixed else {"temperature": 0, "max_tokens": MOST_TOKENS}
    messages = prompts.rewriting(earlier, asked)
    messages = token_budget.fit(messages, token_budget.budget(name, endpoint.context_tokens))
    answer = await answering.answer(
        model,
        messages,
        config=config,
        seconds=seconds,
        errors={why: partial(Unusable, why) for why in _UNUSABLE},
        # Without this tag the rewrite would be streamed to the client as if it were the answer.
        tags=[TAG_NOSTREAM],
        **options,
    )
    return clean(str(answer.text), asked)
