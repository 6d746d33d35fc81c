"""The ICP finder on a server without authentication and policy, with a scripted model.

Each thread has its own website, so that tests do not share companies.
"""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client

from tests.support.icp import AGENT, Person, Sites, act, icp_server, reading
from tests.support.openai_replies import Answer, Failure, Page, Reply, rate_limited, say, say_json
from tests.support.openai_server import OpenAIServer
from tests.support.processes import ROOT, Running
from tests.support.served import PATIENCE

pytestmark = pytest.mark.usefixtures("each_database")

PLAIN_ANSWERS = "Until it does, I understand only plain answers"
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
    # Seconds that a test waits for a model that stalls, and that all others stay far below.
    model["OPENAI_TURN_SECONDS"] = "3"
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
    model.enqueue(ann.customers_read, say_json(READING))
    said = await ann.say(ann.customers)
    assert ann.asked == "confirm_icp"
    assert all(word in said for word in ("Road freight", "11-50", "Singapore", "cold chain"))
    turn, profile = (json.dumps(each["messages"]) for each in model.bodies)
    # What strangers write on their websites is no part of what a message is read against.
    assert "We are a wholesaler" not in turn
    assert ann.sites.urls[0] in turn
    assert "We are a wholesaler" in profile
    rather = act("Correct", "rather hospitals", field="industries", value=["Hospitals"])
    model.enqueue(reading(rather))
    said = await ann.answer("Hmm, it is rather hospitals that buy from us")
    assert ann.asked == "confirm_icp"
    assert "industries: Road freight → Hospitals" in said
    assert "did not understand" not in said
    asked = json.dumps(model.bodies[-1]["messages"])
    assert "rather hospitals" in asked
    assert "Open question: confirm_icp" in asked
    await ann.answer("confirm")
    assert ann.values["confirmed"]
    assert ann.values["icp"]["industries"] == ["Hospitals"]
    # A press is not read, and the model determines nothing else.
    assert len(model.requests) == 3


async def test_failed_model_falls_back_and_user_is_told(
    ann: Person, model: OpenAIServer, server: Running
) -> None:
    broken = Failure(status=500, message="The server had an error")
    model.enqueue(ann.customers_read, broken)
    said = await ann.say(ann.customers)
    assert ann.asked == "confirm_icp"
    assert "read the websites without it" in said
    assert "Wholesale trade" in said
    # The same happens if the model cannot read a correction, nor when it is told its error. The ICP
    # stays unchanged.
    wrong = say_json({"language": "en", "acts": "hospitals"})
    model.enqueue(wrong, wrong)
    said = await ann.answer("It is rather hospitals that buy from us")
    assert said.count(PLAIN_ANSWERS) == 1
    assert "did not understand" in said
    assert "Wholesale trade" in said
    assert actions(server, ann).count("model_fallback") == 2
    repair = json.dumps(model.bodies[-1]["messages"])
    assert "does not fit: acts: Input should be a valid array" in repair
    # The small reader takes what is certain, and the failure is not told again and again.
    model.enqueue(broken)
    said = await ann.answer("industries: hospitals")
    assert "industries: Wholesale trade → hospitals" in said
    assert PLAIN_ANSWERS not in said
    # The model answers again, fails again, and this is told again.
    model.enqueue(reading(act("Ask", "what does it cost?", about="cost")))
    said = await ann.answer("what does it cost?")
    assert "neither starts before you have said so" in said
    assert ann.asked == "confirm_icp"
    model.enqueue(broken)
    assert PLAIN_ANSWERS in await ann.answer("regions: Johor")
    assert ann.values["icp"]["regions"] == ["Johor"]
    # The last answer of a test is a good one: three failures in a row would pause the model.
    model.enqueue(reading(act("Ask", "what does it cost?", about="cost")))
    assert "neither starts before" in await ann.answer("what does it cost?")


FAILURES: dict[str, tuple[Reply, str]] = {
    "refusal": (Answer(refusal="I cannot help with that."), "refused to answer"),
    "filter": (Answer(finish="content_filter"), "content filter"),
    "page": (Page(body="<html><body>Please sign in</body></html>"), "no answer"),
    "limit": (Failure(status=429, message="Quota", code="insufficient_quota"), "(429)"),
    "stall": (say("{", delay=60.0), "in time"),
}


