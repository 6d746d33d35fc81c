"""Answers of the scripted OpenAI-compatible server, and their wire format."""

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

JSON = dict[str, Any]

# whole: finish reason, usage if requested, [DONE]. cut: the connection breaks. closed: the stream
# ends normally but without finish reason and [DONE]. error: the stream contains an error.
Ending = Literal["whole", "cut", "closed", "error"]


class Gate:
    """Holds back the tokens of a stream until the test releases them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._permits = asyncio.Semaphore(0)

    def open(self, tokens: int = 1) -> None:
        """Release this many more tokens. Callable from any thread."""
        for _ in range(tokens):
            self._loop.call_soon_threadsafe(self._permits.release)

    async def passed(self) -> None:
        await self._permits.acquire()


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    name: str
    arguments: JSON
    id: str = field(default_factory=lambda: f"call_{uuid4().hex[:24]}")

    def on_wire(self, arguments: str) -> JSON:
        return {
            "id": self.id,
            "type": "function",
            "function": {"name": self.name, "arguments": arguments},
        }


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A completion. Without streaming, its tokens come as one message.

    Attributes:
        tokens: the parts that a stream sends one by one.
        tool_calls: the model's tool calls, after the tokens.
        ending: how a stream ends after all tokens; without streaming, any other value than
            `whole` is a 500.
        delay: seconds before each token.
        gate: each token waits until this gate releases it.
        finish: the finish reason, if it is another one than the tokens have.
        refusal: why the model does not answer, in its own words; only without streaming.
    """

    tokens: Sequence[str] = ()
    tool_calls: Sequence[ToolCall] = ()
    ending: Ending = "whole"
    delay: float = 0.0
    gate: Gate | None = None
    finish: str | None = None
    refusal: str | None = None

    @property
    def finish_reason(self) -> str:
        if self.finish is not None:
            return self.finish
        return "tool_calls" if self.tool_calls else "stop"

    async def paced(self) -> None:
        if self.delay:
            await asyncio.sleep(self.delay)
        if self.gate is not None:
            await self.gate.passed()


@dataclass(frozen=True, kw_only=True)
class Failure:
    """An error in the format of the OpenAI API."""

    status: int
    message: str
    code: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def body(self) -> JSON:
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        error = {"message": self.message, "type": kind, "param": None, "code": self.code}
        return {"error": error}


@dataclass(frozen=True, kw_only=True)
class Page:
    """A response that is no completion, such as the page of a proxy."""

    body: str
    media_type: str = "text/html"


Reply = Answer | Failure | Page


def say(text: str, **options: Any) -> Answer:
    """Return an answer with one word a token. Options: those of `Answer`."""
    words = text.split(" ")
    return Answer(tokens=[*(f"{word} " for word in words[:-1]), words[-1]], **options)


def say_json(value: object, **options: Any) -> Answer:
    """Return an answer with structured output. Options: those of `Answer`."""
    text = json.dumps(value)
    middle = len(text) // 2
    return Answer(tokens=[text[:middle], text[middle:]], **options)


def call(name: str, **arguments: Any) -> Answer:
    """Return an answer with one tool call."""
    return Answer(tool_calls=[ToolCall(name=name, arguments=arguments)])


def rate_limited(retry_after_ms: int = 1) -> Failure:
    """Return a 429 with both headers for a retry: milliseconds, and seconds rounded up."""
    headers = {
        "retry-after-ms": str(retry_after_ms),
        "retry-after": str(-(-retry_after_ms // 1000)),
    }
    return Failure(
        status=429, message="Rate limit reached", code="rate_limit_exceeded", headers=headers
    )


def usage(answer: Answer, request: JSON) -> JSON:
    """Return the token usage: the words of the request, and the tokens of the answer."""
    prompt = sum(len(str(message.get("content")).split()) for message in request["messages"])
    completion = len(answer.tokens) + len(answer.tool_calls)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def completion(answer: Answer, request: JSON) -> JSON:
    """Return the body of an answer without streaming."""
    message: JSON = {"role": "assistant", "content": "".join(answer.tokens) or None}
    if answer.refusal is not None:
        message["refusal"] = answer.refusal
    if answer.tool_calls:
        message["tool_calls"] = [
            tool.on_wire(json.dumps(tool.arguments)) for tool in answer.tool_calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason}
    return {
        "id": f"chatcmpl-{uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request["model"],
        "choices": [{**choice, "logprobs": None}],
        "usage": usage(answer, request),
    }


def deltas(answer: Answer) -> Iterator[JSON]:
    """Yield the deltas of a stream after the delta with the role."""
    for token in answer.tokens:
        yield {"content": token}
    for index, tool in enumerate(answer.tool_calls):
        # The real API sends the tool's name first, then the arguments in parts.
        yield {"tool_calls": [{"index": index, **tool.on_wire("")}]}
        text = json.dumps(tool.arguments)
        middle = len(text) // 2
        for part in (text[:middle], text[middle:]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}
