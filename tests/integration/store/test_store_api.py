"""The store through a real server: its routes, its authorization and a graph's node."""

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support import databases
from tests.support.served import served

pytestmark = pytest.mark.usefixtures("each_database")

AUTH = """
from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(headers):
    user = headers.get(b"x-user", b"").decode()
    if not user:
        raise Auth.exceptions.HTTPException(status_code=401, detail="Who is it?")
    return {"identity": user}


@auth.on.store
async def store(ctx, value):
    if ctx.user.identity == "broken" and ctx.action == "search":
        return {"$nor": [{"owner": "a"}]}
    if ctx.user.identity != "admin" and ctx.action == "search":
        return {"$or": [{"owner": ctx.user.identity}, {"readers": {"$contains": ctx.user.identity}}]}
"""

EMBEDDINGS = """
def embed(texts):
    return [[float(text.count(word)) for word in ("cat", "dog", "fish")] for text in texts]
"""

GRAPH = """
from langgraph.graph import StateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    seen: dict
    found: list


def put_and_get(state: State, runtime: Runtime) -> State:
    runtime.store.put(("graph",), "sync", {"text": "cat", "owner": "admin"})
    return {"seen": runtime.store.get(("graph",), "sync").value}


async def search(state: State, runtime: Runtime) -> State:
    found = await runtime.store.asearch(("graph",), query="cat")
    return {"found": [[item.key, item.score] for item in found]}


builder = StateGraph(State)
builder.add_sequence([put_and_get, search])
builder.set_entry_point("put_and_get")
graph = builder.compile()
"""


