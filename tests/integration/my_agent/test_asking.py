"""Asking a model for a value and for words, over HTTP: each failure has a name, and none is raised."""

import asyncio
import json
import threading
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from pydantic import BaseModel, Field

from my_agent import breaker, waits
from my_agent.answering import answer
from my_agent.asking import Asked, Failed, Kind, structured
from my_agent.breaker import PAUSE, Breaker
from my_agent.failures import ModelCallError
from my_agent.keys import AUTH_USER, TENANT_ID
from my_agent.models import ModelNotAllowedError, chat_model
from my_agent.waits import Waits
from tests.support.openai_replies import (
    Answer,
    Failure,
    Page,
    Reply,
    ToolCall,
    completion,
    rate_limited,
    say,
    say_json,
)
from tests.support.openai_server import OpenAIServer, Received

ASKED = [HumanMessage("Which city?")]
OSLO = {"name": "Oslo", "people": 700_000}
DOWN = Failure(status=500, message="db-7.internal is down")
PAGE = Page(body="<html><body>Sign in at proxy.internal</body></html>")


class City(BaseModel):
    """A city."""

    name: str = Field(max_length=40)
    people: int


class Clock:
    """Seconds that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Forget what other tests have asked, and let the test set the breaker's time."""
    made = Clock()
    monkeypatch.setattr(breaker, "shared", Breaker(made))
    monkeypatch.setattr(waits, "shared", Waits())
    return made


@pytest.fixture
def model(model_endpoint: OpenAIServer) -> OpenAIServer:
    return model_endpoint


def of(tenant: str = "acme", run: str | None = None) -> RunnableConfig:
    """Return the config of a tenant's run."""
    user = {"identity": "ada", TENANT_ID: tenant}
    metadata = {} if run is None else {"run_id": run}
    return {"configurable": {AUTH_USER: user}, "metadata": metadata}


async def ask(config: RunnableConfig | None = None, **options: Any) -> Asked[City] | Failed | None:
    return await structured(City, ASKED, model=None, config=config or of(), **options)


async def failure(config: RunnableConfig | None = None, **options: Any) -> Failed:
    found = await ask(config, **options)
    assert isinstance(found, Failed)
    return found


async def city(config: RunnableConfig | None = None, **options: Any) -> City:
    found = await ask(config, **options)
    assert isinstance(found, Asked), found
    return found.value


# --- answers


async def test_value_comes_with_the_tokens_of_all_attempts(model: OpenAIServer) -> None:
    model.enqueue(say("Oslo, of course."), say_json(OSLO))
    found = await ask()
    assert isinstance(found, Asked)
    assert found.value == City(**OSLO)
    first, second = model.bodies
    assert first["response_format"]["json_schema"]["schema"]["required"] == ["name", "people"]
    words = [sum(len(str(m["content"]).split()) for m in body["messages"]) for body in model.bodies]
    assert found.tokens == sum(words) + 3 + 2
    # The wrong answer and what is wrong with it are shown.
    assert [each["role"] for each in second["messages"]] == ["user", "assistant", "user"]
    assert "no JSON" in second["messages"][-1]["content"]


@pytest.mark.parametrize(
    "text",
    [
        'Here you are:\n```json\n{"name": "Oslo", "people": 700000}\n```\nAnything else?',
        'It is {"name": "Oslo", "people": 700000}, I think.',
        '<think>Is it {"name": "Rome"}?</think>{"name": "Oslo", "people": 700000}',
        'Of {all} cities: {"city": {}} or rather {"name": "Oslo", "people": 700000}',
    ],
)
async def test_json_among_words_is_found(model: OpenAIServer, text: str) -> None:
    model.enqueue(say(text))
    assert await city() == City(**OSLO)


def written(reply: Answer) -> Any:
    """Return a script that sends a completion as it is, whatever tools are offered."""
    return lambda request: Page(
        body=json.dumps(completion(reply, request.body)), media_type="application/json"
    )


async def test_arguments_of_a_tool_are_an_answer(model: OpenAIServer) -> None:
    model.enqueue(written(Answer(tool_calls=[ToolCall(name="answer", arguments=OSLO)])))
    assert await city() == City(**OSLO)


