"""Answers in words, which stream to the user: bounded in time, and never empty."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig

from my_agent import breaker
from my_agent.failures import ModelCallError

Ending = Literal["late", "refused", "filtered", "cut", "empty"]
"""Why an answer is not whole: it did not end in time, the model refused, a content filter stopped
it, it ended at its maximum length, or it has no text."""

_WHY: Mapping[Ending, str] = {
    "refused": "The model refused to answer.",
    "filtered": "A content filter stopped the model's answer.",
    "cut": "The model used its maximum length without an answer.",
    "empty": "The model gave an empty answer.",
}


def ending(answer: AIMessage) -> Ending | None:
    """Return why an answer is not whole; None if it is."""
    reason = answer.response_metadata.get("finish_reason")
    has_text = bool(str(answer.text).strip())
    if reason == "content_filter":
        return "filtered"
    if answer.additional_kwargs.get("refusal") and not has_text:
        return "refused"
    if reason in ("length", "max_tokens"):
        return "cut"
    return None if has_text else "empty"


async def answer(
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    *,
    config: RunnableConfig,
    seconds: float,
    errors: Mapping[Ending, Callable[[], Exception]] | None = None,
    tags: Sequence[str] = (),
    **options: Any,
) -> AIMessage:
    """Return a model's answer in words. An answer without text that refuses has the refusal as text.

    Outcomes count for the breaker of structured calls, but no breaker stops this one: who waits for
    an answer wants an attempt.

    Args:
        model: the model.
        messages: the messages, which fit into the model's window.
        config: config of the run; its tenant is the caller.
        seconds: maximum time of the whole answer.
        errors: what to raise for an ending, also of an answer that has some text. Without an entry,
            only a late answer and one without text are errors.
        tags: tags of the call.
        options: options of the model.

    Raises:
        ModelCallError: the model failed, or what `errors` has no entry for.
        Exception: an error of `errors`.
    """
    key, errors = breaker.key_of(model, config), errors or {}
    try:
        async with asyncio.timeout(seconds):
            said = await model.ainvoke(
                list(messages), {"tags": list(tags)} if tags else None, **options
            )
    except TimeoutError as error:
        breaker.shared.failed(key)
        if "late" in errors:
            raise errors["late"]() from error
        raise ModelCallError(
            f"The model did not finish its answer within {seconds:g} seconds. Send the message again.",
            kind="late",
        ) from error
    except ModelCallError as error:
        (breaker.shared.failed if error.is_outage else breaker.shared.succeeded)(key)
        raise
    breaker.shared.succeeded(key)
    return _checked(said, errors)


def _checked(said: AIMessage, errors: Mapping[Ending, Callable[[], Exception]]) -> AIMessage:
    why = ending(said)
    if why is not None and why in errors:
        raise errors[why]()
    if str(said.text).strip():
        return said
    if refusal := said.additional_kwargs.get("refusal"):
        # The model's own words say why.
        return said.model_copy(update={"content": str(refusal)})
    if "empty" in errors:
        raise errors["empty"]()
    raise ModelCallError(f"{_WHY[why or 'empty']} Send the message again, or another one.")
