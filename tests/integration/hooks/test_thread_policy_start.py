"""Requests without a thread: the policy resumes one, offers a choice or creates one."""

import asyncio
import json
from functools import partial
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk import get_client, get_sync_client
from langgraph_sdk.errors import ConflictError

from tests.support import policy
from tests.support.policy import (
    ACME,
    NOWHERE,
    ORIGIN,
    RUN,
    Member,
    headers,
    member,
)
from tests.support.processes import Running
from tests.support.served import client

pytestmark = pytest.mark.usefixtures("each_database")

server, ana = policy.server, policy.ana


async def _resolve(ana: Member, **body: Any) -> Any:
    return await ana.post("/threads/resolve", body)


# --- resolve ----------------------------------------------------------------


async def test_resolve_creates_resumes_or_offers_a_choice(ana: Member) -> None:
    made = await _resolve(ana, **ACME)
    assert made["action"] == "create"
    acme = made["thread_id"]
    assert await ana.policy_status(acme) == "open"
    assert (await ana.metadata(acme))["website"] == "acme.com"
    resumed = {"action": "resume", "thread_id": acme}
    assert await _resolve(ana, agent="echo", website="https://WWW.acme.com/") == resumed
    assert await _resolve(ana, agent="echo") == resumed
    assert await _resolve(ana, agent="echo", website="", rule_name=" ") == resumed
    beta = (await _resolve(ana, agent="echo", website="beta.io"))["thread_id"]
    rule = (await _resolve(ana, agent="echo", rule_name="My rule", payload={"a": 1}))["thread_id"]
    assert await _resolve(ana, **ACME) == resumed
    assert await _resolve(ana, agent="echo", rule_name="My rule", payload={"a": 1.0}) == {
        "action": "resume",
        "thread_id": rule,
    }
    choice = await _resolve(ana, agent="echo")
    assert choice["action"] == "choose"
    assert [(each["thread_id"], each["label"]) for each in choice["candidates"]] == [
        (rule, "My rule"),
        (beta, "beta.io"),
        (acme, "acme.com"),
    ]
    assert choice["message"].startswith("You have 3 open sessions: My rule, beta.io and acme.com.")
    assert len(await ana.found()) == 3


async def test_resolve_lists_the_three_latest_candidates(ana: Member) -> None:
    for number in range(5):
        await ana.open(f"c{number}.com")
    choice = await _resolve(ana, agent="echo")
    assert [each["label"] for each in choice["candidates"]] == ["c4.com", "c3.com", "c2.com"]
    assert "5 open sessions" in choice["message"]


async def test_resolve_resumes_only_open_threads_of_the_user(server: Running, ana: Member) -> None:
    await ana.open()
    last = await ana.open()
    await ana.open(agent="sleeper")
    assert await _resolve(ana, agent="echo") == {"action": "resume", "thread_id": last}
    async with (
        member(server) as bob,
        member(server, ana.name, "t2") as namesake,
        member(server, None, "t1", "tenant_admin") as admin,
    ):
        for other in (bob, namesake, admin):
            made = await _resolve(other, **ACME)
            assert made["action"] == "create"
            assert (await other.metadata(made["thread_id"]))["user_id"] == other.name
    assert await ana.policy_status(last) == "open"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ([], 422),
        ("", 422),
        ({"agent": 7}, 422),
        ({"agent": "echo", "website": 7}, 422),
        ({"agent": "echo", "website": "not a website"}, 422),
        ({"agent": "echo", "rule_name": "x" * 200}, 422),
        ({"agent": "echo", "rule_name": "a\0b"}, 422),
        ({"agent": "echo", "surprise": 1}, 422),
        ({"agent": "interrupt"}, 422),
        ({"agent": "nowhere"}, 422),
    ],
)
async def test_invalid_resolve_request_is_422_with_a_detail(
    ana: Member, body: Any, status: int
) -> None:
    answer = await ana.http.post("/threads/resolve", json=body)
    assert answer.status_code == status
    assert answer.json()["detail"]
    assert await ana.found() == []


async def test_one_of_fifty_concurrent_resolves_creates_the_thread(ana: Member) -> None:
    answers = await asyncio.gather(*(_resolve(ana, **ACME) for _ in range(50)))
    assert sorted(each["action"] for each in answers) == ["create"] + ["resume"] * 49
    assert len({each["thread_id"] for each in answers}) == 1
    assert len(await ana.found()) == 1


