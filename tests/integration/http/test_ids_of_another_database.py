"""Ids of one database at a server of another one: the same answers as for ids that never existed.

A client may have both, such as of staging and production. Tenants and users have the same names.
"""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support import databases
from tests.support.processes import GRAPHS
from tests.support.served import served

pytestmark = pytest.mark.usefixtures("each_database")

SECRET = "only-in-the-first-database"
HEADERS = {"x-user": "ada", "x-tenant": "acme", "accept": "application/json, text/event-stream"}
RUN = {"assistant_id": "echo", "input": {"value": "mine"}}
# Also where an id of a thread need not exist, since the client may create it.
ENDLESS = {
    "/threads/stream",
    "/threads/{thread_id}/stream",
    "/threads/{thread_id}/stream/events",
}
PARAMETER = re.compile(r"\{(\w+)\}")


@pytest.fixture(scope="module")
def folders(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [tmp_path_factory.mktemp(name) for name in ("first", "second")]


@pytest.fixture(scope="module")
def clients(folders: list[Path]) -> Iterator[list[httpx.Client]]:
    """Give clients of servers on two databases of the same project."""
    config = {
        "graphs": {name: f"{GRAPHS}/{name}.py:graph" for name in ("echo", "interrupt")},
        "auth": {"path": f"{GRAPHS}/tenant_auth.py:auth"},
        "sql": {"tenant_key": "org"},
    }
    with ExitStack() as stack:
        made = []
        for folder in folders:
            (folder / "langgraph.json").write_text(json.dumps(config))
            server = stack.enter_context(served(folder, folder / "langgraph.json"))
            http = httpx.Client(base_url=server.url, headers=HEADERS, timeout=60)
            made.append(stack.enter_context(http))
        yield made


@pytest.fixture(scope="module")
def ids(clients: list[httpx.Client]) -> dict[str, str]:
    """Return ids of objects of the first database."""
    first = clients[0]

    def post(path: str, body: Any) -> Any:
        return first.post(path, json=body).raise_for_status().json()

    assistant = post("/assistants", {"graph_id": "echo", "name": SECRET})["assistant_id"]
    thread = post("/threads", {"metadata": {"secret": SECRET}})["thread_id"]
    body = {**RUN, "assistant_id": assistant, "input": {"value": SECRET}, "stream_resumable": True}
    post(f"/threads/{thread}/runs/wait", body)
    cron = {"assistant_id": assistant, "schedule": "0 0 1 1 *", "input": {"value": SECRET}}
    state = first.get(f"/threads/{thread}/state").json()
    assert SECRET in str(state)
    return {
        "assistant_id": assistant,
        "thread_id": thread,
        "run_id": first.get(f"/threads/{thread}/runs").json()[0]["run_id"],
        "cron_id": post(f"/threads/{thread}/runs/crons", cron)["cron_id"],
        "checkpoint_id": state["checkpoint"]["checkpoint_id"],
    }


def missing() -> dict[str, str]:
    names = ("assistant_id", "thread_id", "run_id", "cron_id", "checkpoint_id")
    return {name: str(uuid4()) for name in names}


BODIES: dict[str, Any] = {
    "POST /runs/cancel": {"thread_id": "{thread_id}", "run_ids": ["{run_id}"]},
    "POST /threads/prune": {"thread_ids": ["{thread_id}"]},
    "PATCH /assistants/{assistant_id}": {"description": "changed"},
    "POST /assistants/{assistant_id}/latest": {"version": 1},
    "PATCH /threads/{thread_id}": {"metadata": {"changed": True}},
    "PATCH /runs/crons/{cron_id}": {"enabled": False},
    "POST /threads/{thread_id}/state": {"values": {"value": "changed"}},
    "POST /threads/{thread_id}/state/checkpoint": {
        "checkpoint": {"checkpoint_id": "{checkpoint_id}"}
    },
    "POST /threads/{thread_id}/history": {
        "before": {"configurable": {"checkpoint_id": "{checkpoint_id}"}}
    },
    **{f"POST /threads/{{thread_id}}/runs{end}": RUN for end in ("", "/wait", "/stream")},
    **{f"POST /runs{end}": {**RUN, "assistant_id": "{assistant_id}"} for end in ("", "/wait")},
    "POST /runs/crons": {"schedule": "0 0 1 1 *", "assistant_id": "{assistant_id}"},
    "POST /a2a/{assistant_id}": {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tasks/get",
        "params": {"id": "{run_id}", "contextId": "{thread_id}"},
    },
}


def filled(value: Any, ids: dict[str, str]) -> Any:
    text = PARAMETER.sub(lambda found: ids.get(found[1], "1"), json.dumps(value))
    return json.loads(text)


def test_every_route_answers_as_if_the_ids_had_never_existed(
    clients: list[httpx.Client], folders: list[Path], ids: dict[str, str]
) -> None:
    second = clients[1]
    paths = second.get("/openapi.json").json()["paths"]
    routes = {f"{m.upper()} {p}" for p, ms in paths.items() if p not in ENDLESS for m in ms}
    routes = {each for each in routes if "_id}" in each} | BODIES.keys()
    assert len(routes) > 30
    before = databases.contents(folders[1] / "data.db")
    for route in sorted(routes):
        method, path = route.split(" ")
        answers = []
        for each in (ids, missing()):
            body = None if method in ("GET", "DELETE") else filled(BODIES.get(route, {}), each)
            answer = second.request(method, filled(path, each), json=body)
            text = answer.text
            for name in each:
                text = text.replace(each[name], name)
            answers.append((answer.status_code, re.sub(r'"reference":"[^"]*"', "", text)))
        assert answers[0] == answers[1], route
        assert SECRET not in answers[0][1]
        assert answers[0][0] < 500 or answers[0][0] == 501, (route, answers[0])
    assert databases.contents(folders[1] / "data.db") == before


def test_own_thread_takes_no_checkpoint_event_or_key_of_the_other_database(
    clients: list[httpx.Client], ids: dict[str, str]
) -> None:
    first, second = clients
    own = second.post("/threads", json={}).json()["thread_id"]
    second.post(f"/threads/{own}/runs/wait", json=RUN).raise_for_status()
    for where in (
        {"checkpoint_id": ids["checkpoint_id"]},
        {"checkpoint": {"checkpoint_id": ids["checkpoint_id"], "thread_id": ids["thread_id"]}},
        {"config": {"configurable": {k: ids[k] for k in ("checkpoint_id", "thread_id")}}},
    ):
        answer = second.post(f"/threads/{own}/runs/wait", json={**RUN, **where})
        assert answer.status_code in (200, 404, 422), answer.text
        assert SECRET not in answer.text
    for path in (f"state/{ids['checkpoint_id']}", f"runs/{ids['run_id']}/join"):
        answer = second.get(f"/threads/{own}/{path}")
        assert SECRET not in answer.text and answer.status_code < 500
    # Like the stock server, this begins anew at a checkpoint that the thread does not have.
    changed = {"values": {"value": "x"}, "checkpoint_id": ids["checkpoint_id"]}
    second.post(f"/threads/{own}/state", json=changed).raise_for_status()
    assert SECRET not in second.get(f"/threads/{own}/state").text
    assert SECRET not in second.get(f"/threads/{own}/history").text
    # A thread of the same id is another thread: it has no runs, no state and no events.
    key = {"idempotency-key": "one key for both"}
    kept = [http.post("/threads", json={}, headers=key).json()["thread_id"] for http in clients]
    assert kept[0] != kept[1]
    second.post("/threads", json={"thread_id": ids["thread_id"]}).raise_for_status()
    for path in ("", "/state", "/history", "/runs", f"/runs/{ids['run_id']}/stream"):
        answer = second.get(f"/threads/{ids['thread_id']}{path}")
        assert SECRET not in answer.text and answer.status_code < 500, path
    assert SECRET in first.get(f"/threads/{ids['thread_id']}/state").text
