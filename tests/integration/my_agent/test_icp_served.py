"""The ICP finder on a server without authentication and policy, with a scripted model.

Each thread has its own website, so that tests do not share companies.
"""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client

from tests.support.icp import AGENT, Person, Sites, icp_server
from tests.support.openai_replies import Failure, call, say_json
from tests.support.openai_server import OpenAIServer
from tests.support.processes import ROOT, Running
from tests.support.served import PATIENCE

pytestmark = pytest.mark.usefixtures("each_database")

READING = {
    "industries": ["Road freight"],
    "sizes": ["11-50"],
    "regions": ["Singapore"],
    "keywords": ["cold chain"],
}


@pytest.fixture(scope="module")
def sites() -> Iterator[Sites]:
    with Sites() as started:
        yield started


@pytest.fixture(scope="module")
def folder(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("icp-served")


@pytest.fixture(scope="module")
def server(folder: Path, endpoint: OpenAIServer) -> Iterator[Running]:
    config = folder / "langgraph.json"
    path = f"{ROOT}/my_agent/icp_finder/graph.py:graph"
    config.write_text(json.dumps({"graphs": {AGENT: path}}))
    model = {"OPENAI_BASE_URL": endpoint.base_url, "OPENAI_API_KEY": endpoint.api_key}
    with icp_server(folder, config, OPENAI_MAX_RETRIES="0", **model) as started:
        yield started


@pytest.fixture
def model(endpoint: OpenAIServer) -> OpenAIServer:
    """Return the server's scripted endpoint, reset for each test."""
    endpoint.reset()
    return endpoint


@pytest.fixture
async def ann(server: Running, sites: Sites, folder: Path) -> AsyncIterator[Person]:
    person = Person(sites, folder)
    async with get_client(url=server.url, timeout=PATIENCE * 4) as person.sdk:
        await person.open(website=person.website)
        yield person


async def test_model_reads_websites_and_applies_correction(
    ann: Person, model: OpenAIServer
) -> None:
    model.enqueue(say_json(READING))
    said = await ann.say(ann.customers)
    assert ann.asked == "confirm_icp"
    assert all(word in said for word in ("Road freight", "11-50", "Singapore", "cold chain"))
    [asked] = model.requests
    assert "We are a wholesaler" in json.dumps(asked.body["messages"])
    model.enqueue(call("TurnReading", kind="change", industries=["Hospitals"]))
    said = await ann.answer("Hmm, it is rather hospitals that buy from us")
    assert ann.asked == "confirm_icp"
    assert "Hospitals" in said
    assert "did not understand" not in said
    assert "rather hospitals" in json.dumps(model.requests[-1].body["messages"])
    await ann.answer("yes")
    assert ann.values["confirmed"]
    assert ann.values["icp"]["industries"] == ["Hospitals"]
    # The model determines nothing else.
    assert len(model.requests) == 2


async def test_failed_model_falls_back_and_user_is_told(
    ann: Person, model: OpenAIServer, server: Running
) -> None:
    model.enqueue(Failure(status=500, message="The server had an error"))
    said = await ann.say(ann.customers)
    assert ann.asked == "confirm_icp"
    assert "read the websites without it" in said
    assert "Wholesale trade" in said
    # The same happens if the model cannot read a correction, neither as a tool call nor as JSON,
    # nor when it is told its error. The ICP stays unchanged.
    wrong = say_json({"industries": "hospitals"})
    model.enqueue(call("TurnReading", industries="hospitals"), wrong, wrong)
    said = await ann.answer("It is rather hospitals that buy from us")
    assert "did not understand" in said
    assert "Wholesale trade" in said
    assert actions(server, ann).count("model_fallback") == 2
    repair = json.dumps(model.requests[-1].body["messages"])
    assert "That does not fit" in repair
    assert "kind" in repair


async def test_model_answers_in_json_if_the_endpoint_has_no_tools(
    ann: Person, model: OpenAIServer
) -> None:
    model.enqueue(say_json(READING))
    await ann.say(ann.customers)
    no_tools = Failure(status=400, message="This endpoint has no tools")
    model.enqueue(no_tools, say_json({"kind": "change", "regions": ["Johor"]}))
    assert "regions: Singapore → Johor" in await ann.answer("rather across the causeway")
    assert ann.asked == "confirm_icp"


async def test_models_consent_counts_only_without_a_limit(ann: Person, model: OpenAIServer) -> None:
    model.enqueue(say_json(READING))
    await ann.say(ann.customers)
    yes = call("TurnReading", kind="answer", choice="confirm")
    for text in ("hit it, but cheaply", "hit it if it is free", "should I hit it?"):
        model.enqueue(yes)
        await ann.answer(text)
        assert ann.asked == "confirm_icp", text
        assert not ann.values["confirmed"]
    model.enqueue(yes)
    await ann.answer("hit it")
    assert ann.values["confirmed"]
    # What a model takes for a wish is confirmed first.
    model.enqueue(call("TurnReading", kind="change", wish="rerun"))
    await ann.say("hunt for fresh ones")
    assert ann.asked == "rerun"


@pytest.mark.parametrize("status", ["locked", "archived"])
async def test_run_on_read_only_thread_gets_fixed_answer(
    ann: Person, model: OpenAIServer, server: Running, status: str
) -> None:
    await ann.say("Hello")
    before = dict(ann.values)
    await ann.sdk.threads.update(ann.thread or "", metadata={"status": status})
    said = await ann.say(ann.customers)
    assert "read-only" in said
    kept = {key: value for key, value in ann.values.items() if key != "messages"}
    assert kept == {key: value for key, value in before.items() if key != "messages"}
    assert "read_only" in actions(server, ann)
    await ann.sdk.threads.update(ann.thread or "", metadata={"status": "open"})
    assert "5 best customers" in await ann.say("And now?")


async def test_thread_locked_during_question_accepts_no_answer(
    ann: Person, model: OpenAIServer
) -> None:
    model.enqueue(say_json(READING))
    await ann.say(ann.customers)
    await ann.sdk.threads.update(ann.thread or "", metadata={"status": "locked"})
    assert "read-only" in await ann.answer("yes")
    assert not ann.values["confirmed"]


async def test_conversation_sets_the_threads_website(ann: Person, model: OpenAIServer) -> None:
    await ann.open()
    website = ann.website.replace("tenant", "told")
    await ann.say(f"Our website is {website}")
    assert (await ann.metadata())["website"] == website


async def test_only_the_server_determines_tenant_and_thread(
    ann: Person, model: OpenAIServer
) -> None:
    forged: Any = {
        "messages": [{"role": "user", "content": "Hello"}],
        "tenant_id": "acme",
        "thread_id": "other",
    }
    values: Any = await ann.sdk.runs.wait(
        ann.thread or "",
        AGENT,
        input=forged,
        metadata={"tenant_id": "acme"},
        config={"configurable": {"tenant_id": "acme"}},
    )
    assert values["tenant_id"] == "local"
    assert values["thread_id"] == ann.thread


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "user", "content": ""}],
        [{"role": "assistant", "content": "acme.com"}],
        [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}],
        [{"role": "user", "content": "\u0000 \U0001f600 " + "x" * 100_000}],
    ],
    ids=["none", "empty", "assistant's", "parts", "image", "long"],
)
async def test_any_first_message_is_answered_with_the_next_question(
    ann: Person, model: OpenAIServer, messages: Any
) -> None:
    values: Any = await ann.sdk.runs.wait(ann.thread or "", AGENT, input={"messages": messages})
    assert "5 best customers" in values["messages"][-1]["content"]


async def test_probe_result_is_logged(ann: Person, model: OpenAIServer, server: Running) -> None:
    await ann.say("Hello")
    assert {"return_user_probe", "journey_asked"} <= set(actions(server, ann))


def actions(server: Running, ann: Person) -> list[str]:
    """Return the logged actions of the person's thread."""
    text = server.log.read_text()
    lines = [json.loads(line) for line in text.splitlines() if (line[:1], line[-1:]) == ("{", "}")]
    return [str(line.get("action")) for line in lines if line.get("thread_id") == ann.thread]
