"""The graph `tutor` through its product routes, as a web client uses them."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.openai_replies import Answer, Failure, say
from tests.support.openai_server import OpenAIServer
from tests.support.policy import Member, member
from tests.support.processes import Running
from tests.support.served import Event
from tests.support.tutor import (
    RIGHT,
    WRONG,
    asked,
    data,
    found,
    is_review,
    of_endpoint,
    teach,
    tutoring,
)

pytestmark = pytest.mark.usefixtures("each_database")

HAS = ("agreement", "has", "have")


@pytest.fixture(scope="module")
def online(
    each_database: str, endpoint: OpenAIServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    with tutoring(tmp_path_factory.mktemp("tutor"), **of_endpoint(endpoint)) as server:
        yield server


@pytest.fixture
def model(endpoint: OpenAIServer) -> OpenAIServer:
    """Return the server's scripted endpoint, reset for each test."""
    endpoint.reset()
    teach(endpoint)
    return endpoint


@pytest.fixture
async def ada(online: Running, model: OpenAIServer) -> AsyncIterator[Member]:
    async with member(online) as client:
        yield client


async def chat(client: Member, message: str, thread: str | None = None) -> list[Event]:
    """Send a message and return all events of the answer."""
    body = {"message": message} | ({"thread_id": thread} if thread else {})
    return await client.events("POST", "/tutor/chat", body)


async def lesson(client: Member, message: str, thread: str | None = None) -> str:
    """Send a message, wait for the answer, and return the thread."""
    events = await chat(client, message, thread)
    assert events[-1].name == "end", events
    return str(data(events[0])["thread_id"])


async def view(client: Member, thread: str, what: str) -> Any:
    return await client.get(f"/tutor/threads/{thread}/{what}")


async def talk(client: Member, thread: str) -> list[tuple[str, str]]:
    """Return role and text of each message."""
    kept = (await view(client, thread, "messages"))["messages"]
    return [(each["role"], each["content"]) for each in kept]


async def corrections(client: Member, thread: str) -> list[Any]:
    kept: list[Any] = (await view(client, thread, "corrections"))["corrections"]
    return kept


# --- one message


async def test_answer_streams_before_its_correction(ada: Member, model: OpenAIServer) -> None:
    teach(
        model,
        reply=say("What colour is it?"),
        review=found(HAS, ("article", "a", "an"), explanation="I have."),
    )
    events = await chat(ada, WRONG)
    names = [event.name for event in events]
    assert names == ["thread_id", *["token"] * 4, "correction", "end"]
    began, correction, end = data(events[0]), data(events[-2]), data(events[-1])
    assert "".join(data(each)["content"] for each in events[1:-2]) == "What colour is it?"
    assert correction == {
        "message_id": began["message_id"],
        "original": WRONG,
        "corrected": RIGHT,
        "issues": [
            {
                "type": "agreement",
                "start": 2,
                "end": 5,
                "original": "has",
                "replacement": "have",
                "message": "Not 'has'.",
                "sources": ["model", "rules", "harper"],
            },
            {
                "type": "article",
                "start": 6,
                "end": 7,
                "original": "a",
                "replacement": "an",
                "message": "Not 'a'.",
                "sources": ["model", "harper"],
            },
        ],
        "explanation": "I have.",
        "checked_by": ["model", "rules", "harper"],
        "degraded": None,
    }
    check = {"checked_by": ["model", "rules", "harper"], "degraded": None, "issues": 2}
    assert end["checks"] == [{"message_id": began["message_id"], **check}]
    thread = began["thread_id"]
    assert await view(ada, thread, "corrections") == {
        "thread_id": thread,
        "corrections": [correction],
    }
    kept = await view(ada, thread, "messages")
    assert kept["thread_id"] == thread
    assert [(each["role"], each["content"]) for each in kept["messages"]] == [
        ("user", WRONG),
        ("assistant", "What colour is it?"),
    ]
    assert kept["messages"][0]["id"] == began["message_id"]
    assert kept["messages"][1] == end["message"]
    assert kept["messages"][0].pop("check") == check
    for each in kept["messages"]:
        assert each.keys() == {"id", "role", "content", "timestamp"}
        assert datetime.fromisoformat(each["timestamp"]).tzinfo is not None
    assert await ada.status(thread, began["run_id"]) == "success"


