"""Deep nesting: every stored object can be read, alone and in each list that contains it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from tests.support.garbage import complaint, nested
from tests.support.processes import GRAPHS
from tests.support.served import served

pytestmark = pytest.mark.usefixtures("each_database")

# The encoder's own limit is 254; lists fail below it.
DEPTHS = [150, 196, 200, 230, 232, 250, 252, 254, 300, 5000]
PATIENCE = 60.0

DEEP = """
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    depth: int
    value: Any


async def deep(state: State) -> State:
    value: Any = 1
    for _ in range(state["depth"]):
        value = {"a": value}
    return {"value": value}


graph = StateGraph(State).add_node(deep).add_edge(START, "deep").add_edge("deep", END).compile()
"""


@pytest.fixture(scope="module")
def client(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("depth")
    (folder / "deep.py").write_text(DEEP)
    graphs = {"deep": "./deep.py:graph", "echo": f"{GRAPHS}/echo.py:graph"}
    config: Path = folder / "langgraph.json"
    config.write_text(json.dumps({"graphs": graphs}))
    with (
        served(folder, config) as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE) as client,
    ):
        yield client


def post(client: httpx.Client, path: str, body: Any) -> Any:
    answer = client.post(path, json=body)
    assert answer.is_success, f"{path} {answer.status_code} {answer.text[:200]}"
    return answer.json()


def everything_is_shown(client: httpx.Client) -> None:
    """Read every object, alone and in every list."""
    for thread in post(client, "/threads/search", {"limit": 1000}):
        path = f"/threads/{thread['thread_id']}"
        for read in (path, f"{path}/state", f"{path}/runs", f"{path}/history?limit=9"):
            answer = client.get(read)
            assert answer.is_success, f"{read} {answer.text[:200]}"
    for assistant in post(client, "/assistants/search", {"limit": 1000}):
        post(client, f"/assistants/{assistant['assistant_id']}/versions", {})
    post(client, "/runs/crons/search", {"limit": 1000})
    for item in post(client, "/store/items/search", {"namespace_prefix": []})["items"]:
        asked = {"namespace": ".".join(item["namespace"]), "key": item["key"]}
        assert client.get("/store/items", params=asked).is_success


@pytest.mark.parametrize("depth", DEPTHS)
def test_accepted_nested_body_is_readable_in_every_list(client: httpx.Client, depth: int) -> None:
    """An object just below the limit made every list that contains it fail, for every user."""
    thread = post(client, "/threads", {"metadata": {"graph_id": "echo"}})["thread_id"]
    deep = nested(depth, '{"a": ', "}")
    message = '{"role": "user", "content": "x", "additional_kwargs": ' + deep + "}"
    run, cron = '{"assistant_id": "echo", ', '{"assistant_id": "echo", "schedule": "0 0 1 1 *", '
    statuses = []
    for method, path, body in [
        ("POST", "/threads", '{"metadata": ' + deep + "}"),
        ("PATCH", f"/threads/{thread}", '{"metadata": ' + deep + "}"),
        ("POST", f"/threads/{thread}/runs/wait", run + '"metadata": ' + deep + "}"),
        ("POST", f"/threads/{thread}/runs/wait", run + '"input": {"messages": [' + message + "]}}"),
        ("POST", f"/threads/{thread}/state", '{"values": {"messages": [' + message + "]}}"),
        ("POST", "/assistants", '{"graph_id": "echo", "metadata": ' + deep + "}"),
        ("POST", "/runs/crons", cron + '"input": ' + deep + "}"),
        ("PUT", "/store/items", '{"namespace": ["n"], "key": "k", "value": ' + deep + "}"),
    ]:
        answer = client.request(method, path, content=body)
        assert complaint(answer) is None, f"{path} {answer.text[:200]}"
        statuses.append(answer.is_success)
    assert any(statuses) is (depth < 200)
    everything_is_shown(client)


@pytest.mark.parametrize("depth", DEPTHS)
def test_deep_state_of_a_graph_is_readable_or_fails_its_run(
    client: httpx.Client, depth: int
) -> None:
    thread = post(client, "/threads", {})["thread_id"]
    body = {"assistant_id": "deep", "input": {"depth": depth}}
    answer = post(client, f"/threads/{thread}/runs/wait", body)
    (run,) = client.get(f"/threads/{thread}/runs").json()
    shown = client.get(f"/threads/{thread}").json()
    if "__error__" in answer:
        assert depth > 200
        assert "cannot be stored" in answer["__error__"]["message"]
        assert (run["status"], shown["status"]) == ("error", "error")
    else:
        assert (run["status"], shown["status"]) == ("success", "idle")
    everything_is_shown(client)


def test_too_deep_or_binary_web_socket_frames_get_an_error_answer(client: httpx.Client) -> None:
    """A binary frame closed the connection without an answer."""
    thread = post(client, "/threads", {})["thread_id"]
    url = str(client.base_url).replace("http", "ws").rstrip("/")
    start = '{"id": 1, "method": "run.start", "params": {"assistant_id": "echo", "input": '
    with connect(f"{url}/threads/{thread}/stream/events") as socket:
        for frame in (b"\x00\xff", start + nested(252, '{"a": ', "}") + "}}", "[" * 10_000):
            socket.send(frame)
            answer = json.loads(socket.recv(timeout=PATIENCE))
            assert (answer["type"], answer["error"]) == ("error", "invalid_argument")
        socket.send('{"id": 2, "method": "agent.getTree"}')
        assert json.loads(socket.recv(timeout=PATIENCE))["id"] == 2
    assert client.get(f"/threads/{thread}/runs").json() == []