# --- runs without a thread --------------------------------------------------


@pytest.mark.parametrize("route", ["/runs/wait", "/runs/stream", "/runs"])
async def test_run_without_thread_creates_one_and_later_runs_continue_it(
    ana: Member, route: str
) -> None:
    places = []
    for _ in range(2):
        answer = await ana.http.post(route, json=RUN)
        assert answer.status_code == 200, answer.text
        _, _, thread, _, run = answer.headers["content-location"].split("/")
        assert await ana.ended(thread, run) == "success"
        places.append(thread)
    assert places[0] == places[1]
    assert (await ana.get(f"/threads/{places[0]}"))["values"]["count"] == 2
    assert await ana.policy_status(places[0]) == "open"


async def test_run_without_thread_takes_its_context_from_metadata(ana: Member) -> None:
    threads = {}
    for website in ("acme.com", "beta.io", "http://acme.com", "BETA.io"):
        body = {**RUN, "metadata": {"website": website}}
        answer = await ana.http.post("/runs/wait", json=body)
        threads[website] = answer.headers["content-location"].split("/")[2]
    assert threads["acme.com"] == threads["http://acme.com"]
    assert threads["beta.io"] == threads["BETA.io"]
    assert len(await ana.found()) == 2


async def test_run_without_thread_gets_a_choice_if_several_threads_are_open(ana: Member) -> None:
    acme, beta = await ana.open(), await ana.open("beta.io")
    waited = (await ana.http.post("/runs/wait", json=RUN)).json()
    [message] = waited["messages"]
    assert message["type"] == "ai"
    assert "beta.io and acme.com" in message["content"]
    choice = waited["thread_choice"]
    assert [each["thread_id"] for each in choice["candidates"]] == [beta, acme]
    [event] = await ana.events("POST", "/runs/stream", RUN)
    assert event.name == "values"
    assert json.loads(event.data)["thread_choice"] == choice
    answer = await ana.http.post("/runs", json=RUN)
    assert (answer.status_code, answer.json()["error"]) == (409, "thread_choice")
    assert answer.json()["candidates"] == choice["candidates"]
    for thread in (acme, beta):
        assert await ana.get(f"/threads/{thread}/runs") == []
    assert len(await ana.found()) == 2


async def test_stream_without_thread_sends_events_while_the_run_works(ana: Member) -> None:
    body = {"assistant_id": "sleeper", "input": {"seconds": 60}, "stream_mode": "updates"}
    async with ana.stream("POST", "/runs/stream", body) as events:
        first = await anext(events)
        # The run is still sleeping.
        assert first.name == "metadata"
        [thread] = await ana.found()
        assert thread["status"] == "busy"
        run = json.loads(first.data)["run_id"]
        await ana.post(f"/threads/{thread['thread_id']}/runs/{run}/cancel?wait=true")
        assert "error" not in [event.name async for event in events]


@pytest.mark.parametrize("named", ["graph", "system", "own"])
async def test_any_assistant_of_a_policy_agent_gets_its_thread(ana: Member, named: str) -> None:
    assistant = "echo"
    if named == "system":
        search = {"graph_id": "echo", "metadata": {"created_by": "system"}}
        [found] = await ana.post("/assistants/search", search)
        assistant = found["assistant_id"]
    elif named == "own":
        made = await ana.post("/assistants", {"graph_id": "echo", "name": "mine"})
        assistant = made["assistant_id"]
    answer = await ana.http.post("/runs/wait", json={**RUN, "assistant_id": assistant})
    assert answer.json()["value"] == "a"
    [thread] = await ana.found()
    assert thread["metadata"]["agent"] == "echo"
    assert thread["thread_id"] in answer.headers["content-location"]


async def test_stateless_runs_of_other_agents_keep_no_thread(ana: Member) -> None:
    body = {"assistant_id": "interrupt", "input": {}}
    answer = await ana.http.post("/runs/wait", json=body)
    assert "__interrupt__" in answer.json()
    run = (await ana.http.post("/runs", json=body)).json()
    assert await ana.until(run["thread_id"], run["run_id"], None) is None
    assert await ana.found() == []


