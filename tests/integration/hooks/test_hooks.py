"""Hooks are called on every route that creates a thread or a run, or writes state."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from langgraph_runtime_sql import hooks
from tests.support import databases
from tests.support.processes import GRAPHS, environment, free_port, running, threadhold

WAIT_SECONDS = 60.0


@dataclass
class Hooked:
    """A server with recording hooks."""

    client: httpx.AsyncClient
    record: Path

    def called(self, thread_id: str) -> list[str]:
        """Return the hooks that were called for a thread, in order."""
        lines = [json.loads(line) for line in self.record.read_text().splitlines()]
        named = [line for line in lines if line["thread"] == thread_id]
        return [line["hook"] for line in named if "hook" in line]

    def committed(self, thread_id: str) -> list[str]:
        """Return the changes of a thread whose commit hooks were told of."""
        lines = [json.loads(line) for line in self.record.read_text().splitlines()]
        named = [line for line in lines if line["thread"] == thread_id]
        return [line["committed"] for line in named if "committed" in line]

    async def post(self, path: str, body: Any = None) -> Any:
        answer = await self.client.post(path, json={} if body is None else body)
        assert answer.is_success, answer.text
        return answer.json()

    async def thread(self, **metadata: Any) -> str:
        return str((await self.post("/threads", {"metadata": metadata}))["thread_id"])


@pytest.fixture(scope="module")
def server(
    each_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("hooks")
    record = folder / "hooks.jsonl"
    record.touch()
    graphs = {name: f"{GRAPHS}/{name}.py:graph" for name in ("echo", "sleeper", "interrupt")}
    config = folder / "langgraph.json"
    config.write_text(json.dumps({"graphs": graphs, "sql": {"hooks": f"{GRAPHS}/hooks.py:policy"}}))
    port = free_port()
    command = threadhold("serve", "--config", config, "--port", str(port))
    command += ["--database-url", databases.url(folder / "hooks.db")]
    env = environment(HOOKS_RECORD=str(record), CRON_SCHEDULER_SLEEP_TIME="1")
    with running(command, port, folder, env) as started:
        yield started.url, record


@pytest.fixture
async def hooked(server: tuple[str, Path]) -> Any:
    url, record = server
    async with httpx.AsyncClient(base_url=url, timeout=WAIT_SECONDS) as client:
        yield Hooked(client, record)


HELLO = {"role": "user", "content": "hello"}
RUN = {"assistant_id": "echo", "input": {"value": "a"}}


async def test_thread_creation_calls_its_hook_and_stores_the_hooks_metadata(hooked: Hooked) -> None:
    thread = await hooked.thread(a=1)
    assert hooked.called(thread) == ["before_thread_create"]
    found = (await hooked.client.get(f"/threads/{thread}")).json()
    assert found["metadata"] == {"a": 1, "stamped": True}
    assert [
        row["thread_id"]
        for row in await hooked.post("/threads/search", {"metadata": {"stamped": True, "a": 1}})
    ] == [thread]


async def test_rejected_thread_is_not_created_and_the_answer_is_the_hooks(hooked: Hooked) -> None:
    thread = "01a20000-0000-7000-8000-000000000001"
    body = {"thread_id": thread, "metadata": {"refuse": "create"}}
    answer = await hooked.client.post("/threads", json=body)
    assert (answer.status_code, answer.json()) == (
        409,
        {"error": "refused", "what": "create", "id": thread},
    )
    assert (await hooked.client.get(f"/threads/{thread}")).status_code == 404


async def test_thread_patch_calls_its_hook_and_a_rejection_changes_nothing(hooked: Hooked) -> None:
    thread = await hooked.thread()
    answer = await hooked.client.patch(f"/threads/{thread}", json={"metadata": {"b": 1}})
    assert answer.json()["metadata"] == {"stamped": True, "b": 1}
    answer = await hooked.client.patch(
        f"/threads/{thread}", json={"metadata": {"stamped": False, "c": 1}}
    )
    assert (answer.status_code, answer.json()) == (422, {"error": "reserved", "key": "stamped"})
    found = (await hooked.client.get(f"/threads/{thread}")).json()
    assert found["metadata"] == {"stamped": True, "b": 1}


@pytest.mark.parametrize("route", ["runs/wait", "runs", "runs/stream"])
async def test_every_run_route_calls_the_run_hooks(hooked: Hooked, route: str) -> None:
    thread = await hooked.thread()
    answer = await hooked.client.post(f"/threads/{thread}/{route}", json=RUN)
    assert answer.is_success
    await _called(hooked, thread, "after_run_end:success")
    assert hooked.called(thread)[1:] == ["before_run_create", "after_run_end:success"]


@pytest.mark.parametrize("route", ["runs/wait", "runs", "runs/stream"])
async def test_rejected_run_leaves_no_trace(hooked: Hooked, route: str) -> None:
    thread = await hooked.thread(refuse="run")
    answer = await hooked.client.post(f"/threads/{thread}/{route}", json=RUN)
    assert answer.status_code == 409
    assert answer.json() == {"error": "refused", "what": "run", "id": thread}
    found = (await hooked.client.get(f"/threads/{thread}")).json()
    assert found["status"] == "idle"
    assert "graph_id" not in found["metadata"]
    assert (await hooked.client.get(f"/threads/{thread}/runs")).json() == []


async def test_hook_rejection_precedes_the_409_for_runs_in_flight(hooked: Hooked) -> None:
    later = {**RUN, "after_seconds": 3600}
    rejected = {**RUN, "multitask_strategy": "reject"}
    state = {"values": {"value": "x"}}
    for refuses in ("run", "state"):
        thread = await hooked.thread(graph_id="echo")
        await hooked.post(f"/threads/{thread}/runs", later)
        marked = {"metadata": {"refuse": refuses}}
        await hooked.client.patch(f"/threads/{thread}", json=marked)
        answers = {
            "run": await hooked.client.post(f"/threads/{thread}/runs", json=rejected),
            "state": await hooked.client.post(f"/threads/{thread}/state", json=state),
        }
        assert {answer.status_code for answer in answers.values()} == {409}
        assert answers.pop(refuses).json()["error"] == "refused"
        [(other, answer)] = answers.items()
        said = {"run": "already running a task", "state": "has runs in flight"}
        assert said[other] in answer.json()["detail"]


async def test_hook_changes_for_a_refused_run_are_rolled_back(hooked: Hooked) -> None:
    thread = await hooked.thread(patches=True)
    await hooked.post(f"/threads/{thread}/runs", {**RUN, "after_seconds": 3600})
    found = (await hooked.client.get(f"/threads/{thread}")).json()
    assert found["metadata"]["patched"] == 1
    rejected = {**RUN, "multitask_strategy": "reject"}
    answer = await hooked.client.post(f"/threads/{thread}/runs", json=rejected)
    assert answer.status_code == 409
    answer = await hooked.client.post(f"/threads/{thread}/state", json={"values": {"value": "x"}})
    assert answer.status_code == 409
    assert (await hooked.client.get(f"/threads/{thread}")).json() == found
    assert hooked.committed(thread) == ["run"]


async def test_run_that_creates_its_thread_calls_both_hooks(hooked: Hooked) -> None:
    thread = "01a20000-0000-7000-8000-000000000002"
    await hooked.post(f"/threads/{thread}/runs/wait", {**RUN, "if_not_exists": "create"})
    assert hooked.called(thread)[:2] == ["before_thread_create", "before_run_create"]
    answer = await hooked.client.post(
        "/runs", json={**RUN, "on_completion": "keep", "metadata": {"refuse": "create"}}
    )
    assert answer.status_code == 409
    before = len(hooked.record.read_text().splitlines())
    await hooked.post("/runs/wait", RUN)
    lines = hooked.record.read_text().splitlines()[before:]
    assert [json.loads(line)["hook"] for line in lines] == [
        "before_thread_create",
        "before_run_create",
    ]


async def test_batch_calls_the_hook_for_each_run(hooked: Hooked) -> None:
    before = len(hooked.record.read_text().splitlines())
    batch = [{**RUN, "on_completion": "keep"} for _ in range(2)]
    runs = await hooked.post("/runs/batch", batch)
    for run in runs:
        await _called(hooked, run["thread_id"], "after_run_end:success")
    lines = [json.loads(line)["hook"] for line in hooked.record.read_text().splitlines()[before:]]
    assert lines.count("before_run_create") == 2


async def test_rejected_state_update_stores_no_checkpoint(hooked: Hooked) -> None:
    thread = await hooked.thread(graph_id="echo")
    await hooked.post(f"/threads/{thread}/state", {"values": {"value": "x"}})
    assert hooked.called(thread)[-1] == "before_state_update"
    locked = await hooked.thread(graph_id="echo", refuse="state")
    answer = await hooked.client.post(f"/threads/{locked}/state", json={"values": {"value": "x"}})
    assert (answer.status_code, answer.json()["error"]) == (409, "refused")
    assert (await hooked.client.get(f"/threads/{locked}/history")).json() == []


async def test_thread_with_supersteps_and_thread_copy_call_their_hooks(hooked: Hooked) -> None:
    created = await hooked.post(
        "/threads",
        {
            "metadata": {"graph_id": "echo"},
            "supersteps": [
                {
                    "updates": [
                        {"values": {"messages": [HELLO]}, "as_node": "echo"},
                    ]
                }
            ],
        },
    )
    assert hooked.called(created["thread_id"]) == ["before_thread_create", "before_state_update"]
    assert created["values"]["messages"][0]["content"] == "hello"
    copied = await hooked.post(f"/threads/{created['thread_id']}/copy")
    assert hooked.called(copied["thread_id"]) == ["before_thread_create"]


async def test_rejected_supersteps_get_the_hooks_answer(hooked: Hooked) -> None:
    thread = await hooked.thread(graph_id="echo", refuse="state")
    update = {"values": {"value": "x"}, "as_node": "echo"}
    answer = await hooked.client.post(
        "/threads",
        json={
            "thread_id": thread,
            "if_exists": "do_nothing",
            "supersteps": [{"updates": [update]}],
        },
    )
    assert (answer.status_code, answer.json()["error"]) == (409, "refused")
    assert (await hooked.client.get(f"/threads/{thread}/history")).json() == []


async def test_cron_run_calls_the_run_hook(hooked: Hooked) -> None:
    thread = await hooked.thread()
    cron = await hooked.post(f"/threads/{thread}/runs/crons", {**RUN, "schedule": "* * * * * *"})
    try:
        await _called(hooked, thread, "before_run_create")
    finally:
        await hooked.client.delete(f"/runs/crons/{cron['cron_id']}")


async def test_protocol_command_calls_the_run_hook(hooked: Hooked) -> None:
    command = {
        "id": 1,
        "method": "run.start",
        "params": {"assistant_id": "echo", "input": {"value": "a"}},
    }
    thread = await hooked.thread()
    await hooked.post(f"/threads/{thread}/commands", command)
    await _called(hooked, thread, "before_run_create")
    refused = await hooked.thread(refuse="run")
    answer = await hooked.client.post(f"/threads/{refused}/commands", json=command)
    assert answer.status_code < 500
    assert "refused" in answer.text
    assert (await hooked.client.get(f"/threads/{refused}/runs")).json() == []


async def test_cancelled_run_calls_the_end_hook(hooked: Hooked) -> None:
    thread = await hooked.thread()
    run = await hooked.post(
        f"/threads/{thread}/runs", {"assistant_id": "sleeper", "input": {"seconds": 60}}
    )
    await hooked.client.post(f"/threads/{thread}/runs/{run['run_id']}/cancel?wait=true")
    await _called(hooked, thread, "after_run_end:interrupted")


async def test_pending_run_that_is_cancelled_or_deleted_calls_the_end_hook(hooked: Hooked) -> None:
    thread = await hooked.thread()
    later = {**RUN, "after_seconds": 3600}
    cancelled, deleted = [await hooked.post(f"/threads/{thread}/runs", later) for _ in range(2)]
    path = f"/threads/{thread}/runs"
    await hooked.client.post(f"{path}/{cancelled['run_id']}/cancel")
    assert hooked.called(thread)[-1] == "after_run_end:interrupted"
    await hooked.client.delete(f"{path}/{deleted['run_id']}")
    assert hooked.called(thread)[-1] == "after_run_end:rollback"


async def test_hook_can_hide_threads_from_searches(hooked: Hooked) -> None:
    shown = [await hooked.thread(group="s") for _ in range(3)]
    hidden = await hooked.thread(group="s", hidden=True)
    asked = {"metadata": {"group": "s"}, "limit": 2}
    answer = await hooked.client.post("/threads/search", json=asked)
    assert [row["thread_id"] for row in answer.json()] == shown[:0:-1]
    rest = await hooked.post("/threads/search", {**asked, "offset": 2})
    assert [row["thread_id"] for row in rest] == shown[:1]
    assert await hooked.post("/threads/count", {"metadata": {"group": "s"}}) == 3
    found = await hooked.post("/threads/search", {"metadata": {"group": "s", "hidden": True}})
    assert [row["thread_id"] for row in found] == [hidden]


async def test_hook_can_change_other_threads_in_the_same_transaction(hooked: Hooked) -> None:
    threads = [await hooked.thread(rival="x") for _ in range(3)]
    found = [(await hooked.client.get(f"/threads/{each}")).json() for each in threads]
    assert [each["metadata"].get("closed", False) for each in found] == [True, True, False]
    refused = await hooked.client.post(
        "/threads", json={"metadata": {"rival": "x", "refuse": "create"}}
    )
    assert refused.status_code == 409
    last = (await hooked.client.get(f"/threads/{threads[-1]}")).json()
    assert "closed" not in last["metadata"]


async def _called(hooked: Hooked, thread: str, name: str) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while name not in hooked.called(thread):
            await asyncio.sleep(0.05)


def test_unknown_or_async_hook_is_refused() -> None:
    class Misspelt:
        def before_thread_creation(self) -> None: ...

    class Waiting:
        async def before_run_create(self) -> None: ...

    with pytest.raises(TypeError, match="Unknown hook 'before_thread_creation'"):
        hooks.check(Misspelt())
    with pytest.raises(TypeError, match="coroutine"):
        hooks.check(Waiting())


def test_reject_accepts_only_4xx_statuses() -> None:
    with pytest.raises(ValueError, match="400 to 499"):
        hooks.Reject(500, {})
