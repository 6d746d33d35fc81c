"""A chat model for OpenAI-compatible endpoints: failures fail the run, with a readable cause."""

import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from typing import Any

import openai
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from my_agent.failures import ModelCallError

__all__ = [
    "EndpointChatModel",
    "IncompleteAnswerError",
    "ModelCallError",
    "NoCompletionError",
    "form",
]

# Characters of the endpoint's own error message that are passed on.
REASON_LENGTH = 500
# Seconds before a request is repeated that was one too many, if the endpoint does not say.
RETRY_SECONDS = 1.0
# Statuses with which a working endpoint rejects one request.
ABOUT_REQUEST = frozenset({400, 413, 422})
_FORMAT = re.compile(
    r"response.?format|schema|structured|requested parameters|grammar", re.IGNORECASE
)


class IncompleteAnswerError(ModelCallError):
    """The model's answer broke off: the stream ended without a finish reason. Try again."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


class NoCompletionError(ModelCallError):
    """The model's endpoint sent something that is no answer. Try again later."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def form(schema: type[BaseModel]) -> dict[str, Any]:
    """Return the `response_format` that asks for JSON of a schema."""
    function: Any = openai.pydantic_function_tool(schema)["function"]
    name = re.sub(r"\W", "_", schema.__name__).lower()
    described = {"name": name, "strict": True, "schema": function["parameters"]}
    return {"type": "json_schema", "json_schema": described}


def reason(error: openai.APIStatusError) -> str:
    """Return the endpoint's own error message, cut to `REASON_LENGTH` characters."""
    words = error.body.get("message") if isinstance(error.body, dict) else None
    return str(words or error.message)[:REASON_LENGTH]


def failure(error: Exception) -> ModelCallError:
    """Return the error for the client of the graph.

    The endpoint's own words are included only if they are about the request. Others may name the
    key, the organisation or the address behind the endpoint; those are in the log, with the cause.
    """
    match error:
        case openai.APITimeoutError() | TimeoutError():
            return ModelCallError("The model did not answer in time.", kind="late")
        case openai.APIConnectionError():
            return ModelCallError("The model could not be reached, or its connection broke.")
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            return ModelCallError(
                f"The model's endpoint does not accept the configured key ({error.status_code})."
            )
        case openai.RateLimitError():
            return ModelCallError(
                "The model is over its rate limit or quota (429). Try again later.",
                kind="overloaded",
                retry_after=retry_after(error),
            )
        case openai.APIStatusError() if error.status_code < 500:
            return ModelCallError(
                f"The model refused the request ({error.status_code}): {reason(error)}",
                kind="filtered" if error.code == "content_filter" else "unreachable",
                works=error.status_code in ABOUT_REQUEST,
                about_format=is_about_format(error),
            )
        case openai.APIStatusError():
            return ModelCallError(
                f"The model's endpoint failed ({error.status_code}). Try again later."
            )
        case openai.ContentFilterFinishReasonError():
            return ModelCallError(
                "A content filter stopped the model's answer.", kind="filtered", works=True
            )
        case openai.APIError() if not isinstance(error, openai.APIResponseValidationError):
            return ModelCallError(
                "The model's endpoint failed in the middle of its answer. Try again later."
            )
        case _:
            # A page of a proxy, or JSON that is no completion: the client's parsers meet it in as
            # many ways as there are.
            return NoCompletionError()


def retry_after(error: openai.RateLimitError) -> float | None:
    """Return the seconds to wait before a request is repeated; None: that is of no use."""
    if error.code == "insufficient_quota":
        return None
    headers = error.response.headers
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        said = headers.get(name, "")
        if re.fullmatch(r"\d+(\.\d+)?", said):
            return float(said) / unit
        with suppress(ValueError):
            return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    return RETRY_SECONDS


def is_about_format(error: openai.APIStatusError) -> bool:
    """Return whether an endpoint rejects a request for the form of the answer that it asks for."""
    if error.status_code not in (400, 404, 422):
        return False
    # Small servers reject an unknown field without a word.
    unexplained = error.status_code != 404 and not error.body
    return unexplained or _FORMAT.search(str(error)) is not None


@contextmanager
def explained() -> Iterator[None]:
    """Turn the client's exceptions into `ModelCallError`."""
    try:
        yield
    except ModelCallError:
        raise
    except Exception as error:
        raise failure(error) from error


def is_last(chunk: ChatGenerationChunk) -> bool:
    """Return whether this chunk carries the reason why the answer ended."""
    # Chat completions report `finish_reason`, responses report `status`.
    fields = {**(chunk.generation_info or {}), **chunk.message.response_metadata}
    return bool(fields.get("finish_reason") or fields.get("status"))


def whole(result: ChatResult) -> ChatResult:
    """Return the result of a call.

    Raises:
        NoCompletionError: it has no answer.
    """
    if not result.generations:
        raise NoCompletionError
    return result


class EndpointChatModel(ChatOpenAI):
    """`ChatOpenAI` that raises `ModelCallError`, also for an answer that breaks off.

    A proxy that gives up halfway may close the stream properly; `ChatOpenAI` would not notice.
    An answer that ends at its maximum length is an answer, whether it has a form or not.
    """

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        with explained():
            try:
                result = super()._generate(messages, *args, **kwargs)
            except openai.LengthFinishReasonError as error:
                result = self._create_chat_result(error.completion)
            return whole(result)

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        with explained():
            try:
                result = await super()._agenerate(messages, *args, **kwargs)
            except openai.LengthFinishReasonError as error:
                result = self._create_chat_result(error.completion)
            return whole(result)

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