async def test_tokens_arrive_before_the_answer_ends(ada: Member, model: OpenAIServer) -> None:
    gate = model.gate()
    teach(model, reply=say("one two three", gate=gate))
    received = []
    async with asyncio.timeout(60), ada.stream("POST", "/tutor/chat", {"message": "Hi."}) as events:
        async for event in events:
            if event.name != "end":
                # The endpoint sends the next token only now. If any layer collected the tokens,
                # this would time out.
                gate.open()
            received.append((event.name, data(event).get("content")))
    assert received[1:4] == [("token", "one "), ("token", "two "), ("token", "three")]


async def test_correct_message_has_no_correction(ada: Member) -> None:
    events = await chat(ada, "I have an apple.")
    assert "correction" not in {event.name for event in events}
    thread = data(events[0])["thread_id"]
    assert await corrections(ada, thread) == []
    assert (await view(ada, thread, "summary"))["issues"] == 0


async def test_model_reads_the_earlier_conversation(ada: Member, model: OpenAIServer) -> None:
    thread = await lesson(ada, "I am Ada.")
    teach(model, reply=say("Ada."), review=found(("spelling", "nam", "name")))
    assert await lesson(ada, "What is my nam?", thread) == thread
    said = [(each["role"], each["content"]) for each in asked(model)[-1]["messages"][1:]]
    assert said == [("user", "I am Ada."), ("assistant", "Well said."), ("user", "What is my nam?")]
    # The correcting model reads only the message and the answer before it.
    said = [
        (each["role"], each["content"]) for each in asked(model, review=True)[-1]["messages"][1:]
    ]
    assert said[0] == ("assistant", "Well said.")
    offered = json.loads(said[1][1])
    assert (said[1][0], offered["message"]) == ("user", "What is my nam?")
    assert [(each["text"], each["replacement"]) for each in offered["findings"]] == [
        ("nam", "name")
    ]
    assert [role for role, _ in await talk(ada, thread)] == ["user", "assistant"] * 2
    assert [each["corrected"] for each in await corrections(ada, thread)] == ["What is my name?"]


async def test_summary_covers_all_corrections_of_the_thread(
    ada: Member, model: OpenAIServer
) -> None:
    thread = await lesson(ada, WRONG)
    await lesson(ada, "He have a dog.", thread)
    calls = len(model.requests)
    summary = await view(ada, thread, "summary")
    assert summary["thread_id"] == thread
    assert (summary["corrections"], summary["issues"]) == (2, 3)
    assert [(each["type"], each["count"]) for each in summary["by_type"]] == [("agreement", 3)]
    assert {each["original"] for each in summary["by_type"][0]["examples"]} == {"have", "has", "a"}
    assert summary["advice"]
    assert len(model.requests) == calls


# --- failures of the model


async def test_invalid_review_is_retried_once(ada: Member, model: OpenAIServer) -> None:
    reviews = [say("All fine!"), found(("word_choice", "thing", "fruit"))]
    model.fallback = lambda request: reviews.pop(0) if is_review(request) else say("Yes.")
    thread = await lesson(ada, "It is a thing.")
    assert [each["corrected"] for each in await corrections(ada, thread)] == ["It is a fruit."]
    assert len(asked(model, review=True)) == 2


@pytest.mark.parametrize(
    ("review", "calls", "degraded"),
    [
        (say("All fine!"), 2, "invalid"),
        (say(""), 2, "invalid"),
        (found(("spelling", "words that are not there", "x")), 2, "invalid"),
        (Answer(tokens=["{"], ending="closed"), 1, "unreachable"),
        (say('{"issues": [{"ty', finish="length"), 1, "length"),
        (say("I cannot", finish="content_filter"), 1, "refused"),
        (Failure(status=500, message="down"), 1, "unreachable"),
        (Failure(status=400, message="response_format is not supported"), 1, "invalid"),
    ],
)
async def test_local_checks_correct_without_valid_review(
    ada: Member,
    model: OpenAIServer,
    online: Running,
    review: Answer | Failure,
    calls: int,
    degraded: str,
) -> None:
    model.fallback = lambda request: review if is_review(request) else say("Yes.")
    thread = await lesson(ada, WRONG)
    [correction] = await corrections(ada, thread)
    assert correction["corrected"] == RIGHT
    assert {s for each in correction["issues"] for s in each["sources"]} == {"rules", "harper"}
    assert (correction["checked_by"], correction["degraded"]) == (["rules", "harper"], degraded)
    assert len(asked(model, review=True)) == calls
    # A message without findings is not called right.
    thread = await lesson(ada, "All is well.")
    [check] = [
        each["check"]
        for each in (await view(ada, thread, "messages"))["messages"]
        if "check" in each
    ]
    assert check == {"checked_by": ["rules", "harper"], "degraded": degraded, "issues": 0}
    assert "eview" in online.log.read_text()


