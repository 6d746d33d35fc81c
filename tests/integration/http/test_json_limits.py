"""JSON with too many values or levels is refused before anything parses it, on each route."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from websockets.sync.client import ClientConnection, connect

from tests.support.garbage import nested
from tests.support.processes import GRAPHS
from tests.support.served import served

NODES, DEPTH = 1000, 20
PATIENCE = 60.0
ACCEPT = {"accept": "application/json, text/event-stream", "x-user": "ada"}
NOWHERE = "00000000-0000-4000-8000-00000000abcd"
# No parser gets past the end of these: only what counts first can say how many values there are.
BROKEN = '"'

pytestmark = pytest.mark.usefixtures("each_database")

ROUTES = [
    ("POST", "/threads"),
    ("PATCH", f"/threads/{NOWHERE}"),
    ("POST", "/threads/search"),
    ("POST", "/threads/count"),
    ("POST", f"/threads/{NOWHERE}/state"),
    ("POST", f"/threads/{NOWHERE}/history"),
    ("POST", f"/threads/{NOWHERE}/runs"),
    ("POST", f"/threads/{NOWHERE}/runs/stream"),
    ("POST", f"/threads/{NOWHERE}/commands"),
    ("POST", f"/threads/{NOWHERE}/stream/events"),
    ("POST", "/runs"),
    ("POST", "/runs/wait"),
    ("POST", "/runs/stream"),
    ("POST", "/runs/batch"),
    ("POST", "/runs/crons"),
    ("POST", "/assistants"),
    ("PATCH", f"/assistants/{NOWHERE}"),
    ("PUT", "/store/items"),
    ("DELETE", "/store/items"),
    ("POST", "/store/items/search"),
    ("POST", "/mcp"),
    ("POST", "/a2a/echo"),
]
JSON_RPC = ("/mcp", "/a2a/echo")


@pytest.fixture(scope="module")
def client(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    settings = {"MAX_JSON_NODES": str(NODES), "MAX_JSON_DEPTH": str(DEPTH)}
    config = GRAPHS / "langgraph.auth.json"
    with (
        served(tmp_path_factory.mktemp("limits"), config, **settings) as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE, headers=ACCEPT) as client,
    ):
        yield client


def refusal(path: str, answer: httpx.Response) -> str:
    """Return a route's answer to a body beyond the limits."""
    if path in JSON_RPC:
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert (answer.json()["jsonrpc"], error["code"]) == ("2.0", -32600)
        return str(error["message"])
    assert answer.status_code == 422
    return str(answer.json()["detail"])


@pytest.mark.parametrize(("method", "path"), ROUTES, ids=lambda each: each)
def test_body_with_too_many_values_is_refused_unparsed(
    client: httpx.Client, method: str, path: str
) -> None:
    body = "[" + "[]," * (NODES - 1) + "[]]"
    answer = client.request(method, path, content=body + BROKEN)
    assert refusal(path, answer) == (
        "The JSON holds too many values: 1001 (limit: 1000, set by max_json_nodes)"
    )


@pytest.mark.parametrize(("method", "path"), ROUTES, ids=lambda each: each)
def test_body_with_too_many_levels_is_refused_unparsed(
    client: httpx.Client, method: str, path: str
) -> None:
    answer = client.request(method, path, content=nested(DEPTH + 1, "[", "]") + BROKEN)
    assert refusal(path, answer) == (
        "The JSON is nested too deeply: 21 levels (limit: 20, set by max_json_depth)"
    )


@pytest.mark.parametrize("piecemeal", [False, True])
def test_body_at_the_limits_is_stored_and_readable(client: httpx.Client, piecemeal: bool) -> None:
    # The body, its metadata and the list are values, too.
    metadata: dict[str, Any] = {"many": [0] * (NODES - 4), "deep": 1}
    text = json.dumps({"metadata": metadata}).encode()
    pieces = (text[start : start + 100] for start in range(0, len(text), 100))
    answer = client.post("/threads", content=pieces if piecemeal else text)
    assert answer.status_code == 200, answer.text
    read = client.get(f"/threads/{answer.json()['thread_id']}").json()["metadata"]
    assert {name: read[name] for name in metadata} == metadata
    deep = '{"metadata": {"deep": ' + nested(DEPTH - 2, "[", "]") + "}}"
    assert client.post("/threads", content=deep).status_code == 200


def test_string_with_json_counts_as_one_value(client: httpx.Client) -> None:
    text = json.dumps([[{}, "\\"], '"'] * NODES) * 2
    answer = client.post("/threads", json={"metadata": {"text": text}})
    assert answer.status_code == 200
    assert answer.json()["metadata"]["text"] == text


@pytest.mark.parametrize(("method", "path"), ROUTES, ids=lambda each: each)
def test_limits_are_shown_to_authenticated_users_only(
    client: httpx.Client, method: str, path: str
) -> None:
    body = "[" + "[]," * NODES + "[]]"
    answer = client.request(method, path, content=body, headers={"x-user": ""})
    assert answer.status_code == 401


def answered(socket: ClientConnection, frame: str | bytes) -> Any:
    socket.send(frame)
    return json.loads(socket.recv(timeout=PATIENCE))


def test_frame_beyond_the_limits_is_refused_and_the_socket_stays_open(client: httpx.Client) -> None:
    thread = client.post("/threads", json={}).json()["thread_id"]
    url = str(client.base_url).replace("http", "ws").rstrip("/")
    start = '{"id": 1, "method": "run.start", "params": {"assistant_id": "echo", "input": '
    many, deep = "[" + "0," * NODES + "0]", nested(DEPTH, "[", "]")
    address = f"{url}/threads/{thread}/stream/events"
    with connect(address, additional_headers={"x-user": "ada"}) as socket:
        for frame, reason in [
            (start + many + "}}", "too many values: 1007 (limit: 1000, set by max_json_nodes)"),
            (start + deep + "}}", "too deeply: 22 levels (limit: 20, set by max_json_depth)"),
            (b"{}", "text frames"),
        ]:
            refused = answered(socket, frame)
            assert (refused["type"], refused["error"]) == ("error", "invalid_argument")
            assert reason in refused["message"]
        assert answered(socket, '{"id": 2, "method": "agent.getTree"}')["id"] == 2
    assert client.get(f"/threads/{thread}/runs").json() == []
