"""A chat model for OpenAI-compatible endpoints: failures fail the run, with a readable cause."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import openai
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI

from my_agent.failures import ModelCallError

__all__ = ["EndpointChatModel", "IncompleteAnswerError", "ModelCallError", "explain", "explained"]

# Characters of the endpoint's own error message that are passed on.
REASON_LENGTH = 500


class IncompleteAnswerError(ModelCallError):
    """The model's answer broke off: the stream ended without a finish reason. Try again."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def reason(error: openai.APIStatusError) -> str:
    """Return the endpoint's own error message, cut to `REASON_LENGTH` characters."""
    words = error.body.get("message") if isinstance(error.body, dict) else None
    return str(words or error.message)[:REASON_LENGTH]


def explain(error: Exception) -> str:
    """Return the error message for the client of the graph.

    The endpoint's own words are included only if they are about the request. Others may name the
    key, the organisation or the address behind the endpoint; those are in the log, with the cause.
    """
    match error:
        case openai.APITimeoutError() | TimeoutError():
            return "The model did not answer in time."
        case openai.APIConnectionError():
            return "The model could not be reached, or its connection broke."
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            return f"The model's endpoint does not accept the configured key ({error.status_code})."
        case openai.RateLimitError():
            return "The model is over its rate limit or quota (429). Try again later."
        case openai.APIStatusError() if error.status_code < 500:
            return f"The model refused the request ({error.status_code}): {reason(error)}"
        case openai.APIStatusError():
            return f"The model's endpoint failed ({error.status_code}). Try again later."
        case _:
            return "The model's endpoint failed in the middle of its answer. Try again later."


@contextmanager
def explained() -> Iterator[None]:
    """Turn the client's exceptions into `ModelCallError`."""
    try:
        yield
    except (openai.APIError, TimeoutError) as error:
        raise ModelCallError(explain(error)) from error


def is_last(chunk: ChatGenerationChunk) -> bool:
    """Return whether this chunk carries the reason why the answer ended."""
    # Chat completions report `finish_reason`, responses report `status`.
    fields = {**(chunk.generation_info or {}), **chunk.message.response_metadata}
    return bool(fields.get("finish_reason") or fields.get("status"))


class EndpointChatModel(ChatOpenAI):
    """`ChatOpenAI` that raises `ModelCallError`, also for an answer that breaks off.

    A proxy that gives up halfway may close the stream properly; `ChatOpenAI` would not notice.
    """

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        with explained():
            return super()._generate(messages, *args, **kwargs)

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        with explained():
            return await super()._agenerate(messages, *args, **kwargs)

    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        finished = False
        with explained():
            for chunk in super()._stream(*args, **kwargs):
                finished = finished or is_last(chunk)
                yield chunk
        if not finished:
            raise IncompleteAnswerError

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        finished = False
        with explained():
            async for chunk in super()._astream(*args, **kwargs):
                finished = finished or is_last(chunk)
                yield chunk
        if not finished:
            raise IncompleteAnswerError
