"""Settings of the thread policy, its log and metrics, and its routes at a prefix."""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, Router

from hooks.thread_settings import ThreadSettings
from hooks.threads import ThreadPolicy
from langgraph_runtime_sql.hooks import Reject, request_note
from langgraph_runtime_sql.ops.threads.end import sweep_hook
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.runtime import current
from langgraph_runtime_sql.tenancy import scope
from server.routes import POLICY
from tests.support import runtime
from tests.support.operations import row
from tests.support.policy import ACME, RUN, Member, member, policy_server
from tests.support.processes import Running
from threadhold.http import host_routes

pytestmark = pytest.mark.usefixtures("each_database")

PREFIX = "/api"

# --- settings, in this process ----------------------------------------------


@pytest.fixture(scope="module")
def platform() -> Iterator[None]:
    with runtime.serving("echo"):
        yield


@pytest.fixture
async def database(platform: None, tmp_path: Path) -> AsyncIterator[None]:
    async with runtime.opened(tmp_path / "settings.db"):
        yield


async def _opened(website: str = "acme.com") -> UUID:
    """Create a thread of a policy agent."""
    metadata = {"agent": "icp_finder", "website": website}
    made = await row(Threads.put(None, uuid4(), metadata=metadata, if_exists="raise"))
    return UUID(str(made["thread_id"]))


async def _statuses(*threads: UUID) -> list[str]:
    return [(await runtime.thread(each))["metadata"]["status"] for each in threads]


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["archived", "open"]),
        ({"auto_archive_stale_locked": False}, ["locked", "open"]),
        ({"thread_stale_days": 30}, ["locked", "open"]),
        ({"thread_policy_agents": ("other",)}, ["locked", "open"]),
    ],
    ids=str,
)
async def test_sweep_archives_stale_locked_threads_of_contexts_that_nobody_opens(
    given: dict[str, Any], expected: list[str]
) -> None:
    keeps = ThreadPolicy(ThreadSettings(auto_archive_stale_locked=False))
    current().hooks = keeps
    threads = [await _opened(), await _opened()]
    assert await _statuses(*threads) == ["locked", "open"]
    current().hooks = ThreadPolicy(ThreadSettings(**{"thread_stale_days": 0, **given}))
    with scope.within(scope.EVERYTHING):
        await sweep_hook()
    assert await _statuses(*threads) == expected


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["archived", "archived", "open"]),
        ({"auto_archive_stale_locked": False}, ["locked", "locked", "open"]),
        ({"single_thread_per_context": False}, ["open", "open", "open"]),
        ({"max_open_threads_per_agent": 2}, ["archived", "open", "open"]),
        ({"thread_stale_days": 30}, ["locked", "locked", "open"]),
    ],
    ids=str,
)
async def test_settings_limit_lock_and_archive_threads(
    given: dict[str, Any], expected: list[str]
) -> None:
    current().hooks = ThreadPolicy(ThreadSettings(**{"thread_stale_days": 0, **given}))
    assert await _statuses(*[await _opened() for _ in range(3)]) == expected


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "choose"),
        ({"return_user_strict": False}, "resume"),
        ({"thread_resume_window_days": 0}, None),
    ],
    ids=str,
)
async def test_settings_decide_whether_resolve_resumes(
    given: dict[str, Any], said: str | None
) -> None:
    current().hooks = ThreadPolicy(ThreadSettings(**given))
    first, last = await _opened(), await _opened("beta.io")
    metadata = {"agent": "icp_finder"}
    with request_note(resolve=True):
        asked = Threads.put(None, new := uuid4(), metadata=metadata, if_exists="raise")
        if said is None:
            await asked
        else:
            with pytest.raises(Reject) as refused:
                await asked
            assert refused.value.body["action"] == said
            assert refused.value.body.get("thread_id", str(last)) == str(last)
    opened = [first, last] if said else [first, last, new]
    assert await _statuses(*opened) == ["open"] * len(opened)


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(
    "given", [{"single_thread_per_context": False}, {"max_open_threads_per_agent": 3}], ids=str
)
async def test_replaced_thread_locks_whatever_the_limits(given: dict[str, Any]) -> None:
    current().hooks = ThreadPolicy(ThreadSettings(**given))
    left, bystander = await _opened(), await _opened("beta.io")
    with request_note(replaces=left):
        new = await _opened("beta.io")
    assert await _statuses(left, bystander, new) == ["locked", "open", "open"]