async def test_message_of_failed_answer_is_answered_with_the_next(
    ada: Member, model: OpenAIServer
) -> None:
    model.fallback = lambda request: (
        found(HAS) if is_review(request) else Failure(status=429, message="Slow down")
    )
    events = await chat(ada, WRONG)
    assert [events[0].name, events[-1].name] == ["thread_id", "error"]
    assert "rate limit" in data(events[-1])["message"]
    assert {"end", "correction"}.isdisjoint(event.name for event in events)
    thread = data(events[0])["thread_id"]
    assert await talk(ada, thread) == [("user", WRONG)]
    teach(model, reply=say("Here I am."))
    again = await chat(ada, "He have a dog.", thread)
    assert [event.name for event in again].count("correction") == 2
    assert [role for role, _ in await talk(ada, thread)] == ["user", "user", "assistant"]
    kept = await corrections(ada, thread)
    assert [each["original"] for each in kept] == [WRONG, "He have a dog."]
    assert [each["message_id"] for each in kept] == [
        data(events[0])["message_id"],
        data(again[0])["message_id"],
    ]


# --- requests of clients


async def test_concurrent_messages_are_answered_in_order(ada: Member, model: OpenAIServer) -> None:
    thread = await lesson(ada, "Hello.")
    gate = model.gate()
    teach(model, reply=say("Yes.", gate=gate))
    first = {"message": "I has a dog.", "thread_id": thread}
    async with asyncio.timeout(60), ada.stream("POST", "/tutor/chat", first) as one:
        assert (await anext(one)).name == "thread_id"
        second = {"message": "He have a cat.", "thread_id": thread}
        async with ada.stream("POST", "/tutor/chat", second) as two:
            # The second message is accepted before the first one is answered.
            assert (await anext(two)).name == "thread_id"
            gate.open(2)
            assert [event.name async for event in one][-1] == "end"
            assert [event.name async for event in two][-1] == "end"
    assert (await talk(ada, thread))[2:] == [
        ("user", "I has a dog."),
        ("assistant", "Yes."),
        ("user", "He have a cat."),
        ("assistant", "Yes."),
    ]
    assert [each["original"] for each in await corrections(ada, thread)] == [
        "I has a dog.",
        "He have a cat.",
    ]
    # Timestamps are the times of sending, not of processing.
    kept = (await view(ada, thread, "messages"))["messages"]
    assert kept[4]["timestamp"] <= kept[3]["timestamp"]


async def test_run_continues_after_client_disconnects(ada: Member, model: OpenAIServer) -> None:
    gate = model.gate()
    teach(model, reply=say("one two", gate=gate))
    gate.open()
    async with asyncio.timeout(60), ada.stream("POST", "/tutor/chat", {"message": WRONG}) as events:
        began = data(await anext(events))
        assert (await anext(events)).name == "token"
    gate.open()
    assert await ada.ended(began["thread_id"], began["run_id"]) == "success"
    assert await talk(ada, began["thread_id"]) == [("user", WRONG), ("assistant", "one two")]
    assert [each["corrected"] for each in await corrections(ada, began["thread_id"])] == [RIGHT]