async def test_rejected_format_is_asked_for_in_words(model: OpenAIServer) -> None:
    for status in (400, 404, 422):
        model.enqueue(Failure(status=status, message="response_format is unknown"), say_json(OSLO))
        assert await city() == City(**OSLO)
        with_format, in_words = model.bodies[-2:]
        assert "response_format" in with_format
        assert "response_format" not in in_words
        assert '"people"' in in_words["messages"][0]["content"]
        assert in_words["messages"][-1] == with_format["messages"][-1]


async def test_nothing_is_asked_without_a_model(no_model: pytest.MonkeyPatch) -> None:
    assert await ask() is None


async def test_only_allowed_models_are_asked(model: OpenAIServer) -> None:
    with pytest.raises(ModelNotAllowedError):
        await structured(City, ASKED, model="gpt-expensive", config=of())
    model.enqueue(say_json(OSLO))
    assert await structured(City, ASKED, model="our-own", config=of(), trusted=True)
    assert [body["model"] for body in model.bodies] == ["our-own"]


async def test_structured_answers_do_not_stream(model: OpenAIServer) -> None:
    async def node(state: dict[str, Any], config: RunnableConfig) -> dict[str, Any]:
        await structured(City, ASKED, model=None, config=config)
        return {}

    graph = StateGraph(dict)  # type: ignore[type-var]
    graph.add_node("ask", node)
    graph.add_edge(START, "ask")
    model.enqueue(say_json(OSLO))
    assert [token async for token in graph.compile().astream({}, stream_mode="messages")] == []
    assert not model.bodies[0].get("stream")


# --- failures


@pytest.mark.parametrize(
    ("replies", "kind"),
    [
        ([Answer(refusal="I will not say.")], "refused"),
        ([Answer(tokens=["Os"], finish="content_filter")], "filtered"),
        ([Failure(status=400, message="Bad words", code="content_filter")], "filtered"),
        ([Answer(tokens=['{"name": "Os'], finish="length")], "cut"),
        ([say("Oslo."), say("I said Oslo.")], "unusable"),
        ([say(""), say_json({"name": "Oslo"})], "unusable"),
        ([PAGE], "unreachable"),
        ([Page(body="{}", media_type="application/json")], "unreachable"),
        ([Page(body="[1]", media_type="application/json")], "unreachable"),
        ([Page(body='{"choices": [{}]}', media_type="application/json")], "unreachable"),
        ([Page(body='{"choices": []}', media_type="application/json")], "unreachable"),
        ([Page(body='{"choices": null}', media_type="application/json")], "unreachable"),
        ([Page(body='{"error": "x"}', media_type="application/json")], "unreachable"),
        ([Page(body='{"choi', media_type="application/json")], "unreachable"),
        ([Page(body="")], "unreachable"),
        ([DOWN], "unreachable"),
        ([Failure(status=401, message="Bad key sk-123")], "unreachable"),
        ([Failure(status=400, message="Context is too long")], "unreachable"),
        ([rate_limited(), rate_limited()], "overloaded"),
        ([rate_limited(60_000)], "overloaded"),
    ],
)
async def test_failure_has_a_kind_and_a_sentence(
    model: OpenAIServer, replies: list[Reply], kind: Kind
) -> None:
    model.enqueue(*replies)
    found = await failure(seconds=30.0)
    assert found.kind == kind
    assert found.said.endswith((".", "Context is too long", "Bad words"))
    assert all(secret not in found.said for secret in ("internal", "sk-123", "127.0.0.1", "Error"))
    assert len(model.requests) == len(replies)
    assert found.first


async def test_answer_that_is_whole_in_spite_of_its_length_counts(model: OpenAIServer) -> None:
    model.enqueue(say_json(OSLO, finish="length"))
    assert await city() == City(**OSLO)


async def test_full_endpoint_is_asked_again_when_it_says(model: OpenAIServer) -> None:
    model.enqueue(rate_limited(), say_json(OSLO))
    assert await city() == City(**OSLO)