@pytest.mark.usefixtures("database")
async def test_replacing_a_thread_of_another_agent_is_404() -> None:
    current().hooks = ThreadPolicy(ThreadSettings(thread_policy_agents=("icp_finder", "other")))
    metadata = {"agent": "other", "website": "acme.com"}
    other = await row(Threads.put(None, uuid4(), metadata=metadata, if_exists="raise"))
    plain = await row(Threads.put(None, uuid4(), metadata={}, if_exists="raise"))
    for replaced in (UUID(str(other["thread_id"])), UUID(str(plain["thread_id"])), uuid4()):
        with request_note(replaces=replaced), pytest.raises(Reject) as refused:
            await _opened()
        assert refused.value.status_code == 404
    assert (await runtime.thread(UUID(str(other["thread_id"]))))["metadata"]["status"] == "open"


@pytest.mark.usefixtures("database")
async def test_policy_without_agents_is_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime.set_hooks(monkeypatch, ThreadPolicy(ThreadSettings(thread_policy_agents=())))
    for thread in (await _opened(), await _opened()):
        metadata = (await runtime.thread(thread))["metadata"]
        assert metadata == {"agent": "icp_finder", "website": "acme.com"}

    async def platform(request: Any) -> PlainTextResponse:
        return PlainTextResponse("the platform")

    stock = Router([Route("/{path:path}", platform, methods=["POST"])])
    monkeypatch.setattr(host_routes.here, "rest", stock)
    transport = httpx.ASGITransport(Starlette(routes=POLICY))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        for path in ("/threads/resolve", "/threads/x/resume", "/runs", "/threads/search"):
            assert (await client.post(path, json=ACME)).text == "the platform"


# --- a server where threads are stale at once, at a prefix ------------------