async def test_cancelled_answer_is_reported_as_error(ada: Member, model: OpenAIServer) -> None:
    gate = model.gate()
    teach(model, reply=say("one two", gate=gate))
    gate.open()
    async with asyncio.timeout(60), ada.stream("POST", "/tutor/chat", {"message": "Hi."}) as events:
        began = data(await anext(events))
        assert (await anext(events)).name == "token"
        await ada.post(f"/threads/{began['thread_id']}/runs/{began['run_id']}/cancel")
        assert [event.name async for event in events] == ["error"]
    assert await talk(ada, began["thread_id"]) == [("user", "Hi.")]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({}, "message: Field required"),
        ({"message": ""}, "message: must not be blank"),
        ({"message": " \n\t"}, "message: must not be blank"),
        ({"message": "x" * 4001}, "message: must have at most 4000 characters; it has 4001"),
        ({"message": 5}, "message: Input should be a valid string"),
        ({"message": None}, "message: Input should be a valid string"),
        ({"message": "hi", "thread_id": 5}, "thread_id: Input should be a valid string"),
        ({"message": "hi", "more": 1}, "more: Extra inputs"),
        ([], "body: Input should be an object"),
        ("{", "body: Invalid JSON"),
        ("", "body: Invalid JSON"),
        ('{"message": "\\ud800"}', "body: Invalid JSON"),
    ],
)
async def test_invalid_message_is_rejected_and_not_stored(
    ada: Member, model: OpenAIServer, body: Any, problem: str
) -> None:
    content = {"content": body} if isinstance(body, str) else {"json": body}
    answer = await ada.http.post("/tutor/chat", **content)
    assert answer.status_code == 422
    assert problem in answer.json()["detail"]
    assert await ada.found() == []
    assert model.requests == []


async def test_longest_and_unusual_messages_are_answered(ada: Member, model: OpenAIServer) -> None:
    strange = "Null \x00, emoji 😂, accents é, “quotes”, <b>tags</b> and \u202eothers."
    for text in ("A word. " * 500, strange):
        # The platform stores no text with a NUL character.
        kept = text.replace("\x00", "\ufffd")
        assert (await talk(ada, await lesson(ada, text)))[0] == ("user", kept)
        assert asked(model)[-1]["messages"][-1]["content"] == kept


UNKNOWN = "0190a000-0000-7000-8000-000000000001"
NOWHERE = ["x", "", "0", "../secret", "None", UNKNOWN, UNKNOWN + "0", "thread_" + UNKNOWN]


@pytest.mark.parametrize("thread", NOWHERE)
async def test_unknown_thread_is_not_created(ada: Member, model: OpenAIServer, thread: str) -> None:
    answer = await ada.http.post("/tutor/chat", json={"message": "hi", "thread_id": thread})
    assert answer.status_code == 404
    assert "not found" in answer.json()["detail"]
    for what in ("messages", "corrections", "summary"):
        assert (await ada.http.get(f"/tutor/threads/{thread}/{what}")).status_code == 404
    assert await ada.found() == []
    assert model.requests == []


async def test_deleted_thread_is_unknown(ada: Member) -> None:
    thread = await lesson(ada, "Hello.")
    await ada.http.delete(f"/threads/{thread}")
    answer = await ada.http.post("/tutor/chat", json={"message": "hi", "thread_id": thread})
    assert answer.status_code == 404


async def test_thread_of_other_graph_is_rejected(ada: Member, model: OpenAIServer) -> None:
    thread = await ada.thread()
    await ada.ended(thread, await ada.run(thread, "echo", {"value": 1}))
    before = await ada.get(f"/threads/{thread}/state")
    answer = await ada.http.post("/tutor/chat", json={"message": "hi", "thread_id": thread})
    assert answer.status_code == 409
    assert answer.json()["error"] == "other_graph"
    for what in ("messages", "corrections", "summary"):
        assert (await ada.http.get(f"/tutor/threads/{thread}/{what}")).status_code == 409
    assert await ada.get(f"/threads/{thread}/state") == before
    assert model.requests == []


async def test_thread_of_other_agent_is_rejected(ada: Member) -> None:
    thread = await ada.thread(agent="echo")
    answer = await ada.http.post("/tutor/chat", json={"message": "hi", "thread_id": thread})
    assert answer.status_code == 409
    assert "'echo'" in answer.json()["detail"]


async def test_thread_without_runs_is_empty(ada: Member) -> None:
    thread = await ada.thread(topic="fruit")
    assert await view(ada, thread, "messages") == {"thread_id": thread, "messages": []}
    assert await corrections(ada, thread) == []
    assert await lesson(ada, "Hello.", thread) == thread
    assert len(await talk(ada, thread)) == 2


# --- users and tenants


