"""Garbage in place of each value of each route's body never causes a 500.

Each seed chooses another sample of the 23,000 bodies. `GARBAGE_SAMPLES=9999` sends all of them
within minutes.
"""

import os
import random
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest

from tests.support.garbage import complaint, spoilt
from tests.support.served import served

pytestmark = pytest.mark.usefixtures("each_database")

SAMPLES = int(os.environ.get("GARBAGE_SAMPLES") or 30)
MCP = {"accept": "application/json, text/event-stream"}


class Target:
    """A server with one object of each kind; the paths and bodies below name their ids."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.ids = self._ids()

    def _ids(self) -> dict[str, str]:
        thread = self._post("/threads", {})["thread_id"]
        self._post(f"/threads/{thread}/runs/wait", RUN)
        state = self.client.get(f"/threads/{thread}/state").json()
        return {
            "THREAD": thread,
            "CHECKPOINT": state["checkpoint"]["checkpoint_id"],
            "ASSISTANT": self._post("/assistants", {"graph_id": "echo"})["assistant_id"],
            "CRON": self._post("/runs/crons", CRON)["cron_id"],
            "RUN": self._post(f"/threads/{thread}/runs", RUN)["run_id"],
        }

    def _post(self, path: str, body: Any) -> Any:
        answer = self.client.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def filled(self, template: Any) -> Any:
        """Replace names of ids in `template` by the ids."""
        if isinstance(template, dict):
            return {key: self.filled(value) for key, value in template.items()}
        if isinstance(template, list):
            return [self.filled(value) for value in template]
        if isinstance(template, str):
            for name, value in self.ids.items():
                template = template.replace(name, value)
        return template

    def send(self, method: str, path: str, body: bytes) -> tuple[int, str | None]:
        """Send a body. Return the status, and what is wrong with the answer. Streams are not read."""
        headers = {"content-type": "application/json", **(MCP if path == "/mcp" else {})}
        with self.client.stream(method, path, content=body, headers=headers) as answer:
            if answer.status_code >= 400:
                answer.read()
            return answer.status_code, complaint(answer) if answer.status_code >= 400 else None


RUN: dict[str, Any] = {
    "assistant_id": "echo",
    "input": {"value": "a"},
    "metadata": {"a": 1},
    "config": {"tags": ["a"], "recursion_limit": 5, "configurable": {"x": 1}},
    "interrupt_before": ["echo"],
    "interrupt_after": ["x"],
    "stream_mode": ["values"],
    "stream_subgraphs": False,
    "stream_resumable": False,
    "after_seconds": 0,
    "durability": "async",
    "checkpoint_during": True,
    "on_completion": "delete",
    "multitask_strategy": "enqueue",
    "if_not_exists": "create",
}
PLACE = {"thread_id": "THREAD", "checkpoint_ns": "", "checkpoint_id": "CHECKPOINT"}
RUN_ON_THREAD = {
    **RUN,
    "checkpoint": PLACE,
    "checkpoint_id": "CHECKPOINT",
    "on_disconnect": "cancel",
    "langsmith_tracer": {"project_name": "x", "example_id": "y"},
}
COMMAND = {
    "assistant_id": "echo",
    "command": {
        "update": {"value": "x"},
        "resume": 1,
        "goto": [{"node": "echo", "input": {}}],
    },
}
CRON: dict[str, Any] = {
    "assistant_id": "echo",
    "schedule": "0 0 1 1 *",
    "timezone": "UTC",
    "end_time": "2099-01-01T00:00:00Z",
    "input": {},
    "metadata": {"a": 1},
    "config": {"configurable": {"x": 1}},
    "interrupt_before": ["x"],
    "on_run_completed": "delete",
    "enabled": False,
    "stream_mode": ["values"],
    "stream_resumable": False,
    "durability": "async",
}
PAGE = {
    "limit": 1,
    "offset": 0,
    "metadata": {"a": 1},
    "sort_by": "created_at",
    "sort_order": "asc",
    "select": ["metadata"],
}
ASSISTANT = {
    "graph_id": "echo",
    "config": {"configurable": {"x": 1}},
    "metadata": {"a": 1},
    "name": "n",
    "description": "d",
}
UPDATE = {
    "values": {"value": "x"},
    "as_node": "echo",
    "command": {"update": {}, "goto": "echo", "resume": 1},
}


def command(method: str, **params: Any) -> dict[str, Any]:
    return {"id": 1, "method": method, "params": params}


def rpc(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", **command(method, **params)}


MESSAGE = {
    "role": "user",
    "parts": [{"kind": "text", "text": "a"}],
    "messageId": "x",
    "contextId": "THREAD",
}

ROUTES: list[tuple[str, str, Any]] = [
    ("POST", "/assistants", {**ASSISTANT, "assistant_id": "RUN", "if_exists": "do_nothing"}),
    ("PATCH", "/assistants/ASSISTANT", ASSISTANT),
    ("POST", "/assistants/search", {**PAGE, "graph_id": "echo", "name": "n"}),
    ("POST", "/assistants/count", {"graph_id": "echo", "name": "n", "metadata": {"a": 1}}),
    ("POST", "/assistants/ASSISTANT/versions", {"limit": 1, "offset": 0, "metadata": {"a": 1}}),
    ("POST", "/assistants/ASSISTANT/latest", {"version": 1}),
    (
        "POST",
        "/threads",
        {
            "thread_id": "RUN",
            "metadata": {"a": 1},
            "if_exists": "do_nothing",
            "ttl": {"ttl": 1, "strategy": "delete"},
        },
    ),
    (
        "POST",
        "/threads",
        {"metadata": {"graph_id": "echo"}, "supersteps": [{"updates": [UPDATE]}]},
    ),
    ("PATCH", "/threads/THREAD", {"metadata": {"a": 1}, "ttl": {"ttl": 9, "strategy": "delete"}}),
    (
        "POST",
        "/threads/search",
        {
            **PAGE,
            "ids": ["THREAD"],
            "values": {"value": "x"},
            "status": "idle",
            "extract": {"x": "values.messages[0].content"},
        },
    ),
    ("POST", "/threads/count", {"metadata": {"a": 1}, "values": {"a": 1}, "status": "idle"}),
    ("POST", "/threads/prune", {"thread_ids": ["RUN"], "strategy": "keep_latest"}),
    ("POST", "/threads/THREAD/state", {**UPDATE, "checkpoint": PLACE}),
    (
        "POST",
        "/threads/THREAD/state/checkpoint",
        {"checkpoint": {**PLACE, "checkpoint_map": {"a": "b"}}, "subgraphs": True},
    ),
    (
        "POST",
        "/threads/THREAD/history",
        {"limit": 1, "before": PLACE, "metadata": {"source": "loop"}, "checkpoint": PLACE},
    ),
    ("POST", "/threads/THREAD/runs", RUN_ON_THREAD),
    ("POST", "/threads/THREAD/runs/wait", RUN_ON_THREAD),
    ("POST", "/threads/THREAD/runs/stream", RUN_ON_THREAD),
    ("POST", "/threads/THREAD/runs", COMMAND),
    ("POST", "/runs", RUN),
    ("POST", "/runs/wait", RUN),
    ("POST", "/runs/stream", RUN),
    ("POST", "/runs/batch", [RUN]),
    ("POST", "/runs/cancel", {"thread_id": "THREAD", "run_ids": ["RUN"]}),
    ("POST", "/runs/crons", CRON),
    ("POST", "/threads/THREAD/runs/crons", {**CRON, "multitask_strategy": "enqueue"}),
    ("PATCH", "/runs/crons/CRON", {key: CRON[key] for key in CRON if key != "assistant_id"}),
    (
        "POST",
        "/runs/crons/search",
        {**PAGE, "assistant_id": "ASSISTANT", "thread_id": "THREAD", "enabled": True},
    ),
    ("POST", "/runs/crons/count", {"assistant_id": "ASSISTANT", "metadata": {"a": 1}}),
    (
        "PUT",
        "/store/items",
        {"namespace": ["a", "b"], "key": "k", "value": {"x": 1}, "index": ["x"], "ttl": 5},
    ),
    ("DELETE", "/store/items", {"namespace": ["a", "b"], "key": "k"}),
    (
        "POST",
        "/store/items/search",
        {
            "namespace_prefix": ["a"],
            "filter": {"x": {"$gt": 1}},
            "limit": 1,
            "offset": 0,
            "query": "q",
            "refresh_ttl": True,
        },
    ),
    (
        "POST",
        "/store/namespaces",
        {"prefix": ["a"], "suffix": ["b"], "max_depth": 1, "limit": 1, "offset": 0},
    ),
    (
        "POST",
        "/threads/THREAD/stream/events",
        {"channels": ["values"], "namespaces": [["a"]], "depth": 1, "since": 0},
    ),
    (
        "POST",
        "/threads/THREAD/commands",
        command(
            "run.start",
            assistant_id="echo",
            input={"value": "a"},
            config={"configurable": {"x": 1}},
            metadata={"a": 1},
            multitask_strategy="enqueue",
            stream_mode=["values"],
        ),
    ),
    (
        "POST",
        "/threads/THREAD/commands",
        command("input.respond", namespace=["a"], interrupt_id="x", response={"a": 1}),
    ),
    ("POST", "/threads/THREAD/commands", command("agent.getTree", namespace=["a"], run_id="RUN")),
    (
        "POST",
        "/mcp",
        rpc("initialize", protocolVersion="2025-03-26", capabilities={}, clientInfo={"name": "x"}),
    ),
    ("POST", "/mcp", rpc("tools/list", cursor="0")),
    ("POST", "/mcp", rpc("tools/call", name="echo", arguments={"value": "a"}, context={"a": 1})),
    (
        "POST",
        "/a2a/ASSISTANT",
        rpc("message/send", message=MESSAGE, configuration={"blocking": True, "historyLength": 1}),
    ),
    ("POST", "/a2a/ASSISTANT", rpc("message/stream", message=MESSAGE)),
    ("POST", "/a2a/ASSISTANT", rpc("tasks/get", id="RUN", contextId="THREAD", historyLength=1)),
    ("POST", "/a2a/ASSISTANT", rpc("tasks/cancel", id="RUN", contextId="THREAD")),
]


@pytest.fixture(scope="module")
def target(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with (
        served(tmp_path_factory.mktemp("bodies")) as server,
        closing(httpx.Client(base_url=server.url, timeout=60)) as client,
    ):
        yield Target(client)
        assert client.get("/ok").is_success


def name(route: tuple[str, str, Any]) -> str:
    method, path, body = route
    what = body.get("method", "") if isinstance(body, dict) else ""
    return " ".join(filter(None, (method, path, what)))


@pytest.mark.parametrize("route", ROUTES, ids=name)
def test_garbage_in_a_body_never_causes_a_5xx(
    target: Target, rng: random.Random, route: tuple[str, str, Any]
) -> None:
    method, path, template = target.filled(list(route))
    candidates = spoilt(template)
    chosen = rng.sample(candidates, min(SAMPLES, len(candidates)))
    answers = {where: target.send(method, path, body) for where, body in chosen}
    assert {where: wrong for where, (_, wrong) in answers.items() if wrong} == {}
    if not path.startswith("/a2a"):  # which answers 200, with the error in the body
        assert any(status >= 400 for status, _ in answers.values())