@pytest.mark.parametrize("how", FAILURES)
async def test_small_reader_takes_over_from_a_model_that_fails(
    ann: Person, model: OpenAIServer, server: Running, how: str
) -> None:
    failure, told = FAILURES[how]
    model.enqueue(failure)
    said = await ann.say("Hello")
    assert told in said
    assert said.count(PLAIN_ANSWERS) == 1
    assert "5 best customers" in said
    assert actions(server, ann).count("model_fallback") == 1
    # It is told once.
    model.enqueue(failure)
    said = await ann.say(ann.sites.urls[0])
    assert "1 of 5" in said
    assert PLAIN_ANSWERS not in said
    # The next turn works.
    second = ann.sites.urls[1]
    model.enqueue(reading(act("Answer", second, field="customers", value=[second])))
    said = await ann.say(f"and then there is {second}, our second one")
    assert "2 of 5" in said
    assert PLAIN_ANSWERS not in said


async def test_limit_that_passes_soon_is_waited_for(ann: Person, model: OpenAIServer) -> None:
    model.enqueue(rate_limited(), reading(act("Ask", "what does it cost?", about="cost")))
    said = await ann.say("what does it cost?")
    assert "neither starts before you have said so" in said
    assert PLAIN_ANSWERS not in said


async def test_model_answers_in_words_if_the_endpoint_takes_no_form(
    ann: Person, model: OpenAIServer
) -> None:
    no_form = Failure(status=400, message="response_format is not supported")
    model.enqueue(ann.customers_read, say_json(READING))
    await ann.say(ann.customers)
    region = act("Correct", "rather Johor", field="regions", value=["Johor"])
    model.enqueue(no_form, reading(region))
    assert "regions: Singapore → Johor" in await ann.answer("rather Johor, across the causeway")
    assert ann.asked == "confirm_icp"
    assert "JSON Schema" in json.dumps(model.bodies[-1]["messages"])


async def test_models_consent_counts_only_without_a_limit(ann: Person, model: OpenAIServer) -> None:
    model.enqueue(ann.customers_read, say_json(READING))
    await ann.say(ann.customers)
    asked = ann.question["id"]
    texts = ("go for it, but cheaply", "go for it if it is free", "should I go for it?")
    for text in texts:
        model.enqueue(reading(act("Consent", text, yes=True, to="confirm_icp")))
        assert "not sure that this is a yes" in await ann.answer(text)
        assert (ann.asked, ann.question["id"]) == ("confirm_icp", asked), text
        assert not ann.values["confirmed"]
    model.enqueue(reading(act("Consent", "go for it", yes=True, to="confirm_icp")))
    await ann.answer("go for it")
    assert ann.values["confirmed"]
    # What a model takes for a wish is confirmed first.
    fresh = "hunt for fresh ones"
    model.enqueue(reading(act("Command", fresh, name="search", targets=None)))
    await ann.say(fresh)
    assert ann.asked == "rerun"


HOSTILE = (
    "is it raining",
    "my cat walked over the keyboard",
    "asdf jkl;",
    "no!",
    "what happens if I say yes?",
)


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_model_spends_nothing(ann: Person, model: OpenAIServer, text: str) -> None:
    model.enqueue(ann.customers_read, say_json(READING))
    await ann.say(ann.customers)
    asked = ann.question["id"]
    acts = [act("Consent", text, yes=True, to="confirm_icp")]
    acts += [act("Command", text, name=name, targets="all") for name in ("search", "enrich")]
    acts += [act("Command", text, name=name) for name in ("start_over", "new_session")]
    # Also quotes that are not in the message.
    acts += [
        act("Consent", "yes", yes=True, to="confirm_icp"),
        act("Command", "enrich", name="enrich"),
    ]
    for _ in "12":
        model.enqueue(reading(*acts))
        await ann.answer(text)
        assert ann.asked is not None
        assert not ann.values["confirmed"]
        assert not ann.values.get("last")
        assert ann.values.get("enrichment") is None
        assert ann.values["site"]["domain"] == ann.website.removeprefix("http://")
    state: Any = await ann.sdk.threads.get_state(ann.thread or "")
    assert state["values"]["icp"]["industries"] == ["Road freight"]
    assert ann.asked == "start_over" or ann.question["id"] == asked


@pytest.mark.parametrize("status", ["locked", "archived"])
async def test_run_on_read_only_thread_gets_fixed_answer(
    ann: Person, model: OpenAIServer, server: Running, status: str
) -> None:
    model.fallback = reading()
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
    model.enqueue(ann.customers_read, say_json(READING))
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
