"""What the scripted OpenAI-compatible server can answer, and how that looks on the wire."""

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

JSON = dict[str, Any]

# whole: finish reason, usage if asked for, [DONE]. cut: the connection breaks. closed: the
# stream ends in good order but says nothing of an end. error: an error arrives inside the stream.
Ending = Literal["whole", "cut", "closed", "error"]


class Gate:
    """Holds back the tokens of a stream until the test lets them through, one by one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._permits = asyncio.Semaphore(0)

    def open(self, tokens: int = 1) -> None:
        """Lets so many more tokens through. Callable from any thread."""
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
    """A completion; asked for without streaming, its tokens come as one message.

    Attributes:
        tokens: what a stream sends one by one.
        tool_calls: functions the model wants called, after its words.
        ending: how a stream ends, after all of its tokens; without streaming, anything but
            `whole` is a 500.
        delay: seconds before each token.
        gate: each token waits until it lets one through.
    """

    tokens: Sequence[str] = ()
    tool_calls: Sequence[ToolCall] = ()
    ending: Ending = "whole"
    delay: float = 0.0
    gate: Gate | None = None

    @property
    def finish_reason(self) -> str:
        return "tool_calls" if self.tool_calls else "stop"

    async def paced(self) -> None:
        if self.delay:
            await asyncio.sleep(self.delay)
        if self.gate is not None:
            await self.gate.passed()


@dataclass(frozen=True, kw_only=True)
class Failure:
    """An error in the shape the OpenAI API gives it."""

    status: int
    message: str
    code: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def body(self) -> JSON:
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        error = {"message": self.message, "type": kind, "param": None, "code": self.code}
        return {"error": error}


Reply = Answer | Failure


def say(text: str, **options: Any) -> Answer:
    """The text, a word a token. Options: those of `Answer`."""
    words = text.split(" ")
    return Answer(tokens=[*(f"{word} " for word in words[:-1]), words[-1]], **options)


def say_json(value: object, **options: Any) -> Answer:
    """What a model asked for structured output answers."""
    text = json.dumps(value)
    middle = len(text) // 2
    return Answer(tokens=[text[:middle], text[middle:]], **options)


def call(name: str, **arguments: Any) -> Answer:
    """The wish to have one tool called."""
    return Answer(tool_calls=[ToolCall(name=name, arguments=arguments)])


def rate_limited(retry_after_ms: int = 1) -> Failure:
    """429 with the two headers clients wait by (milliseconds; whole seconds, rounded up)."""
    headers = {
        "retry-after-ms": str(retry_after_ms),
        "retry-after": str(-(-retry_after_ms // 1000)),
    }
    return Failure(
        status=429, message="Rate limit reached", code="rate_limit_exceeded", headers=headers
    )


def usage(answer: Answer, request: JSON) -> JSON:
    """Words stand for tokens on the way in; on the way out each token is one."""
    prompt = sum(len(str(message.get("content")).split()) for message in request["messages"])
    completion = len(answer.tokens) + len(answer.tool_calls)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def completion(answer: Answer, request: JSON) -> JSON:
    """The body of an answer that is not streamed."""
    message: JSON = {"role": "assistant", "content": "".join(answer.tokens) or None}
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
    """The deltas of a stream after the one that names the role."""
    for token in answer.tokens:
        yield {"content": token}
    for index, tool in enumerate(answer.tool_calls):
        # The real API names the tool first and then dribbles the arguments.
        yield {"tool_calls": [{"index": index, **tool.on_wire("")}]}
        text = json.dumps(tool.arguments)
        middle = len(text) // 2
        for part in (text[:middle], text[middle:]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}