@pytest.mark.parametrize(("tenant", "roles"), [("t1", ()), ("t2", ()), ("t2", ("tenant_admin",))])
async def test_conversation_is_private_to_its_user(
    ada: Member, online: Running, model: OpenAIServer, tenant: str, roles: tuple[str, ...]
) -> None:
    thread, nothing = await lesson(ada, WRONG), str(uuid4())
    before = await ada.get(f"/threads/{thread}/state")
    model.reset()
    async with member(online, None, tenant, *roles) as other:
        for known, unknown in (
            [
                await other.http.post("/tutor/chat", json={"message": "hi", "thread_id": each})
                for each in (thread, nothing)
            ],
            *[
                [
                    await other.http.get(f"/tutor/threads/{each}/{what}")
                    for each in (thread, nothing)
                ]
                for what in ("messages", "corrections", "summary")
            ],
        ):
            assert known.status_code == unknown.status_code == 404
            assert known.text == unknown.text.replace(nothing, thread)
        assert await other.found() == []
    assert await ada.get(f"/threads/{thread}/state") == before
    assert model.requests == []


async def test_same_user_name_in_other_tenant_is_another_user(ada: Member, online: Running) -> None:
    thread = await lesson(ada, WRONG)
    async with member(online, ada.name, "t2") as namesake:
        answer = await namesake.http.get(f"/tutor/threads/{thread}/messages")
    assert answer.status_code == 404


async def test_tenant_administrator_reads_the_conversation(ada: Member, online: Running) -> None:
    thread = await lesson(ada, WRONG)
    async with member(online, None, "t1", "tenant_admin") as admin:
        assert await talk(admin, thread) == await talk(ada, thread)


async def test_invalid_token_is_rejected(ada: Member) -> None:
    thread = await lesson(ada, WRONG)
    ada.http.headers["authorization"] = "Bearer nonsense"
    refused = [
        await ada.http.post("/tutor/chat", json={"message": "hi"}),
        await ada.http.post("/tutor/chat", json={"message": "hi", "thread_id": thread}),
        await ada.http.post("/tutor/chat", json={"message": ""}),
        await ada.http.post("/tutor/chat", json={"message": "hi", "thread_id": "x"}),
        *[
            await ada.http.get(f"/tutor/threads/{each}/{what}")
            for each in (thread, "x")
            for what in ("messages", "corrections", "summary")
        ],
    ]
    assert {answer.status_code for answer in refused} == {401}


# --- without a model


async def test_offline_harper_corrects_and_thread_is_kept(tmp_path: Path) -> None:
    with tutoring(tmp_path) as server:
        async with member(server) as client:
            events = await chat(client, WRONG)
            thread = data(events[0])["thread_id"]
            assert [event.name for event in events[-2:]] == ["correction", "end"]
            assert data(events[-2])["corrected"] == RIGHT
            said = "".join(data(event)["content"] for event in events if event.name == "token")
            assert "no language model is configured" in said
            await lesson(client, "All is well.", thread)
            # The plain API continues the same conversation.
            input = {"messages": [{"role": "user", "content": "He have a dog."}]}
            run = await client.run(thread, "tutor", input)
            assert await client.ended(thread, run) == "success"
            assert [each["corrected"] for each in await corrections(client, thread)] == [
                RIGHT,
                "He has a dog.",
            ]
            assert [role for role, _ in await talk(client, thread)] == ["user", "assistant"] * 3


# --- tenants


async def test_long_messages_of_a_tenant_do_not_delay_another_tenants_check(
    online: Running, model: OpenAIServer
) -> None:
    message = f"{WRONG} He go to the market yesterday and buyed a lots of apple. " * 55
    messages = [{"role": "user", "content": message[:3900]}] * 30
    async with member(online, tenant="bad") as bad, member(online, tenant="good") as good:
        threads = [await bad.thread() for _ in range(3)]
        begun = [
            (thread, await bad.run(thread, "tutor", {"messages": messages})) for thread in threads
        ]
        for each in begun:
            assert await bad.until(*each, "running", "success") == "running"
        started = time.monotonic()
        thread = await lesson(good, WRONG)
        # A check that waits for those of others ends at its own deadline, and is not named here.
        [found] = await corrections(good, thread)
        assert (found["original"], found["checked_by"]) == (WRONG, ["model", "rules", "harper"])
        # The deadline of a run's checks ends the backlog, too.
        for each in begun:
            assert await bad.until(*each, "success", "error", patience=120) == "success"
        assert time.monotonic() - started < 120
