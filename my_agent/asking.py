"""Asking a model for a value: bounded in time, repaired once, and paused while the model is down.

Graphs ask only here and in `answering`; they know neither the client nor its errors.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar, overload

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel

from my_agent import breaker, shapes, waits
from my_agent.exchange import SAID, Asked, Exchange, Reader
from my_agent.failures import Failed, Kind
from my_agent.models import ModelSettings, chat_model, requested_model
from my_agent.offline import OfflineChatModel

__all__ = ["Asked", "Failed", "Kind", "structured"]

T = TypeVar("T")
S = TypeVar("S", bound=BaseModel)


@overload
async def structured(
    schema: type[S],
    messages: Sequence[BaseMessage],
    *,
    model: str | None,
    config: RunnableConfig,
    seconds: float | None = None,
    read: None = None,
    trusted: bool = False,
    once: bool = False,
    answer_tokens: int | None = None,
) -> Asked[S] | Failed | None: ...


@overload
async def structured(
    schema: type[BaseModel],
    messages: Sequence[BaseMessage],
    *,
    model: str | None,
    config: RunnableConfig,
    seconds: float | None = None,
    read: Reader[T],
    trusted: bool = False,
    once: bool = False,
    answer_tokens: int | None = None,
) -> Asked[T] | Failed | None: ...


async def structured(
    schema: type[BaseModel],
    messages: Sequence[BaseMessage],
    *,
    model: str | None,
    config: RunnableConfig,
    seconds: float | None = None,
    read: Reader[Any] | None = None,
    trusted: bool = False,
    once: bool = False,
    answer_tokens: int | None = None,
) -> Asked[Any] | Failed | None:
    """Return the value that a model answers with, or why there is none; None without a model.

    The answer does not stream: it is not part of the conversation.

    Args:
        schema: the form of the answer.
        messages: the messages, which fit into the model's window.
        model: name of the model; None: the configured one.
        config: config of the run. Its tenant has breakers of its own, and its run a budget of
            `OPENAI_TURN_SECONDS` for all its calls.
        seconds: maximum time of this call, all attempts together; None: what the run has left.
        read: reads an answer in place of the schema.
        trusted: whether the name is from the settings, and need not be allowed.
        once: whether to ask for one answer only, and also during a pause: for work that repeats and
            counts its calls itself.
        answer_tokens: maximum length of the answer.

    Raises:
        ModelNotAllowedError: the settings do not allow the model.
    """
    chosen = await asyncio.to_thread(_client, model, trusted)
    if isinstance(chosen, OfflineChatModel):
        return None
    if answer_tokens is not None:
        chosen = chosen.model_copy(update={"max_tokens": answer_tokens})
    settings = ModelSettings.from_environment()
    run = waits.run_of(config) if seconds is None else None
    left = waits.shared.left(run, settings.turn_seconds) if seconds is None else seconds
    key = breaker.key_of(chosen, config)
    pause = None if once else breaker.shared.enter(key)
    if pause is not None:
        return Failed("paused", SAID["paused"], first=pause.first)
    reader = read or (lambda answer, _: shapes.read(schema, answer))
    exchange = Exchange(chosen, schema, reader, settings.timeout, left)
    try:
        found = await exchange.held(list(messages), answers=1 if once else 2)
        if exchange.is_outage:
            breaker.shared.failed(key)
        elif exchange.is_sent:
            breaker.shared.succeeded(key)
    finally:
        breaker.shared.left(key)
        waits.shared.add(run, exchange.waited)
    over = seconds is not None and exchange.waited >= seconds
    if isinstance(found, Failed) and found.kind == "late" and over:
        return replace(found, said=f"The model did not answer within {seconds:g} seconds.")
    return found


def _client(name: str | None, trusted: bool) -> BaseChatModel:
    if not trusted:
        requested_model(name)
    # What the client repeats would be neither counted nor explained.
    settings = ModelSettings.from_environment().model_copy(update={"max_retries": 0})
    return chat_model(name, settings=settings).model_copy(update={"disable_streaming": True})