@pytest.fixture(scope="module")
def api(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Start a server with authorization, an index and a time to live; yield a client of it."""
    folder = tmp_path_factory.mktemp("store")
    for name, source in (("auth", AUTH), ("embeddings", EMBEDDINGS), ("graph", GRAPH)):
        (folder / f"{name}.py").write_text(source)
    config = {
        "dependencies": ["."],
        "graphs": {"remember": "./graph.py:graph"},
        "auth": {"path": "./auth.py:auth"},
        "store": {
            "index": {"dims": 3, "embed": "./embeddings.py:embed", "fields": ["text"]},
            "ttl": {"default_ttl": 0.1, "sweep_interval_minutes": 60, "refresh_on_read": False},
        },
    }
    (folder / "langgraph.json").write_text(json.dumps(config))
    with (
        served(folder, folder / "langgraph.json", APP_ENV="local_dev") as server,
        httpx.Client(base_url=server.url, headers={"x-user": "admin"}, timeout=60) as client,
    ):
        yield client


def put(api: httpx.Client, namespace: list[str], key: str, value: Any, **more: Any) -> None:
    body = {"namespace": namespace, "key": key, "value": value, "ttl": None, **more}
    if body["ttl"] == "left out":
        del body["ttl"]
    response = api.put("/store/items", json=body)
    assert response.status_code == 204, response.text


def search(api: httpx.Client, user: str = "admin", **body: Any) -> list[str]:
    response = api.post("/store/items/search", json=body, headers={"x-user": user})
    assert response.status_code == 200, response.text
    return [item["key"] for item in response.json()["items"]]


def get(api: httpx.Client, namespace: str, key: str) -> Any:
    response = api.get("/store/items", params={"namespace": namespace, "key": key})
    assert response.status_code == 200, response.text
    return response.json()


def test_item_is_put_read_listed_and_deleted(api: httpx.Client) -> None:
    put(api, ["crud", "a"], "k", {"v": [1, {"x": "é"}]})
    item = get(api, "crud.a", "k")
    assert (item["namespace"], item["key"], item["value"]) == (
        ["crud", "a"],
        "k",
        {"v": [1, {"x": "é"}]},
    )
    assert item["created_at"] == item["updated_at"]
    assert item["created_at"].endswith(("+00:00", "Z"))
    listed = api.post("/store/namespaces", json={"prefix": ["crud"]}).json()
    assert listed == {"namespaces": [["crud", "a"]]}
    gone = api.request("DELETE", "/store/items", json={"namespace": ["crud", "a"], "key": "k"})
    assert gone.status_code == 204
    assert get(api, "crud.a", "k") is None


def test_default_ttl_applies_to_a_put_without_ttl(api: httpx.Client) -> None:
    """The route passes None in both cases, but only `null` in the body means no expiry."""
    put(api, ["ttl"], "default", {}, ttl="left out")
    put(api, ["ttl"], "null", {}, ttl=None)
    put(api, ["ttl"], "own", {}, ttl=60)
    assert sorted(search(api, namespace_prefix=["ttl"])) == ["default", "null", "own"]
    deadline = time.monotonic() + 60
    while get(api, "ttl", "default") is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert sorted(search(api, namespace_prefix=["ttl"])) == ["null", "own"]


def test_filters_of_handler_and_caller_both_apply(api: httpx.Client) -> None:
    put(api, ["auth"], "a1", {"owner": "a", "n": 1})
    put(api, ["auth"], "a2", {"owner": "a", "n": 2})
    put(api, ["auth"], "b1", {"owner": "b", "n": 1, "readers": ["a", "c"]})
    put(api, ["auth"], "b2", {"owner": "b", "n": 2, "readers": "a"})
    everything = {"namespace_prefix": ["auth"]}
    assert sorted(search(api, "admin", **everything)) == ["a1", "a2", "b1", "b2"]
    assert sorted(search(api, "a", **everything)) == ["a1", "a2", "b1"]
    assert sorted(search(api, "a", **everything, filter={"n": 1})) == ["a1", "b1"]
    assert sorted(search(api, "a", **everything, filter={"owner": "b"})) == ["b1"]
    assert sorted(search(api, "a", **everything, filter={"n": {"$gte": 2}})) == ["a2"]
    widen = {"$or": [{"owner": "b"}, {"owner": "a"}]}
    assert sorted(search(api, "c", **everything, filter=widen)) == ["b1"]
    assert search(api, "d", **everything) == []


def test_unknown_operator_of_a_handler_is_refused(api: httpx.Client) -> None:
    put(api, ["auth"], "a1", {"owner": "a"})
    for body in ({}, {"filter": {"owner": "a"}}):
        response = api.post(
            "/store/items/search",
            json={"namespace_prefix": ["auth"], **body},
            headers={"x-user": "broken"},
        )
        assert response.status_code == 400
        assert "$nor" in response.text


@pytest.mark.parametrize(
    "body",
    [
        {"filter": {"a": {"$where": "1"}}},
        {"filter": {"$or": []}},
        {"filter": {"$": None}},
        {"limit": -1},
        {"limit": 2**70},
        {"offset": -5},
        {"filter": "x"},
        {"filter": {"a": {"$gt": {}}, "$and": 5}},
    ],
    ids=str,
)
def test_invalid_search_is_answered_with_4xx(api: httpx.Client, body: dict[str, Any]) -> None:
    response = api.post("/store/items/search", json={"namespace_prefix": ["x"], **body})
    assert 400 <= response.status_code < 500, response.text
    assert response.text


@pytest.mark.parametrize(
    "name", ["'", '"', "a.b", "$.a", "%", "\x00", "') OR 1=1 --", "[", "x" * 50_000, "\\"], ids=repr
)
def test_hostile_names_are_plain_data(api: httpx.Client, name: str) -> None:
    field = f"f{name}"
    if "\x00" in name and databases.kind() == "postgresql":
        # Postgres cannot store NUL, so the request is refused and nothing is stored.
        body = {"namespace": ["hostile"], "key": name, "value": {field: "yes"}}
        assert api.put("/store/items", json=body).status_code == 400
        assert search(api, namespace_prefix=["hostile"], filter={"owner": "a"}) == []
        return
    put(api, ["hostile"], name, {field: "yes", "owner": "a"})
    put(api, ["hostile"], "other", {"owner": "b"})
    prefix = {"namespace_prefix": ["hostile"]}
    # The API shows NUL as U+FFFD, in keys as everywhere.
    assert search(api, **prefix, filter={field: "yes"}) == [name.replace("\x00", "\ufffd")]
    assert search(api, **prefix, filter={field: {"$eq": "no"}}) == []
    assert search(api, "b", **prefix, filter={"$or": [{field: "yes"}, {"owner": "b"}]}) == ["other"]
    api.request("DELETE", "/store/items", json={"namespace": ["hostile"], "key": name})
    assert search(api, **prefix) == ["other"]


def deep(levels: int, inner: str = "1") -> str:
    return '{"a":' * levels + inner + "}" * levels


@pytest.mark.parametrize("levels", [300, 1000, 10_000])
def test_too_deeply_nested_json_is_answered_with_4xx(api: httpx.Client, levels: int) -> None:
    headers = {"content-type": "application/json"}
    bodies = {
        ("PUT", "/store/items"): f'{{"namespace":["d"],"key":"k","value":{deep(levels)}}}',
        ("POST", "/store/items/search"): f'{{"namespace_prefix":["d"],"filter":{deep(levels)}}}',
    }
    for (method, path), body in bodies.items():
        response = api.request(method, path, content=body, headers=headers)
        assert 400 <= response.status_code < 500, (path, response.text)


@pytest.mark.parametrize(
    "put_body",
    [
        {"namespace": []},
        {"namespace": ["langgraph"]},
        {"namespace": ["a\x00"]},
        {"ttl": -1},
        {"ttl": 0},
        {"ttl": 1e300},
        {"value": {"n": 10**400}},
        {"index": ["[" * 5000]},
        {"index": [5]},
    ],
    ids=lambda body: str(body)[:40],
)
def test_invalid_put_is_not_answered_with_500(api: httpx.Client, put_body: dict[str, Any]) -> None:
    body = {"namespace": ["bad"], "key": "k", "value": {}, **put_body}
    response = api.put("/store/items", json=body)
    assert response.status_code < 500, response.text
    if "index" not in put_body:
        assert response.status_code >= 400, response.text


@pytest.mark.parametrize(
    "body", [{}, {"namespace_prefix": None}, {"namespace_prefix": []}], ids=str
)
def test_search_without_a_prefix_searches_everything(
    api: httpx.Client, body: dict[str, Any]
) -> None:
    """The schema allows a missing prefix; the stock route alone would answer 500."""
    put(api, ["everywhere"], "k", {"everywhere": True})
    assert search(api, **body, filter={"everywhere": True}) == ["k"]
    for wrong in ("[]", "5", '{"namespace_prefix": 5}', "{", ""):
        response = api.post("/store/items/search", content=wrong)
        assert 400 <= response.status_code < 500, (wrong, response.text)


def test_invalid_namespace_listing_is_answered_with_4xx(api: httpx.Client) -> None:
    for body in ({"limit": -1}, {"max_depth": 0}, {"limit": 1.0}, {"prefix": ["a.b"]}):
        response = api.post("/store/namespaces", json=body)
        assert 400 <= response.status_code < 500, (body, response.text)


def test_namespace_t1_does_not_match_t10(api: httpx.Client) -> None:
    """CVE-2026-71433, through the API."""
    put(api, ["t1"], "mine", {})
    put(api, ["t10"], "theirs", {})
    put(api, ["t1", "%"], "below", {})
    assert sorted(search(api, namespace_prefix=["t1"])) == ["below", "mine"]
    assert search(api, namespace_prefix=["t%"]) == []
    assert search(api, namespace_prefix=["t1", "_"]) == []
    listed = api.post("/store/namespaces", json={"prefix": ["t1"]}).json()["namespaces"]
    assert listed == [["t1"], ["t1", "%"]]


def test_vector_search_uses_the_configured_model(api: httpx.Client) -> None:
    put(api, ["v"], "cats", {"text": "cat cat dog"})
    put(api, ["v"], "fish", {"text": "fish"})
    put(api, ["v"], "dogs", {"text": "dog"})
    body = {"namespace_prefix": ["v"], "query": "cat", "limit": 2}
    items = api.post("/store/items/search", json=body).json()["items"]
    assert items[0]["key"] == "cats"
    assert items[0]["score"] > 0.8


def test_nodes_use_the_store_with_and_without_await(api: httpx.Client) -> None:
    response = api.post("/runs/wait", json={"assistant_id": "remember", "input": {}})
    assert response.status_code == 200, response.text
    state = response.json()
    assert state["seen"] == {"text": "cat", "owner": "admin"}
    assert state["found"][0][0] == "sync"
    assert state["found"][0][1] == pytest.approx(1.0)
    assert search(api, namespace_prefix=["graph"]) == ["sync"]
