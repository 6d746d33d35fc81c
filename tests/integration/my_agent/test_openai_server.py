"""The scripted endpoint: real clients understand it, and its errors are those of the real API."""

import time
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr

from tests.support.openai_replies import Answer, Reply, call, rate_limited, say, say_json
from tests.support.openai_server import OpenAIServer, Received, close_connections


class Person(BaseModel):
    """A person, as structured output."""

    name: str
    age: int


@tool
def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"sun in {city}"


@pytest.fixture
async def model(openai_server: OpenAIServer) -> AsyncIterator[ChatOpenAI]:
    model = ChatOpenAI(
        model="gpt-4o-mini",
        base_url=openai_server.base_url,
        api_key=SecretStr(openai_server.api_key),
        max_retries=0,
    )
    yield model
    await close_connections(model)


@pytest.fixture
async def client(openai_server: OpenAIServer) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(
        base_url=openai_server.base_url, api_key=openai_server.api_key, max_retries=0
    ) as client:
        yield client


async def test_plain_answer_is_returned(openai_server: OpenAIServer, model: ChatOpenAI) -> None:
    openai_server.enqueue(say("Hello there"))
    answer = await model.ainvoke("hi you")
    assert answer.text == "Hello there"
    assert answer.response_metadata["finish_reason"] == "stop"
    assert answer.usage_metadata is not None
    counts = {key: answer.usage_metadata[key] for key in ("input_tokens", "output_tokens")}
    assert counts == {"input_tokens": 2, "output_tokens": 2}
    assert not openai_server.requests[0].body["stream"]


@pytest.mark.parametrize("streamed", [False, True])
async def test_tools_are_called(
    openai_server: OpenAIServer, model: ChatOpenAI, streamed: bool
) -> None:
    openai_server.enqueue(call("weather", city="São Paulo"), say("Sunny."))
    with_tools = model.bind_tools([weather])
    question = HumanMessage("Weather?")
    if streamed:
        wish: Any = AIMessageChunk(content="")
        async for chunk in with_tools.astream([question]):
            wish += chunk
    else:
        wish = await with_tools.ainvoke([question])
    [tool_call] = wish.tool_calls
    assert (tool_call["name"], tool_call["args"]) == ("weather", {"city": "São Paulo"})
    assert wish.response_metadata["finish_reason"] == "tool_calls"
    result = ToolMessage("sun", tool_call_id=tool_call["id"])
    assert (await with_tools.ainvoke([question, wish, result])).text == "Sunny."


# langchain-openai stores the parsed object in a field that the openai package types as None.
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")
@pytest.mark.parametrize("streamed", [False, True])
async def test_structured_output_is_parsed(
    openai_server: OpenAIServer, model: ChatOpenAI, streamed: bool
) -> None:
    openai_server.enqueue(say_json({"name": "Ada", "age": 36}))
    structured = model.with_structured_output(Person, method="json_schema")
    if streamed:
        people: list[Any] = [person async for person in structured.astream("Who?")]
    else:
        people = [await structured.ainvoke("Who?")]
    assert people[-1] == Person(name="Ada", age=36)
    assert openai_server.requests[0].body["response_format"]["json_schema"]["name"] == "Person"


async def test_script_receives_the_request(openai_server: OpenAIServer, model: ChatOpenAI) -> None:
    def parrot(request: Received) -> Reply:
        return say(request.body["messages"][-1]["content"])

    openai_server.fallback = parrot
    assert (await model.ainvoke("one two")).text == "one two"
    assert (await model.ainvoke("three")).text == "three"


async def test_models_are_listed(openai_server: OpenAIServer, client: openai.AsyncOpenAI) -> None:
    openai_server.models = ["small", "large"]
    assert [entry.id async for entry in client.models.list()] == ["small", "large"]


async def test_wrong_key_is_rejected(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.AuthenticationError) as caught:
        await client.with_options(api_key="wrong").models.list()
    assert caught.value.code == "invalid_api_key"


async def test_rate_limit_sends_retry_after(
    openai_server: OpenAIServer, client: openai.AsyncOpenAI
) -> None:
    openai_server.enqueue(rate_limited(1500))
    with pytest.raises(openai.RateLimitError) as caught:
        await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}]
        )
    headers = caught.value.response.headers
    assert (headers["retry-after-ms"], headers["retry-after"]) == ("1500", "2")


async def test_missing_script_is_an_error(openai_server: OpenAIServer, model: ChatOpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="No reply is scripted"):
        await model.ainvoke("hi")


async def test_tokens_can_be_delayed(
    openai_server: OpenAIServer, client: openai.AsyncOpenAI
) -> None:
    openai_server.enqueue(Answer(tokens=["a", "b", "c"], delay=0.05))
    began = time.monotonic()
    stream = await client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "hi"}], stream=True
    )
    times = [
        time.monotonic()
        async for chunk in stream
        if chunk.choices and chunk.choices[0].delta.content
    ]
    assert times[-1] - began >= 0.14


CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
USER = {"role": "user", "content": "hi"}


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"messages": [USER]}, "must provide a model"),
        ({"model": "m", "messages": []}, "too short"),
        (
            {"model": "m", "messages": [USER], "stream_options": {"include_usage": True}},
            "only allowed when 'stream'",
        ),
        (
            {"model": "m", "messages": [USER], "response_format": {"type": "json_schema"}},
            "json_schema.schema",
        ),
        (
            {"model": "m", "messages": [{"role": "tool", "tool_call_id": "c1", "content": "x"}]},
            "must be a response",
        ),
        (
            {"model": "m", "messages": [{"role": "assistant", "tool_calls": [CALL]}, USER]},
            "did not have response messages: c1",
        ),
    ],
)
async def test_invalid_requests_are_rejected(
    openai_server: OpenAIServer, client: openai.AsyncOpenAI, body: dict[str, Any], complaint: str
) -> None:
    openai_server.enqueue(say("should not be said"))
    with pytest.raises(openai.BadRequestError, match=complaint):
        await client.post("/chat/completions", body=body, cast_to=object)


async def test_script_cannot_call_a_tool_that_was_not_offered(
    openai_server: OpenAIServer, model: ChatOpenAI
) -> None:
    openai_server.enqueue(call("weather"))
    with pytest.raises(openai.BadRequestError, match="offers no tool"):
        await model.ainvoke("hi")
