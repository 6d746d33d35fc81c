"""`"state_keys": "input"`: by no route does a client write a key that the graph's input lacks."""

import json
import secrets
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from websockets.sync.client import connect

from tests.support.processes import GRAPHS
from tests.support.served import served

pytestmark = pytest.mark.usefixtures("each_database")

FORGED = "forged by the client"
FACTORY = """
from tests.graphs.interrupt import graph as made

def graph(config: dict):
    return made
"""


@pytest.fixture(scope="module")
def url(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("keys")
    (folder / "factory.py").write_text(FACTORY)
    project = {
        "graphs": {
            "interrupt": f"{GRAPHS}/interrupt.py:graph",
            "factory": f"{folder}/factory.py:graph",
            "subgraph": f"{GRAPHS}/subgraph.py:graph",
        },
        "auth": {"path": f"{GRAPHS}/tenant_auth.py:auth"},
        "sql": {"tenant_key": "org", "state_keys": "input"},
    }
    file = folder / "langgraph.json"
    file.write_text(json.dumps(project))
    with served(folder, file, CRON_SCHEDULER_SLEEP_TIME="1") as server:
        yield server.url


@pytest.fixture
def api(url: str) -> Iterator[httpx.Client]:
    headers = {"x-user": "ada", "x-tenant": secrets.token_hex(4)}
    with httpx.Client(base_url=url, timeout=60, headers=headers) as client:
        yield client


def paused(api: httpx.Client, graph: str = "interrupt") -> str:
    """Return a thread whose run waits for an answer."""
    thread: str = api.post("/threads", json={}).json()["thread_id"]
    body = {"assistant_id": graph, "input": {"questions": ["who?"], "topic": "birds"}}
    assert "__interrupt__" in api.post(f"/threads/{thread}/runs/wait", json=body).json()
    return thread


def state(api: httpx.Client, thread: str) -> Any:
    return api.get(f"/threads/{thread}/state").json()


Write = Callable[[httpx.Client, str, dict[str, Any]], str]


def run(end: str) -> Write:
    def write(api: httpx.Client, thread: str, command: dict[str, Any]) -> str:
        body = {"assistant_id": "interrupt", "command": command}
        answer = api.post(f"/threads/{thread}/runs{end}", json=body)
        assert answer.status_code in (403, 422), answer.text
        return answer.text

    return write


def stateless(end: str) -> Write:
    def write(api: httpx.Client, thread: str, command: dict[str, Any]) -> str:
        body: Any = {"assistant_id": "interrupt", "command": command}
        answer = api.post(f"/runs{end}", json=[body] if end == "/batch" else body)
        assert answer.status_code in (403, 422), answer.text
        return answer.text

    return write


def cron(path: str) -> Write:
    def write(api: httpx.Client, thread: str, command: dict[str, Any]) -> str:
        body = {"assistant_id": "interrupt", "schedule": "0 0 1 1 *", "command": command}
        answer = api.post(path.format(thread=thread), json=body)
        assert answer.status_code in (403, 422), answer.text
        return answer.text

    return write


def changed_cron(api: httpx.Client, thread: str, command: dict[str, Any]) -> str:
    body = {"assistant_id": "interrupt", "schedule": "0 0 1 1 *"}
    made = api.post("/runs/crons", json=body).json()["cron_id"]
    answer = api.patch(f"/runs/crons/{made}", json={"command": command})
    assert answer.status_code in (403, 422), answer.text
    return answer.text


def respond(api: httpx.Client, thread: str, command: dict[str, Any]) -> str:
    [pending] = [each for task in state(api, thread)["tasks"] for each in task["interrupts"]]
    body = {
        "id": 1,
        "method": "input.respond",
        "params": {
            "interrupt_id": pending["id"],
            "namespace": [],
            "response": "me",
            "assistant_id": "interrupt",
            **command,
        },
    }
    answer = api.post(f"/threads/{thread}/commands", json=body)
    assert answer.json()["type"] == "error", answer.text
    return answer.text


def socket(api: httpx.Client, thread: str, command: dict[str, Any]) -> str:
    headers = {name: api.headers[name] for name in ("x-user", "x-tenant")}
    [pending] = [each for task in state(api, thread)["tasks"] for each in task["interrupts"]]
    params = {
        "interrupt_id": pending["id"],
        "namespace": [],
        "response": "me",
        "assistant_id": "interrupt",
        **command,
    }
    path = f"ws{str(api.base_url)[4:].rstrip('/')}/threads/{thread}/stream/events"
    with connect(path, additional_headers=headers) as opened:
        opened.send(json.dumps({"id": 7, "method": "input.respond", "params": params}))
        while (told := json.loads(opened.recv(timeout=60))).get("id") != 7:
            pass
    assert told["type"] == "error", told
    return json.dumps(told)


def a2a(api: httpx.Client, thread: str, command: dict[str, Any]) -> str:
    [found] = [
        each["assistant_id"]
        for each in api.post("/assistants/search", json={"graph_id": "interrupt"}).json()
    ]
    message = {
        "role": "user",
        "messageId": uuid4().hex,
        "contextId": thread,
        "parts": [{"kind": "data", "data": {"questions": []}}],
        "command": command,
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}
    answer = api.post(f"/a2a/{found}", json=body)
    return answer.text


def bulk(api: httpx.Client, thread: str, command: dict[str, Any]) -> str:
    """Create a thread with supersteps, which is answered with 201 if they are refused."""
    steps = [{"updates": [{"command": command, "as_node": "prepare"}]}]
    body = {"metadata": {"graph_id": "interrupt"}, "supersteps": steps}
    answer = api.post("/threads", json=body)
    assert answer.status_code == 201, answer.text
    [made] = api.post(
        "/threads/search", json={"metadata": {"graph_id": "interrupt"}, "limit": 1}
    ).json()
    assert FORGED not in json.dumps(made["values"])
    return answer.text


WRITES: dict[str, Write] = {
    **{f"run{end}": run(end) for end in ("", "/wait", "/stream")},
    **{f"stateless{end}": stateless(end) for end in ("", "/wait", "/stream", "/batch")},
    "cron": cron("/runs/crons"),
    "cron of a thread": cron("/threads/{thread}/runs/crons"),
    "changed cron": changed_cron,
    "input.respond": respond,
    "websocket": socket,
    "a2a": a2a,
    "supersteps": bulk,
}
COMMANDS: dict[str, dict[str, Any]] = {
    "update": {"update": {"summary": FORGED}},
    "list of pairs": {"update": [["summary", FORGED]]},
    "goto": {"goto": "conclude"},
    "send": {"goto": [{"node": "conclude", "input": {"answers": [FORGED]}}]},
    "goto by update": {"update": {"branch:to:conclude": None}},
}


@pytest.mark.parametrize("route", WRITES)
def test_command_writes_only_input_by_any_route(api: httpx.Client, route: str) -> None:
    thread = paused(api)
    before = state(api, thread)
    # Every route goes through one function, whose cases `run` plays.
    for name in COMMANDS if route == "run/wait" else ("update", "goto"):
        told = WRITES[route](api, thread, COMMANDS[name])
        reasons = (
            ("threads:goto", "Access denied") if name in ("goto", "send") else ("from outside",)
        )
        assert any(reason in told for reason in reasons), (name, told)
    assert state(api, thread) == before


@pytest.mark.parametrize("graph", ["interrupt", "factory"])
def test_answer_and_input_keys_are_taken(api: httpx.Client, graph: str) -> None:
    thread = paused(api, graph)
    command = {"resume": {"any": "shape"}, "update": [["questions", ["why?"]]]}
    body = {"assistant_id": graph, "command": command}
    ended = api.post(f"/threads/{thread}/runs/wait", json=body).json()
    assert (ended["summary"], ended["questions"]) == ("{'any': 'shape'}", ["why?"])
    forged = {"assistant_id": graph, "command": COMMANDS["update"]}
    assert api.post(f"/threads/{thread}/runs/wait", json=forged).status_code == 422
    # langgraph itself drops the other keys of an input.
    again = {"assistant_id": graph, "input": {"questions": [], "summary": FORGED}}
    assert FORGED not in api.post(f"/threads/{thread}/runs/wait", json=again).text
    assert FORGED not in json.dumps(state(api, thread))


def test_goto_needs_its_permission_and_sends_only_input(api: httpx.Client) -> None:
    thread = paused(api)
    path, allowed = f"/threads/{thread}/runs/wait", {"x-permissions": "threads:goto"}
    sent = {"assistant_id": "interrupt", "command": COMMANDS["send"]}
    assert api.post(path, json=sent, headers=allowed).status_code == 422
    ask = {"goto": {"node": "ask", "input": {"questions": ["when?"]}}}
    body = {"assistant_id": "interrupt", "command": ask}
    assert api.post(path, json=body).status_code == 403
    assert "when?" in api.post(path, json=body, headers=allowed).text


def test_state_of_a_subgraph_takes_only_the_input_of_the_graph(api: httpx.Client) -> None:
    thread = paused(api, "subgraph")
    [task] = state(api, thread)["tasks"]
    place = {"checkpoint_ns": task["checkpoint"]["checkpoint_ns"]}

    def post(values: Any, **more: Any) -> httpx.Response:
        return api.post(f"/threads/{thread}/state", json={"values": values, **more})

    for more in ({}, {"checkpoint": place}):
        assert post({"verdict": FORGED}, **more).status_code == 422
    assert post({"topic": "fish"}, checkpoint=place).status_code == 200


def test_assistant_that_changes_its_graph_meanwhile_gives_no_way_around(api: httpx.Client) -> None:
    """A run keeps the graph whose keys were checked."""
    made = api.post("/assistants", json={"graph_id": "subgraph"}).json()["assistant_id"]
    body = {"assistant_id": made, "command": {"update": {"topic": FORGED}}}
    thread = api.post("/threads", json={}).json()["thread_id"]
    run_id = api.post(f"/threads/{thread}/runs", json={**body, "after_seconds": 1}).json()["run_id"]
    api.patch(f"/assistants/{made}", json={"graph_id": "interrupt"})
    api.get(f"/threads/{thread}/runs/{run_id}/join")
    assert api.get(f"/threads/{thread}").json()["metadata"]["graph_id"] == "subgraph"
