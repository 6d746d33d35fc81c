"""The graph `chat` served by `threadhold serve` and called with the SDK."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.schema import Run

from tests.support import databases
from tests.support.openai_replies import Answer, Failure, say
from tests.support.openai_server import PATIENCE, OpenAIServer
from tests.support.processes import ROOT, Running, environment, free_port, running, threadhold

pytestmark = pytest.mark.usefixtures("each_database")

# Empty values, so that the developer's environment and .env file do not set a model.
NO_MODEL = {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": "", "OPENAI_MODEL": ""}


@contextmanager
def served(folder: Path, **variables: str) -> Iterator[Running]:
    """Serve the project's own langgraph.json on a database in `folder`."""
    port = free_port()
    arguments = ("--config", ROOT / "langgraph.json", "--port", port)
    database = ("--database-url", databases.url(folder / "chat.db"))
    command = threadhold("serve", *map(str, arguments), *database)
    with running(command, port, folder, environment(**{**NO_MODEL, **variables})) as server:
        yield server


@pytest.fixture(scope="module")
def online(
    each_database: str, endpoint: OpenAIServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    variables = {
        "OPENAI_API_KEY": endpoint.api_key,
        "OPENAI_BASE_URL": endpoint.base_url,
        "OPENAI_MAX_RETRIES": "0",
        "OPENAI_ALLOWED_MODELS": "of-assistant,of-run",
    }
    with served(tmp_path_factory.mktemp("online"), **variables) as server:
        yield server


@pytest.fixture
def model(endpoint: OpenAIServer) -> OpenAIServer:
    """Return the server's scripted endpoint, reset for each test."""
    endpoint.reset()
    return endpoint


@pytest.fixture
async def client(online: Running) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=online.url) as client:
        yield client


def message(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def settled(client: LangGraphClient, run: Run) -> Run:
    """Wait for the end of the run and return it."""
    await client.runs.join(run["thread_id"], run["run_id"])
    return await client.runs.get(run["thread_id"], run["run_id"])


async def test_offline_server_streams_and_keeps_the_conversation(
    tmp_path: Path,
) -> None:
    with served(tmp_path) as server:
        async with get_client(url=server.url) as client:
            thread_id = (await client.threads.create())["thread_id"]
            stream = client.runs.stream(
                thread_id, "chat", input=message("one"), stream_mode="messages-tuple"
            )
            tokens = [part.data[0]["content"] async for part in stream if part.event == "messages"]
            state: Any = await client.threads.get_state(thread_id)
    assert len(tokens) > 10
    assert "".join(tokens) == state["values"]["messages"][-1]["content"]
    assert "no language model is configured" in "".join(tokens)

    with served(tmp_path) as server:
        async with get_client(url=server.url) as client:
            values: Any = await client.runs.wait(thread_id, "chat", input=message("two"))
    assert [each["type"] for each in values["messages"]] == ["human", "ai", "human", "ai"]
    assert "message 2 from you" in values["messages"][-1]["content"]


async def test_tokens_arrive_before_the_answer_ends(
    client: LangGraphClient, model: OpenAIServer
) -> None:
    gate = model.gate()
    model.enqueue(say("one two three", gate=gate))
    gate.open()
    chunks = []
    async for part in client.runs.stream(
        None, "chat", input=message("hello"), stream_mode="messages-tuple"
    ):
        assert part.event != "error", part.data
        if part.event == "messages" and part.data[0]["content"]:
            # The endpoint sends the next token only now. If any layer collected the tokens, this
            # would time out.
            chunks.append(part.data[0]["content"])
            gate.open()
    assert chunks == ["one ", "two ", "three"]


async def test_context_of_run_and_assistant_is_sent_to_the_endpoint(
    client: LangGraphClient, model: OpenAIServer
) -> None:
    model.fallback = say("yes")
    assistant = await client.assistants.create(
        "chat", context={"model": "of-assistant", "system_prompt": "Rhyme."}
    )
    await client.runs.wait(None, assistant["assistant_id"], input=message("hi"))
    await client.runs.wait(
        None, assistant["assistant_id"], input=message("hi"), context={"model": "of-run"}
    )
    await client.runs.wait(None, "chat", input=message("hi"))
    asked = [(body["model"], body["messages"][0]["content"]) for body in model.bodies]
    assert asked[0] == ("of-assistant", "Rhyme.")
    assert asked[1][0] == "of-run"
    assert asked[2][0] == "gpt-4o-mini"
    with pytest.raises(Exception, match="ModelNotAllowedError: This model is not allowed here"):
        await client.runs.wait(None, "chat", input=message("hi"), context={"model": "expensive"})
    assert len(model.bodies) == 3


async def test_history_is_sent_to_the_model(client: LangGraphClient, model: OpenAIServer) -> None:
    model.enqueue(say("Ada."), say("In 1815."))
    thread_id = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread_id, "chat", input=message("Who?"))
    await client.runs.wait(thread_id, "chat", input=message("When was she born?"))
    said = [(each["role"], each["content"]) for each in model.bodies[-1]["messages"][1:]]
    assert said == [("user", "Who?"), ("assistant", "Ada."), ("user", "When was she born?")]