async def test_closed_port_is_unreachable(no_model: pytest.MonkeyPatch) -> None:
    with OpenAIServer() as server:
        address = server.base_url
    no_model.setenv("OPENAI_BASE_URL", address)
    assert (await failure()).kind == "unreachable"


async def test_stalled_endpoint_is_late(
    model: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.fallback = say("never sent", gate=model.gate())
    found = await failure(seconds=0.2)
    assert (found.kind, found.said) == ("late", "The model did not answer within 0.2 seconds.")
    monkeypatch.setenv("OPENAI_TIMEOUT", "0.2")
    found = await failure(seconds=60.0)
    assert (found.kind, found.said) == ("late", "The model did not answer in time.")


async def test_problem_is_quoted_in_bounds(model: OpenAIServer) -> None:
    model.enqueue(say_json({f"x{n}": "y" * 99 for n in range(999)} | {"name": "z" * 99}), say("?"))
    assert (await failure()).kind == "unusable"
    asked = model.bodies[-1]["messages"]
    assert len(asked[1]["content"]) == 2_000
    assert "people: Field required" in asked[2]["content"]
    assert len(asked[2]["content"]) < 1_500


# --- the time of a run


async def test_calls_of_a_run_share_its_time(
    model: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_TURN_SECONDS", "0.3")
    model.fallback = say("never sent", gate=model.gate())
    assert (await failure(of(run="1"))).kind == "late"
    sent = len(model.requests)
    assert (await failure(of(run="1"))).kind == "late"
    assert len(model.requests) == sent
    # Other runs, other tenants and calls with their own time have theirs.
    monkeypatch.setenv("OPENAI_TURN_SECONDS", "60")
    model.fallback = say_json(OSLO)
    waits.shared.add(("acme", "1"), 60.0)
    assert (await failure(of(run="1"))).kind == "late"
    for config in (of(run="2"), of("zeta", run="1"), of()):
        assert await city(config) == City(**OSLO)
    assert await city(of(run="1"), seconds=60.0) == City(**OSLO)


# --- the breaker


async def test_breaker_opens_after_three_failures_in_a_row(
    model: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    model.enqueue(DOWN, PAGE, say_json(OSLO), DOWN, rate_limited(60_000))
    kinds = [(await failure()).kind for _ in range(2)]
    await city()
    kinds += [(await failure()).kind for _ in range(2)]
    model.fallback = DOWN
    kinds.append((await failure()).kind)
    assert kinds == ["unreachable"] * 3 + ["overloaded", "unreachable"]
    sent = len(model.requests)
    paused = [await failure() for _ in range(3)]
    assert [(each.kind, each.first) for each in paused] == [
        ("paused", True),
        ("paused", False),
        ("paused", False),
    ]
    assert len(model.requests) == sent
    said = [each.message for each in caplog.records if each.name == "my_agent.breaker"]
    assert len(said) == 1
    # Work that counts its own calls is not paused.
    model.fallback = say_json(OSLO)
    assert await city(once=True) == City(**OSLO)
    assert await city() == City(**OSLO)


async def test_failures_of_one_request_do_not_open_it(model: OpenAIServer) -> None:
    model.enqueue(
        *[Answer(refusal="No.")] * 3, *[Failure(status=400, message="Context is too long")] * 3
    )
    assert [(await failure()).kind for _ in range(6)] == ["refused"] * 3 + ["unreachable"] * 3
    model.enqueue(say_json(OSLO))
    await city()


async def test_no_tenant_pauses_the_model_of_another(model: OpenAIServer) -> None:
    model.fallback = DOWN
    for _ in range(3):
        await failure()
    assert (await failure()).kind == "paused"
    model.fallback = say_json(OSLO)
    assert await city(of("zeta")) == City(**OSLO)
    assert (await failure()).kind == "paused"


async def test_after_a_pause_one_call_tries(
    model: OpenAIServer, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    model.fallback = DOWN
    for _ in range(3):
        await failure()
    clock.now += PAUSE - 1
    assert (await failure()).kind == "paused"
    clock.now += 1
    # One that fails begins another minute, and is not told again.
    assert (await failure()).kind == "unreachable"
    again = await failure()
    assert (again.kind, again.first) == ("paused", False)
    clock.now += PAUSE
    gate = model.gate()
    arrived = threading.Event()

    def held(request: Received) -> Reply:
        arrived.set()
        return Answer(tokens=[json.dumps(OSLO)], gate=gate)

    model.fallback = held
    trying = asyncio.create_task(city())
    assert await asyncio.to_thread(arrived.wait, 60)
    assert (await failure()).kind == "paused"
    gate.open()
    assert await trying == City(**OSLO)
    model.fallback = say_json(OSLO)
    assert await city() == City(**OSLO)
    said = [each.message for each in caplog.records if each.name == "my_agent.breaker"]
    assert ["in a row" in said[0], "again" in said[1], len(said)] == [True, True, 2]


async def test_cancelled_call_is_neither_a_failure_nor_held(
    model: OpenAIServer, clock: Clock
) -> None:
    model.fallback = DOWN
    for _ in range(3):
        await failure()
    clock.now += PAUSE
    for _ in range(2):
        # Each is the one that may try: the one before has left.
        arrived = threading.Event()

        def silent(request: Received, arrived: threading.Event = arrived) -> Reply:
            arrived.set()
            return say("never sent", gate=model.gate())

        model.fallback = silent
        task = asyncio.create_task(ask(of(), seconds=60.0))
        assert await asyncio.to_thread(arrived.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    model.fallback = say_json(OSLO)
    assert await city() == City(**OSLO)


def test_memory_of_failures_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breaker, "MOST", 10)
    made = Breaker(Clock())
    for number in range(100):
        for _ in range(3):
            made.failed((f"tenant-{number}", "", ""))
    assert made.enter(("tenant-0", "", "")) is None
    assert made.enter(("tenant-99", "", "")) is not None


# --- answers in words


async def words(**options: Any) -> str:
    model = await asyncio.to_thread(chat_model)
    return str((await answer(model, ASKED, config=of(), seconds=60.0, **options)).text)


@pytest.fixture
def without_retries(no_model: pytest.MonkeyPatch) -> None:
    no_model.setenv("OPENAI_MAX_RETRIES", "0")


@pytest.mark.usefixtures("without_retries")
@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (PAGE, "no answer"),
        (Page(body='{"choices": []}', media_type="application/json"), "no answer"),
        (DOWN, "failed (500)"),
        (say(""), "empty answer. Send"),
        (Answer(finish="content_filter"), "content filter stopped"),
        (Answer(finish="length"), "maximum length without"),
    ],
)
async def test_words_that_fail_raise_a_sentence(
    model: OpenAIServer, reply: Reply, said: str
) -> None:
    model.enqueue(reply)
    with pytest.raises(ModelCallError) as caught:
        await words()
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "reply", [PAGE, Page(body='{"choices": []}', media_type="application/json"), DOWN]
)
@pytest.mark.usefixtures("without_retries")
async def test_stream_that_is_none_raises_a_sentence(model: OpenAIServer, reply: Reply) -> None:
    model.enqueue(reply)
    endpoint = await asyncio.to_thread(chat_model)
    with pytest.raises(ModelCallError):
        [chunk async for chunk in endpoint.astream(ASKED)]


async def test_refusal_is_the_answer_unless_it_is_an_error(model: OpenAIServer) -> None:
    model.fallback = Answer(refusal="I will not say.")
    assert await words() == "I will not say."
    with pytest.raises(LookupError):
        await words(errors={"refused": LookupError})


@pytest.mark.usefixtures("without_retries")
async def test_words_count_for_the_breaker_and_pass_it(model: OpenAIServer) -> None:
    model.fallback = DOWN
    for _ in range(4):
        with pytest.raises(ModelCallError, match="500"):
            await words()
    assert len(model.requests) == 4
    assert (await failure()).kind == "paused"
    model.fallback = say_json(OSLO)
    await words()
    assert await city() == City(**OSLO)