@pytest.mark.parametrize(
    "body",
    [
        {"input": {}},
        {"assistant_id": 7},
        {"assistant_id": "nowhere"},
        {"assistant_id": NOWHERE},
        {**RUN, "multitask_strategy": "nonsense"},
        {**RUN, "stream_mode": 7},
        {**RUN, "webhook": "http://127.0.0.1/"},
        {**RUN, "command": {"resume": 1}},
        {**RUN, "metadata": {"website": "not a website"}},
        {**RUN, "metadata": {"status": "open"}},
        [RUN],
        "run",
    ],
)
@pytest.mark.parametrize("route", ["/runs/wait", "/runs/stream", "/runs"])
async def test_refused_run_without_thread_creates_no_thread(
    ana: Member, route: str, body: Any
) -> None:
    answer = await ana.http.post(route, json=body)
    assert 400 <= answer.status_code < 500
    assert answer.json()["detail"]
    assert await ana.found() == []


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000])
@pytest.mark.parametrize("route", ["/runs/wait", "/threads/resolve", "/threads/search"])
async def test_malformed_json_is_4xx_on_product_routes(
    ana: Member, route: str, content: bytes
) -> None:
    answer = await ana.http.post(
        route, content=content, headers={"content-type": "application/json"}
    )
    assert 400 <= answer.status_code < 500, answer.text


async def test_too_large_body_is_413_on_product_routes(ana: Member) -> None:
    async def pieces() -> Any:
        for _ in range(12):
            yield b"x" * 2**17

    for route in ("/runs/wait", "/threads/resolve", "/threads/search"):
        whole = await ana.http.post(route, content=b"x" * (2**20 + 2**16))
        streamed = await ana.http.post(route, content=pieces())
        assert (whole.status_code, streamed.status_code) == (413, 413)


async def test_fifty_concurrent_runs_without_thread_share_one_thread(ana: Member) -> None:
    answers = await asyncio.gather(*(ana.http.post("/runs/wait", json=RUN) for _ in range(50)))
    assert {answer.status_code for answer in answers} == {200}
    threads = {answer.headers["content-location"].split("/")[2] for answer in answers}
    assert len(threads) == 1
    runs = await ana.get(f"/threads/{threads.pop()}/runs?limit=100")
    assert [run["status"] for run in runs] == ["success"] * 50


async def test_runs_survive_concurrent_locks_of_their_thread(ana: Member) -> None:
    """A run is retried if its thread is locked after it was chosen."""
    body = {**RUN, "metadata": {"website": "acme.com"}}
    answers = await asyncio.gather(
        *(ana.http.post("/runs/wait", json=body) for _ in range(25)),
        *(ana.http.post("/threads", json={"metadata": ACME}) for _ in range(25)),
    )
    runs = answers[:25]
    # A run fails only if new threads lock its thread three times in a row.
    assert {answer.status_code for answer in runs} <= {200, 409}
    assert any(answer.status_code == 200 for answer in runs)
    for answer in runs:
        if answer.status_code == 409:
            assert answer.json()["error"] == "thread_locked"
    found = [row["metadata"]["status"] for row in await ana.found()]
    assert found.count("open") == 1


# --- the SDK ----------------------------------------------------------------


async def test_async_sdk_runs_without_a_thread(server: Running, ana: Member) -> None:
    async with get_client(url=server.url, headers=ana.headers) as sdk:
        seen: list[Any] = []
        state = await sdk.runs.wait(None, "echo", input={"value": "a"}, on_run_created=seen.append)
        assert isinstance(state, dict)
        assert state["value"] == "a"
        thread = seen[0]["thread_id"]
        parts = [
            part
            async for part in sdk.runs.stream(
                None, "echo", input={"value": "b"}, on_run_created=seen.append
            )
        ]
        assert parts[-1].data["value"] == "b"
        run = await sdk.runs.create(None, "echo", input={"value": "c"})
        assert [each["thread_id"] for each in seen] == [thread] * 2
        assert run["thread_id"] == thread
        await sdk.runs.join(thread, run["run_id"])
        await sdk.threads.create(graph_id="echo")
        with pytest.raises(httpx.HTTPStatusError, match="409"):
            await sdk.runs.wait(thread, "echo", input={"value": "d"})
        found = await sdk.threads.search(metadata={"status": "locked"})
        assert [row["thread_id"] for row in found] == [thread]


