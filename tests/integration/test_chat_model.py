"""The chat graph through the real OpenAI client, over HTTP, to a scripted endpoint."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage

from my_agent.chat import graph, prompts
from my_agent.chat.context import Context
from my_agent.models import IncompleteAnswerError
from tests.support.openai_replies import Answer, Ending, Failure, Reply, rate_limited, say
from tests.support.openai_server import OpenAIServer

HELLO: Any = {"messages": [HumanMessage("hello")]}


async def ask(context: Context | None = None) -> AIMessage:
    state = await graph.ainvoke(HELLO, context=context)
    answer = state["messages"][-1]
    assert isinstance(answer, AIMessage)
    return answer


async def stream() -> AsyncGenerator[AIMessageChunk]:
    """The answer as it comes; who leaves early ends the run."""
    parts: Any = graph.astream(HELLO, stream_mode="messages")
    async with aclosing(parts):
        async for token, _ in parts:
            yield token


async def test_an_answer_with_its_usage(model_endpoint: OpenAIServer) -> None:
    model_endpoint.enqueue(say("Good morning to you"))
    answer = await ask()
    assert answer.text == "Good morning to you"
    assert answer.usage_metadata is not None
    assert answer.usage_metadata["output_tokens"] == 4
    [request] = model_endpoint.requests
    assert request.headers["authorization"] == "Bearer test-key"
    assert request.body["model"] == "gpt-4o-mini"
    assert request.body["messages"] == [
        {"role": "system", "content": prompts.SYSTEM},
        {"role": "user", "content": "hello"},
    ]


async def test_tokens_arrive_while_the_model_still_speaks(model_endpoint: OpenAIServer) -> None:
    gate = model_endpoint.gate()
    model_endpoint.enqueue(say("one two three", gate=gate))
    heard: list[str] = []
    gate.open()
    async for chunk in stream():
        if chunk.text:
            # The endpoint sends the next token only now: had anything collected them, this
            # would wait for ever.
            heard.append(chunk.text)
            gate.open()
    assert heard == ["one ", "two ", "three"]
    [request] = model_endpoint.requests
    assert request.body["stream"] is True
    assert request.body["stream_options"] == {"include_usage": True}


async def test_usage_comes_with_a_stream_too(model_endpoint: OpenAIServer) -> None:
    model_endpoint.enqueue(say("one two"))
    usages = [chunk.usage_metadata async for chunk in stream() if chunk.usage_metadata]
    assert [usage["output_tokens"] for usage in usages] == [2]


async def test_usage_is_not_asked_for_where_it_is_refused(
    model_endpoint: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_STREAM_USAGE", "false")
    model_endpoint.enqueue(say("one two"))
    assert "".join([chunk.text async for chunk in stream()]) == "one two"
    assert "stream_options" not in model_endpoint.requests[0].body


async def test_the_context_reaches_the_wire(
    model_endpoint: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_MODEL", "from-environment")
    model_endpoint.fallback = say("yes")
    await ask(Context(model="chosen", system_prompt="Talk like a pirate."))
    await ask()
    chosen, default = (request.body for request in model_endpoint.requests)
    assert chosen["model"] == "chosen"
    assert chosen["messages"][0]["content"] == "Talk like a pirate."
    assert default["model"] == "from-environment"


async def test_an_endpoint_without_a_key(no_model: pytest.MonkeyPatch) -> None:
    with OpenAIServer(api_key="none") as server:
        no_model.setenv("OPENAI_BASE_URL", server.base_url)
        server.enqueue(say("fine"))
        assert (await ask()).text == "fine"


OVERLOADED = Failure(status=503, message="Overloaded", headers={"retry-after-ms": "1"})


@pytest.mark.parametrize("busy", [rate_limited(), OVERLOADED])
async def test_a_busy_endpoint_is_asked_again(model_endpoint: OpenAIServer, busy: Reply) -> None:
    model_endpoint.enqueue(busy, busy, say("at last"))
    assert (await ask()).text == "at last"
    assert len(model_endpoint.requests) == 3


async def test_a_busy_endpoint_is_not_asked_for_ever(model_endpoint: OpenAIServer) -> None:
    model_endpoint.fallback = rate_limited()
    with pytest.raises(openai.RateLimitError, match="Rate limit reached"):
        await ask()
    assert len(model_endpoint.requests) == 3


async def test_a_wrong_key_fails_the_run_at_once(
    model_endpoint: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "wrong")
    with pytest.raises(openai.AuthenticationError, match="Incorrect API key provided"):
        await ask()
    assert len(model_endpoint.requests) == 1


@pytest.mark.parametrize(
    ("ending", "error"),
    [
        ("cut", openai.APIConnectionError),
        ("closed", IncompleteAnswerError),
        ("error", openai.APIError),
    ],
)
async def test_an_answer_that_breaks_off_fails_the_run(
    model_endpoint: OpenAIServer, ending: Ending, error: type[Exception]
) -> None:
    model_endpoint.enqueue(Answer(tokens=["The answer ", "is "], ending=ending))
    heard: list[str] = []
    with pytest.raises(error):
        async for chunk in stream():
            heard.append(chunk.text)
    assert "".join(heard) == "The answer is "
    # Repeating it would send the reader the same words twice.
    assert len(model_endpoint.requests) == 1


async def test_a_silent_endpoint_fails_the_run(
    model_endpoint: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_TIMEOUT", "0.2")
    monkeypatch.setenv("OPENAI_MAX_RETRIES", "0")
    model_endpoint.enqueue(say("never heard", gate=model_endpoint.gate()))
    with pytest.raises(TimeoutError):
        [chunk async for chunk in stream()]


async def test_nobody_listening_fails_the_run(no_model: pytest.MonkeyPatch) -> None:
    with OpenAIServer() as server:
        address = server.base_url
    no_model.setenv("OPENAI_BASE_URL", address)
    no_model.setenv("OPENAI_MAX_RETRIES", "0")
    with pytest.raises(openai.APIConnectionError):
        await ask()


async def test_leaving_a_stream_hangs_up_on_the_model(model_endpoint: OpenAIServer) -> None:
    gate = model_endpoint.gate()
    model_endpoint.enqueue(say("one two three", gate=gate))
    gate.open()
    tokens = stream()
    while not (await anext(tokens)).text:
        pass
    await tokens.aclose()
    assert await asyncio.to_thread(model_endpoint.requests[0].abandoned.wait, 10)