@pytest.fixture(scope="module")
def server(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("stale")
    with policy_server(
        folder, prefix=PREFIX, THREAD_STALE_DAYS="0", JWT_OPERATOR_TENANTS="t1"
    ) as started:
        yield replace(started, url=started.url + PREFIX)


@pytest.fixture
async def ana(server: Running) -> AsyncIterator[Member]:
    async with member(server, None, "t1", "operator") as client:
        yield client


async def test_policy_routes_are_served_at_the_prefix(server: Running, ana: Member) -> None:
    made = await ana.post("/threads/resolve", ACME)
    assert made["action"] == "create"
    thread = made["thread_id"]
    answer = await ana.http.post("/runs/wait", json=RUN)
    assert answer.json()["value"] == "a"
    assert thread in answer.headers["content-location"]
    assert (await ana.post(f"/threads/{thread}/resume"))["action"] == "resume"
    async with member(replace(server, url=server.url.removesuffix(PREFIX))) as outside:
        assert (await outside.http.post("/threads/resolve", json=ACME)).status_code == 404


async def test_stale_threads_are_archived_and_hidden_from_searches(ana: Member) -> None:
    old = [await ana.open() for _ in range(4)]
    last = old.pop()
    assert await ana.policy_statuses(*old, last) == ["archived"] * 3 + ["open"]
    metadata = await ana.metadata(old[0])
    assert metadata["locked_at"]
    assert metadata["archived_at"]
    assert metadata["reason"] == "superseded"
    await _assert_hidden(ana, old, last)
    answer = await ana.http.post(f"/threads/{old[0]}/runs", json=RUN)
    assert (answer.status_code, answer.json()["status"]) == (409, "archived")
    resumed = await ana.post(f"/threads/{old[0]}/resume")
    assert resumed["action"] == "create"
    assert await ana.policy_statuses(old[0], last, resumed["thread_id"]) == [
        "archived",
        "archived",
        "open",
    ]


async def _assert_hidden(ana: Member, old: list[str], last: str) -> None:
    def ids(rows: Any) -> set[str]:
        return {row["thread_id"] for row in rows}

    assert ids(await ana.found()) == {last}
    assert ids(await ana.found(metadata={"agent": "echo"})) == {last}
    assert ids(await ana.found(ids=[*old, last])) == {last}
    assert ids(await ana.found(include_archived=False)) == {last}
    assert ids(await ana.found(include_archived=True)) == {*old, last}
    assert ids(await ana.found(metadata={"status": "archived"})) == set(old)
    assert ids(await ana.found(metadata={"status": "open"})) == {last}
    assert await ana.found("/threads/count") == 1
    assert await ana.found("/threads/count", include_archived=True) == 4
    assert await ana.found("/threads/count", metadata={"status": "archived"}) == 3
    answer = await ana.http.post("/threads/search", json={"limit": 1})
    assert "x-pagination-next" not in answer.headers
    body = {"limit": 1, "include_archived": True}
    answer = await ana.http.post("/threads/search", json=body)
    assert answer.headers["x-pagination-next"] == "1"
    answer = await ana.http.post("/threads/search", json={"include_archived": "yes"})
    assert answer.status_code == 422
    assert (await ana.get(f"/threads/{old[0]}"))["thread_id"] == old[0]


# --- decisions --------------------------------------------------------------


async def test_decisions_are_logged_and_counted(
    server: Running, ana: Member, tmp_path: Path
) -> None:
    morning = tmp_path / "morning"
    first = await ana.open(agent="sleeper")
    run = await ana.run(first, "sleeper", {"seconds": 60, "until": str(morning)})
    second = await ana.open(agent="sleeper")
    morning.touch()
    await ana.ended(first, run)
    refused = await ana.http.post(f"/threads/{first}/runs", json=RUN)
    assert refused.status_code == 409
    await ana.post("/threads/resolve", {"agent": "sleeper"})
    third = await ana.open("beta.io", agent="sleeper")
    await ana.post("/threads/resolve", {"agent": "sleeper"})
    bad = {"metadata": {"agent": "sleeper", "website": "not one"}}
    assert (await ana.http.post("/threads", json=bad)).status_code == 422
    fourth = await ana.open(agent="sleeper")
    decided = decisions(server, "sleeper")
    logged = [(line["action"], line["thread_id"]) for line in decided]
    assert logged[:7] == [
        ("thread_created", first),
        ("thread_pending_lock", first),
        ("thread_created", second),
        ("thread_locked", first),
        ("run_gated", first),
        ("thread_resumed", second),
        ("thread_created", third),
    ]
    assert logged[7][0] == "thread_choice"
    assert sorted(logged[8:]) == sorted(
        [("thread_archived", first), ("thread_archived", second), ("thread_created", fourth)]
    )
    assert (decided[1]["by"], decided[1]["reason"]) == (second, "superseded")
    assert decided[4]["status"] == "locked"
    metrics = (await ana.http.get("/metrics")).text
    for action in {action for action, _ in logged}:
        number = float(sum(each == action for each, _ in logged))
        line = "threadhold_thread_decisions_total"
        assert f'{line}{{action="{action}",agent="sleeper"}} {number}' in metrics


def decisions(server: Running, agent: str) -> list[dict[str, Any]]:
    """Return the lines of the log about an agent's threads."""
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    return [
        line
        for line in lines
        if line["event"] == "Thread policy applied" and line["agent"] == agent
    ]