def test_sync_sdk_runs_without_a_thread(server: Running) -> None:
    with get_sync_client(url=server.url, headers=headers("t1", "sync")) as sdk:
        thread = sdk.threads.create(metadata=ACME)["thread_id"]
        state = sdk.runs.wait(None, "echo", input={"value": "a"})
        assert isinstance(state, dict)
        assert state["value"] == "a"
        assert len(sdk.runs.list(thread)) == 1
        parts = list(sdk.runs.stream(None, "echo", input={"value": "b"}))
        assert parts[-1].data["value"] == "b"
        newer = sdk.threads.create(metadata=ACME)["thread_id"]
        with pytest.raises(httpx.HTTPStatusError, match="409"):
            sdk.runs.wait(thread, "echo", input={"value": "c"})
        with pytest.raises(ConflictError, match="thread_locked"):
            sdk.threads.update_state(thread, {"value": "c"})
        sdk.threads.create(metadata={"agent": "echo", "website": "beta.io"})
        asked = sdk.runs.wait(None, "echo", input={"value": "d"})
        assert isinstance(asked, dict)
        assert asked["thread_choice"]["candidates"][1]["thread_id"] == newer
        [event] = list(sdk.runs.stream(None, "echo", input={"value": "d"}))
        assert event.event == "values"


# --- tokens and origins -----------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/threads/resolve", ACME),
        ("/threads/resolve", {"agent": 7}),
        ("/threads/resolve", {"agent": "interrupt"}),
        (f"/threads/{NOWHERE}/resume", {}),
        ("/runs", RUN),
        ("/runs/wait", RUN),
        ("/runs/stream", {**RUN, "assistant_id": NOWHERE}),
        ("/threads/search", {"include_archived": True}),
        ("/threads/search", {"include_archived": 7}),
        ("/threads/count", {"include_archived": True}),
    ],
)
async def test_every_policy_route_needs_a_valid_token(
    server: Running, path: str, body: Any
) -> None:
    async with client(server, authorization="Bearer nonsense") as nobody:
        answer = await nobody.http.post(path, json=body)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_listed_origin_gets_cors_headers_on_policy_routes(ana: Member) -> None:
    asked = {"origin": ORIGIN, "access-control-request-method": "POST"}
    for path in ("/threads/resolve", "/threads/x/resume", "/runs/wait"):
        preflight = await ana.http.options(path, headers=asked)
        assert preflight.headers["access-control-allow-origin"] == ORIGIN
    for body in (ACME, ACME, {"agent": 7}):
        answer = await ana.http.post("/threads/resolve", json=body, headers={"origin": ORIGIN})
        assert answer.headers["access-control-allow-origin"] == ORIGIN
        assert "content-location" in answer.headers["access-control-expose-headers"]


async def test_resolution_of_a_run_does_not_affect_later_requests(ana: Member) -> None:
    """Notes of the middleware about a request are gone after it."""
    await ana.post("/runs/wait", RUN)
    make = partial(ana.http.post, "/threads", json={"metadata": {"agent": "echo"}})
    first, second = (await make()).json(), (await make()).json()
    found = await ana.policy_statuses(first["thread_id"], second["thread_id"])
    assert found == ["locked", "open"]


@pytest.mark.parametrize("end", ["", "/wait", "/stream"])
async def test_repeated_start_without_a_thread_starts_one_run(ana: Member, end: str) -> None:
    """The policy gives each attempt the id of another new thread."""
    key = {"idempotency-key": uuid4().hex}
    body = {**RUN, "stream_resumable": True, "multitask_strategy": "enqueue"}
    first, again = [await ana.http.post(f"/runs{end}", json=body, headers=key) for _ in range(2)]
    assert (first.status_code, again.status_code) == (200, 200), again.text
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["content-location"] == first.headers["content-location"]
    [thread] = await ana.found()
    assert len(await ana.get(f"/threads/{thread['thread_id']}/runs")) == 1
    other = await ana.http.post(f"/runs{end}", json={**body, "input": {}}, headers=key)
    assert other.status_code == 422