@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        (Failure(status=401, message="Bad key sk-1"), "does not accept the configured key"),
        (Failure(status=404, message="No model x"), "No model x"),
        (Answer(tokens=["half "], ending="cut"), "connection broke"),
        (Answer(tokens=["half "], ending="closed"), "broke off"),
    ],
)
async def test_failed_model_call_fails_the_run_with_cause(
    client: LangGraphClient, model: OpenAIServer, reply: Answer | Failure, cause: str
) -> None:
    model.enqueue(reply, say("whole"))
    thread_id = (await client.threads.create())["thread_id"]
    parts = [
        part
        async for part in client.runs.stream(
            thread_id, "chat", input=message("hi"), stream_mode=["messages-tuple", "values"]
        )
    ]
    assert parts[-1].event == "error"
    assert cause in parts[-1].data["message"]
    assert [run["status"] for run in await client.runs.list(thread_id)] == ["error"]
    thread: Any = await client.threads.get(thread_id)
    assert thread["status"] == "error"
    assert [each["type"] for each in thread["values"]["messages"]] == ["human"]
    # The thread is still usable: the next message is answered.
    values: Any = await client.runs.wait(thread_id, "chat", input=message("again"))
    assert values["messages"][-1]["content"] == "whole"


async def test_cancelled_run_closes_the_model_connection(
    client: LangGraphClient, model: OpenAIServer
) -> None:
    gate = model.gate()
    model.enqueue(say("one two three", gate=gate))
    gate.open()
    thread_id = (await client.threads.create())["thread_id"]
    run = await client.runs.create(
        thread_id, "chat", input=message("hi"), stream_mode="messages-tuple"
    )
    async for part in client.runs.join_stream(thread_id, run["run_id"]):
        if part.event == "messages":
            await client.runs.cancel(thread_id, run["run_id"], wait=False)
            break
    assert await asyncio.to_thread(model.requests[0].abandoned.wait, PATIENCE)
    assert (await settled(client, run))["status"] == "interrupted"


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ({"input": {"messages": []}}, "at least one message"),
        ({"input": message("hi"), "context": {"model": ""}}, "at least 1 character"),
        ({"input": message("hi"), "context": {"model": 5}}, "valid string"),
    ],
)
async def test_invalid_input_fails_with_cause(
    client: LangGraphClient, model: OpenAIServer, body: dict[str, Any], cause: str
) -> None:
    answer: Any = await client.runs.wait(None, "chat", raise_error=False, **body)
    assert cause in answer["__error__"]["message"]
    assert model.requests == []


async def test_schemas_describe_the_input(client: LangGraphClient) -> None:
    [assistant] = await client.assistants.search(graph_id="chat", metadata={"created_by": "system"})
    schemas: Any = await client.assistants.get_schemas(assistant["assistant_id"])
    assert list(schemas["input_schema"]["properties"]) == ["messages"]
    assert schemas["context_schema"]["properties"].keys() == {"model", "system_prompt"}


# What a client may try to set, in every place that reaches a graph.
ELSEWHERE: dict[str, Any] = {
    "base_url": "{evil}",
    "openai_api_base": "{evil}",
    "openai_base_url": "{evil}",
    "OPENAI_BASE_URL": "{evil}",
    "openai_proxy": "{evil}",
    "api_key": "stolen",
    "openai_api_key": "stolen",
    "model_name": "expensive",
    "model_provider": "ollama",
    "default_headers": {"authorization": "Bearer stolen"},
    "extra_body": {"model": "expensive"},
    "model_kwargs": {"model": "expensive"},
    "timeout": 0.001,
    "max_retries": 50,
    "n": 8,
}
EXPENSIVE = ("expensive", " of-run", "OF-RUN", "of-run,of-assistant", "*", "gpt-4o-mini ", "")


async def test_no_request_chooses_endpoint_key_or_a_further_model(
    online: Running, client: LangGraphClient, model: OpenAIServer
) -> None:
    """In context, config, metadata, input and headers, of runs, assistants, A2A and MCP."""
    model.fallback = say("yes")
    with OpenAIServer(api_key="stolen") as evil:
        fields = {
            name: value.format(evil=evil.base_url) if isinstance(value, str) else value
            for name, value in ELSEWHERE.items()
        }
        sent = {f"x-{name.replace('_', '-')}": str(value) for name, value in fields.items()}
        sent |= {"x-model": "expensive", "openai-model": "expensive", "x-openai-key": "stolen"}
        asked = {**fields, "model": "expensive"}
        places: list[dict[str, Any]] = [
            {"context": fields},
            {"context": asked},
            *({"context": {"model": name}} for name in EXPENSIVE),
            {"context": {"model": ["of-run"]}},
            {"config": {"configurable": asked}},
            {"config": {**asked, "metadata": asked, "tags": ["model:expensive"]}},
            {"metadata": asked},
            {"input": {**message("hi"), **asked}},
            {"input": {"messages": [{**message("hi")["messages"][0], "model": "expensive"}]}},
        ]
        async with httpx.AsyncClient(base_url=online.url, headers=sent, timeout=PATIENCE) as http:
            for place in places:
                body = {"assistant_id": "chat", "input": message("hi"), **place}
                answer = await http.post("/runs/wait", json=body)
                assert answer.status_code < 500, (place, answer.text)
                made = await http.post("/assistants", json={"graph_id": "chat", **place})
                if made.is_success:
                    body = {"assistant_id": made.json()["assistant_id"], "input": message("hi")}
                    assert (await http.post("/runs/wait", json=body)).status_code < 500
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
            for context in (asked, {"model": "expensive"}):
                params = {"name": "chat", "arguments": {**message("hi"), **asked}}
                rpc = {**call, "params": {**params, "context": context}}
                answer = await http.post("/mcp", json=rpc, headers={"accept": "application/json"})
                assert answer.status_code < 500, answer.text
            asked_at_once = await http.post("/api/ask", json={"question": "hi", **asked})
            assert asked_at_once.status_code < 500
        assert evil.requests == []
    assert len(model.requests) > 5
    assert {body["model"] for body in model.bodies} == {"gpt-4o-mini"}
    for request in model.requests:
        assert request.headers["authorization"] == f"Bearer {model.api_key}"
        assert "stolen" not in str(request.headers)
        assert request.body.get("n") in (None, 1)
