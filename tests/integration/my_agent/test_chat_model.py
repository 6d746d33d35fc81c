"""The graph `chat` with the real OpenAI client, over HTTP, and a scripted endpoint."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from my_agent.chat import prompts
from my_agent.chat.context import Context
from my_agent.chat.graph import graph
from my_agent.endpoint import ModelCallError
from my_agent.models import chat_model
from tests.support.openai_replies import Answer, Ending, Failure, Reply, rate_limited, say
from tests.support.openai_server import OpenAIServer

pytestmark = pytest.mark.usefixtures("product_database")

HELLO: Any = {"messages": [HumanMessage("hello")]}


async def ask(context: Context | None = None) -> AIMessage:
    state = await graph.ainvoke(HELLO, context=context)
    answer = state["messages"][-1]
    assert isinstance(answer, AIMessage)
    return answer


async def stream() -> AsyncGenerator[AIMessageChunk]:
    """Yield the answer in chunks; closing the generator ends the run."""
    parts: Any = graph.astream(HELLO, stream_mode="messages")
    async with aclosing(parts):
        async for token, _ in parts:
            yield token


async def test_answer_has_usage(model_endpoint: OpenAIServer) -> None:
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


async def test_tokens_arrive_before_the_answer_ends(model_endpoint: OpenAIServer) -> None:
    gate = model_endpoint.gate()
    model_endpoint.enqueue(say("one two three", gate=gate))
    chunks: list[str] = []
    gate.open()
    async for chunk in stream():
        if chunk.text:
            # The endpoint sends the next token only now. If any layer collected the tokens, this
            # would time out.
            chunks.append(chunk.text)
            gate.open()
    assert chunks == ["one ", "two ", "three"]
    [request] = model_endpoint.requests
    assert request.body["stream"] is True
    assert request.body["stream_options"] == {"include_usage": True}


async def test_stream_has_usage(model_endpoint: OpenAIServer) -> None:
    model_endpoint.enqueue(say("one two"))
    usages = [chunk.usage_metadata async for chunk in stream() if chunk.usage_metadata]
    assert [usage["output_tokens"] for usage in usages] == [2]


async def test_usage_request_can_be_disabled(
    model_endpoint: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_STREAM_USAGE", "false")
    model_endpoint.enqueue(say("one two"))
    assert "".join([chunk.text async for chunk in stream()]) == "one two"
    assert "stream_options" not in model_endpoint.requests[0].body


async def test_context_is_sent_to_the_endpoint(
    model_endpoint: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_MODEL", "from-environment")
    monkeypatch.setenv("OPENAI_ALLOWED_MODELS", "chosen")
    model_endpoint.fallback = say("yes")
    await ask(Context(model="chosen", system_prompt="Talk like a pirate."))
    await ask()
    chosen, default = (request.body for request in model_endpoint.requests)
    assert chosen["model"] == "chosen"
    assert chosen["messages"][0]["content"] == "Talk like a pirate."
    assert default["model"] == "from-environment"


async def test_endpoint_without_key_is_called(no_model: pytest.MonkeyPatch) -> None:
    with OpenAIServer(api_key="none") as server:
        no_model.setenv("OPENAI_BASE_URL", server.base_url)
        server.enqueue(say("fine"))
        assert (await ask()).text == "fine"


OVERLOADED = Failure(status=503, message="Overloaded", headers={"retry-after-ms": "1"})


@pytest.mark.parametrize("busy", [rate_limited(), OVERLOADED])
async def test_busy_endpoint_is_retried(model_endpoint: OpenAIServer, busy: Reply) -> None:
    model_endpoint.enqueue(busy, busy, say("at last"))
    assert (await ask()).text == "at last"
    assert len(model_endpoint.requests) == 3


async def failure() -> ModelCallError:
    """Run the graph and return its error."""
    with pytest.raises(ModelCallError) as caught:
        await ask()
    return caught.value


async def test_retries_are_limited(model_endpoint: OpenAIServer) -> None:
    model_endpoint.fallback = rate_limited()
    error = await failure()
    assert "rate limit" in str(error)
    assert isinstance(error.__cause__, openai.RateLimitError)
    assert len(model_endpoint.requests) == 3


async def test_wrong_key_fails_without_retry(
    model_endpoint: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "wrong")
    error = await failure()
    assert "does not accept the configured key (401)" in str(error)
    assert isinstance(error.__cause__, openai.AuthenticationError)
    assert len(model_endpoint.requests) == 1


@pytest.mark.parametrize(
    ("refusal", "expected", "withheld"),
    [
        # Errors about the request are passed on.
        (Failure(status=400, message="Context is too long"), "(400): Context is too long", None),
        (Failure(status=404, message="No model x"), "(404): No model x", None),
        (Failure(status=422, message="y" * 9999), "(422): yyy", "y" * 501),
        # Errors about the endpoint or its account are only logged.
        (Failure(status=401, message="Bad key sk-123"), "(401)", "sk-123"),
        (Failure(status=403, message="Project p-9 may not"), "(403)", "p-9"),
        (Failure(status=429, message="Organization org-5 is out"), "(429)", "org-5"),
        (Failure(status=500, message="db-7.internal is down"), "(500)", "db-7"),
    ],
)
async def test_http_error_is_explained(
    model_endpoint: OpenAIServer,
    monkeypatch: pytest.MonkeyPatch,
    refusal: Failure,
    expected: str,
    withheld: str | None,
) -> None:
    monkeypatch.setenv("OPENAI_MAX_RETRIES", "0")
    model_endpoint.enqueue(refusal)
    error = await failure()
    assert expected in str(error)
    assert withheld is None or withheld not in str(error)


@pytest.mark.parametrize(
    ("ending", "expected", "cause"),
    [
        ("cut", "connection broke", openai.APIConnectionError),
        ("closed", "broke off", type(None)),
        ("error", "in the middle of its answer", openai.APIError),
    ],
)
async def test_incomplete_answer_fails_the_run(
    model_endpoint: OpenAIServer, ending: Ending, expected: str, cause: type[Exception]
) -> None:
    model_endpoint.enqueue(Answer(tokens=["The answer ", "is "], ending=ending))
    chunks: list[str] = []
    with pytest.raises(ModelCallError, match=expected) as caught:
        async for chunk in stream():
            chunks.append(chunk.text)
    assert isinstance(caught.value.__cause__, cause)
    assert "".join(chunks) == "The answer is "
    # A retry would send the same tokens twice.
    assert len(model_endpoint.requests) == 1


async def test_failed_run_stores_no_answer(model_endpoint: OpenAIServer) -> None:
    talk = graph.copy(update={"checkpointer": InMemorySaver()})
    config: Any = {"configurable": {"thread_id": "t"}}
    model_endpoint.enqueue(Answer(tokens=["half"], ending="cut"), say("whole"))
    with pytest.raises(ModelCallError):
        async for _ in talk.astream(HELLO, config, stream_mode="messages"):
            pass
    state = await talk.aget_state(config)
    assert [message.type for message in state.values["messages"]] == ["human"]
    assert state.next == ("generate",)
    # Continuing the run calls the model again.
    again = await talk.ainvoke(None, config)
    assert [message.text for message in again["messages"]] == ["hello", "whole"]


async def test_endpoint_timeout_fails_the_run(
    model_endpoint: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_TIMEOUT", "0.2")
    monkeypatch.setenv("OPENAI_MAX_RETRIES", "0")
    model_endpoint.fallback = say("never sent", gate=model_endpoint.gate())
    with pytest.raises(ModelCallError, match="did not answer in time"):
        [chunk async for chunk in stream()]
    assert "did not answer in time" in str(await failure())


async def test_unreachable_endpoint_fails_the_run(no_model: pytest.MonkeyPatch) -> None:
    with OpenAIServer() as server:
        address = server.base_url
    no_model.setenv("OPENAI_BASE_URL", address)
    no_model.setenv("OPENAI_MAX_RETRIES", "0")
    error = await failure()
    assert "could not be reached" in str(error)
    assert "127.0.0.1" not in str(error)


@pytest.mark.parametrize("ending", ["cut", "closed", "error"])
def test_incomplete_sync_stream_fails(
    openai_server: OpenAIServer, no_model: pytest.MonkeyPatch, ending: Ending
) -> None:
    no_model.setenv("OPENAI_API_KEY", openai_server.api_key)
    no_model.setenv("OPENAI_BASE_URL", openai_server.base_url)
    openai_server.enqueue(say("whole"), Answer(tokens=["half"], ending=ending))
    model = chat_model()
    assert "".join(chunk.text for chunk in model.stream("hi")) == "whole"
    with pytest.raises(ModelCallError):
        list(model.stream("hi"))


async def test_closing_a_stream_closes_the_model_connection(model_endpoint: OpenAIServer) -> None:
    gate = model_endpoint.gate()
    model_endpoint.enqueue(say("one two three", gate=gate))
    gate.open()
    tokens = stream()
    while not (await anext(tokens)).text:
        pass
    await tokens.aclose()
    assert await asyncio.to_thread(model_endpoint.requests[0].abandoned.wait, 60)
