"""Invalid requests get a 4xx that says why, and change nothing. Fuzzing found many of them."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from langgraph_runtime_sql.events.publisher import FLUSH_SECONDS
from tests.support import databases
from tests.support.garbage import complaint, nested
from tests.support.served import served

pytestmark = pytest.mark.usefixtures("each_database")

NOWHERE = "00000000-0000-4000-8000-00000000abcd"
PATIENCE = 60.0
# Bytes are sent as they are, for bodies that no JSON encoder writes.
Body = Any


class Served:
    """An idle server with one object of each kind, and access to its database.

    Attributes:
        is_settled: Whether nothing is stored any more unless a request asks for it.
    """

    def __init__(self, client: httpx.Client, database: Path) -> None:
        self.client = client
        self.database = database
        run = {"assistant_id": "echo", "input": {"value": "a"}}
        thread = self.post("/threads", {"metadata": {"a": 1}})["thread_id"]
        made = self.post(f"/threads/{thread}/runs", run)["run_id"]
        client.get(f"/threads/{thread}/runs/{made}/join").raise_for_status()
        self.ids = {
            "THREAD": thread,
            "RUN": made,
            "EMPTY": self.post("/threads", {})["thread_id"],
            "ASSISTANT": self.post("/assistants", {"graph_id": "echo"})["assistant_id"],
            "CRON": self.post("/runs/crons", {**run, "schedule": "0 0 1 1 *"})["cron_id"],
        }
        self.settle()

    def post(self, path: str, body: Any) -> Any:
        answer = self.client.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def settle(self) -> None:
        """Wait until no run is in flight, and its last events are stored."""
        deadline = time.monotonic() + PATIENCE
        while self._query("SELECT 1 FROM runs WHERE status IN ('pending', 'running') LIMIT 1"):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        # Events follow within `FLUSH_SECONDS`; a busy machine takes longer.
        before = self.contents()
        while True:
            time.sleep(10 * FLUSH_SECONDS)
            if (after := self.contents()) == before:
                self.is_settled = True
                return
            assert time.monotonic() < deadline
            before = after

    def contents(self) -> dict[str, list[Any]]:
        """Return every row of every table."""
        return databases.contents(self.database)

    def _query(self, statement: str) -> list[Any]:
        return databases.execute(self.database, statement)

    def filled(self, text: str) -> str:
        for name, value in self.ids.items():
            text = text.replace(name, value)
        return text

    def send(self, method: str, path: str, body: Body = None, **headers: str) -> httpx.Response:
        """Send a request. Only refusals are read to their end, because streams may not end."""
        content = None
        if body is not None:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"content-type": "application/json", **headers}
        if content is not None:
            content = self.filled(content.decode("latin-1")).encode("latin-1")
        with self.client.stream(
            method, self.filled(path), content=content, headers=headers
        ) as answer:
            if answer.status_code >= 400:
                answer.read()
            return answer


@pytest.fixture(scope="module")
def server(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("bad")
    with (
        served(folder) as running,
        httpx.Client(base_url=running.url, timeout=PATIENCE) as client,
    ):
        yield Served(client, folder / "data.db")


@pytest.fixture(autouse=True)
def settled(request: pytest.FixtureRequest, server: Served) -> Iterator[None]:
    """Note which tests may have started a run."""
    yield
    if "unchanged" not in request.fixturenames:
        server.is_settled = False


@pytest.fixture
def unchanged(server: Served) -> Iterator[Served]:
    """The server; the test fails if its database changes."""
    if not server.is_settled:
        server.settle()
    before = server.contents()
    yield server
    assert server.contents() == before


def refused(server: Served, method: str, path: str, body: Body = None, **headers: str) -> str:
    """Send a request that must get a 4xx with a reason. Return the answer's text."""
    answer = server.send(method, path, body, **headers)
    assert 400 <= answer.status_code < 500, f"{answer.status_code} for {method} {path} {body!r}"
    assert (wrong := complaint(answer)) is None, f"{wrong} for {method} {path} {body!r}"
    return answer.text


RAW = {
    "nothing": b"",
    "spaces": b"   ",
    "cut short": b'{"metadata":',
    "no UTF-8": b'{"metadata": {"a": "\xff"}}',
    "an encoded surrogate": b'{"metadata": {"a": "\xed\xa0\x80"}}',
    "a lone surrogate": b'{"metadata": {"a": "\\ud800"}}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf{}",
    "NUL": b"\x00",
    "NaN": b'{"metadata": {"a": NaN}}',
    "infinity": b'{"limit": Infinity}',
    "a number past every float": b'{"metadata": {"a": 1e999}}',
    "a form": b"metadata=1",
    "a list": b"[]",
    "null": b"null",
    "text": b'"x"',
    "a number": b"1",
    "10,000 deep": nested(10_000, '{"metadata":', "}").encode(),
    "300 deep": b'{"metadata": ' + nested(300, '{"a":', "}").encode() + b"}",
}


@pytest.mark.parametrize("raw", RAW, ids=list(RAW))
def test_body_that_is_not_a_json_object_is_4xx(unchanged: Served, raw: str) -> None:
    for method, path in [
        ("POST", "/threads"),
        ("PATCH", "/threads/THREAD"),
        ("POST", "/threads/search"),
        ("POST", "/threads/THREAD/runs"),
        ("POST", "/runs/stream"),
        ("POST", "/runs/crons"),
        ("POST", "/assistants"),
        ("PUT", "/store/items"),
        ("POST", "/store/items/search"),
        ("POST", "/threads/THREAD/commands"),
        ("POST", "/threads/THREAD/stream/events"),
    ]:
        refused(unchanged, method, path, RAW[raw])


IDS = [
    "x",
    "0",
    "-1",
    "..%2f..%2fetc%2fpasswd",
    "%2e%2e",
    "%00",
    "%0a",
    "'%20OR%201=1%20--",
    "%F0%9F%98%80",
    "%ff",
    "x" * 5000,
    "null",
    "00000000-0000-0000-0000-00000000000",
    NOWHERE + "0",
]
RUN = {"assistant_id": "echo", "input": {"value": "a"}}
CRON = {**RUN, "schedule": "0 0 1 1 *"}
BY_ID: list[tuple[str, str, Body]] = [
    ("GET", "/threads/{}", None),
    ("PATCH", "/threads/{}", {"metadata": {}}),
    ("DELETE", "/threads/{}", None),
    ("POST", "/threads/{}/copy", None),
    ("GET", "/threads/{}/state", None),
    ("POST", "/threads/{}/state", {"values": {}}),
    ("POST", "/threads/{}/state/checkpoint", {"checkpoint": {}}),
    ("GET", "/threads/{}/history", None),
    ("POST", "/threads/{}/history", {}),
    ("GET", "/threads/{}/stream", None),
    ("POST", "/threads/{}/stream/events", {"channels": ["values"]}),
    ("GET", "/threads/{}/runs", None),
    ("POST", "/threads/{}/runs", {**RUN, "if_not_exists": "create"}),
    ("POST", "/threads/{}/runs/wait", RUN),
    ("POST", "/threads/{}/runs/stream", RUN),
    ("POST", "/threads/{}/runs/crons", CRON),
    ("GET", "/threads/THREAD/runs/{}", None),
    ("DELETE", "/threads/THREAD/runs/{}", None),
    ("GET", "/threads/THREAD/runs/{}/join", None),
    ("GET", "/threads/THREAD/runs/{}/stream", None),
    ("POST", "/threads/THREAD/runs/{}/cancel", None),
    ("POST", "/threads/THREAD/runs/{}/cancel?wait=1", None),
    ("POST", "/threads/{}/runs/RUN/cancel", None),
    ("GET", "/threads/{}/runs/RUN", None),
    ("GET", "/assistants/{}", None),
    ("PATCH", "/assistants/{}", {"name": "x"}),
    ("DELETE", "/assistants/{}", None),
    ("GET", "/assistants/{}/graph", None),
    ("GET", "/assistants/{}/schemas", None),
    ("GET", "/assistants/{}/subgraphs", None),
    ("POST", "/assistants/{}/versions", {}),
    ("POST", "/assistants/{}/latest", {"version": 1}),
    ("GET", "/runs/crons/{}", None),
    ("PATCH", "/runs/crons/{}", {"enabled": True}),
    ("DELETE", "/runs/crons/{}", None),
]


@pytest.mark.parametrize("route", BY_ID, ids=lambda route: f"{route[0]} {route[1]}")
def test_malformed_id_is_4xx(unchanged: Served, route: tuple[str, str, Body]) -> None:
    method, path, body = route
    for identifier in IDS:
        refused(unchanged, method, path.replace("{}", identifier), body)


@pytest.mark.parametrize(
    "route",
    # A stream may be followed before its thread or run exists, and without a body one is created.
    [each for each in BY_ID if "stream" not in each[1] and "join" not in each[1]],
    ids=lambda route: f"{route[0]} {route[1]}",
)
def test_unknown_id_is_4xx_with_a_detail(unchanged: Served, route: tuple[str, str, Body]) -> None:
    method, path, body = route
    if isinstance(body, dict):
        body = {key: value for key, value in body.items() if key != "if_not_exists"}
    text = refused(unchanged, method, path.replace("{}", NOWHERE), body)
    assert json.loads(text)["detail"]


QUERIES = [
    ("/threads/THREAD/runs?limit={}", ["-1", "1.5", "x", "", "1e3", "9" * 30, "2147483648", "%00"]),
    ("/threads/THREAD/runs?offset={}", ["-1", "1.5", "x", "", "NaN", "9" * 5000, "٣"]),
    ("/threads/THREAD/runs?select={}", ["x", "", "run_id,status", "%00", "'"]),
    ("/threads/THREAD/history?limit={}", ["-1", "1.5", "x", "", "9" * 30]),
    ("/threads/THREAD/stream?stream_modes={}", ["x", "values", "lifecycle,x", "%00"]),
    ("/assistants/ASSISTANT/graph?xray={}", ["x", "1.5", "[]"]),
    ("/store/items?namespace={}&key=k", [".", "a..b", ".a", "a."]),
    ("/store/items?namespace=a&key={}", [""]),
]


@pytest.mark.parametrize(("path", "values"), QUERIES, ids=[path for path, _ in QUERIES])
def test_invalid_query_parameter_is_4xx(unchanged: Served, path: str, values: list[str]) -> None:
    for value in values:
        refused(unchanged, "GET", path.replace("{}", value))


@pytest.mark.parametrize("path", ["/threads/THREAD/stream", "/threads/THREAD/runs/RUN/stream"])
def test_invalid_last_event_id_is_4xx(unchanged: Served, path: str) -> None:
    for value in ("garbage", "1-x", "1-2-3", "-2", "9" * 40, "' OR 1=1"):
        refused(unchanged, "GET", path, **{"last-event-id": value})


def bodies(method: str, path: str, *bad: Body, base: Body = None) -> list[Any]:
    """Return one test parameter, a list of requests: each invalid body, merged into `base`."""
    asked = [{**(base or {}), **each} if isinstance(each, dict) else each for each in bad]
    return [pytest.param(method, path, asked, id=f"{method} {path}")]


FAR = 10**30
THREADS = [
    *bodies(
        "POST",
        "/threads",
        {"thread_id": "x"},
        {"thread_id": 7},
        {"thread_id": ["THREAD"]},
        {"thread_id": "THREAD", "if_exists": "explode"},
        {"thread_id": "THREAD"},
        {"metadata": "x"},
        {"metadata": [1]},
        {"ttl": "soon"},
        {"ttl": {"ttl": -5}},
        {"ttl": {"ttl": 0}},
        {"ttl": {"ttl": "1"}},
        {"ttl": {"ttl": 1e300}},
        {"ttl": {"ttl": FAR}},
        {"ttl": {"strategy": "explode", "ttl": 1}},
        {"supersteps": "x"},
        {"supersteps": [{"updates": [{"values": "x", "as_node": "echo"}]}]},
        {"supersteps": [{"updates": [{"as_node": 1}]}]},
        {"supersteps": [{"updates": [{"as_node": "echo", "command": {"goto": [{"node": 1}]}}]}]},
    ),
    *bodies("PATCH", "/threads/THREAD", {"metadata": 1}, {"ttl": {"ttl": -1}}, {"ttl": [1]}),
    *bodies(
        "POST",
        "/threads/search",
        {"limit": -1},
        {"limit": 0},
        {"limit": 1.5},
        {"limit": "1"},
        {"limit": FAR},
        {"offset": -1},
        {"offset": 2**31},
        {"offset": 2**63},
        {"offset": FAR},
        {"sort_by": "thread_id; DROP TABLE threads"},
        {"sort_by": 1},
        {"sort_order": "sideways"},
        {"select": ["secret"]},
        {"select": "thread_id"},
        {"extract": {"a": "secret.x"}},
        {"extract": {"a b": "values.x"}},
        {"extract": {"a": 1}},
        {"extract": {"status": "values.x"}},
        {"extract": {f"a{n}": "values.x" for n in range(11)}},
        {"ids": "x"},
        {"ids": ["x"]},
        {"ids": [1]},
        {"status": "asleep"},
        {"metadata": "x"},
        {"values": 1},
    ),
    *bodies("POST", "/threads/count", {"status": "asleep"}, {"metadata": []}, {"values": "x"}),
    *bodies(
        "POST",
        "/threads/prune",
        {"thread_ids": ["x"]},
        {"thread_ids": "THREAD"},
        {"thread_ids": ["THREAD"], "strategy": "explode"},
        {},
    ),
    *bodies(
        "POST",
        "/threads/THREAD/state",
        {"values": {"value": "x"}, "as_node": "nobody"},
        {"values": {"value": "x"}, "as_node": 1},
        {"values": "x"},
        {"values": 1},
        {"values": [1, 2]},
        {"checkpoint": "x"},
        {"checkpoint": {"checkpoint_id": 1}},
        {"checkpoint": {"checkpoint_ns": []}},
        {"checkpoint": {"checkpoint_map": "x"}},
        {"values": {"value": "x"}, "checkpoint": {"checkpoint_ns": "nobody:1"}},
    ),
    *bodies("POST", "/threads/EMPTY/state", {"values": {"value": "x"}}),
    *bodies(
        "POST",
        "/threads/THREAD/history",
        {"limit": -1},
        {"limit": FAR},
        {"limit": "x"},
        {"before": 1},
        {"before": []},
        {"metadata": "x"},
        {"checkpoint": "x"},
        {"checkpoint": {"checkpoint_ns": 1}},
    ),
    *bodies("POST", "/threads/THREAD/state/checkpoint", {}, {"checkpoint": 1}),
]


@pytest.mark.parametrize(("method", "path", "asked"), THREADS)
def test_invalid_thread_request_is_4xx(
    unchanged: Served, method: str, path: str, asked: list[Body]
) -> None:
    for body in asked:
        refused(unchanged, method, path, body)


KEYS = [
    "'",
    '"',
    "a.b",
    "$eq",
    "$",
    "$.a",
    "[0]",
    "a[0]",
    "\x00",
    "%",
    "_",
    "",
    "\\",
    "😀",
    "k" * 5000,
]
KEYS += ["') OR 1=1 --", "a' = 'a", '{"a": 1}', "owner", "__proto__", "constructor"]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: repr(key)[:30])
def test_any_metadata_key_is_stored_and_found_as_data(server: Served, key: str) -> None:
    mine, other = ({"case": key[:50], key: value} for value in ("mine", "other's"))
    thread = server.post("/threads", {"metadata": mine})["thread_id"]
    server.post("/threads", {"metadata": other})
    assistant = server.post("/assistants", {"graph_id": "echo", "metadata": mine})["assistant_id"]
    for value in ("mine", {"a": ["mine"]}):
        wanted = {key: value}
        found = [each["thread_id"] for each in server.post("/threads/search", {"metadata": wanted})]
        assert found == ([thread] if value == "mine" else [])
        assert server.post("/threads/count", {"metadata": wanted}) == len(found)
        body = {"metadata": wanted}
        made = [each["assistant_id"] for each in server.post("/assistants/search", body)]
        assert made == ([assistant] if value == "mine" else [])
    # The API writes a replacement character for NUL, which no text of Postgres can hold.
    shown = json.loads(json.dumps(mine).replace("\\u0000", "\\ufffd"))
    assert server.client.get(f"/threads/{thread}").json()["metadata"] == shown
    assert server.post(f"/threads/{thread}/history", {"metadata": {key: "x"}}) == []


MANY = {
    "metadata": {f"k{n}": n for n in range(19_000)},
    "ids": [f"00000000-0000-4000-8000-{n:012}" for n in range(19_000)],
}
TOO_MUCH = [
    ("POST", "/threads", {"metadata": MANY["metadata"]}),
    ("PATCH", "/threads/THREAD", {"metadata": MANY["metadata"]}),
    ("POST", "/runs", {"assistant_id": "echo", "metadata": MANY["metadata"]}),
    ("POST", "/threads/search", {"metadata": MANY["metadata"]}),
    ("POST", "/threads/count", {"metadata": MANY["metadata"]}),
    ("POST", "/threads/search", {"ids": MANY["ids"]}),
    ("POST", "/threads/prune", {"thread_ids": MANY["ids"]}),
    ("POST", "/runs/cancel", {"thread_id": NOWHERE, "run_ids": MANY["ids"]}),
    ("POST", "/runs/batch", [{"assistant_id": "echo"}] * 9_000),
    ("POST", "/store/items/search", {"filter": MANY["metadata"]}),
    ("POST", "/threads", {"metadata": "x" * 1_000_000}),
]


@pytest.mark.parametrize("route", TOO_MUCH, ids=lambda route: f"{route[1]} {list(route[2])[:1]}")
def test_oversized_request_is_refused_quickly(
    unchanged: Served, route: tuple[str, str, Body]
) -> None:
    """Some took a minute and blocked all writers, or exceeded a database limit with a 500."""
    started = time.monotonic()
    text = refused(unchanged, *route)
    assert time.monotonic() - started < 60
    # A refusal does not repeat the request.
    assert len(text) < 5000


def test_largest_allowed_request_is_answered_quickly(server: Served) -> None:
    started = time.monotonic()
    metadata = {f"k{n}": n for n in range(1000)}
    thread = server.post("/threads", {"metadata": metadata})["thread_id"]
    wanted = {f"k{n}": n for n in range(64)}
    for path, body in (
        ("/threads/search", {"metadata": wanted}),
        ("/threads/search", {"ids": [thread, *MANY["ids"][:999]]}),
    ):
        assert [each["thread_id"] for each in server.post(path, body)] == [thread]
    assert time.monotonic() - started < 60


BAD_RUNS: list[dict[str, Any]] = [
    {"assistant_id": "nobody"},
    {"assistant_id": NOWHERE},
    {"assistant_id": 1},
    {"assistant_id": None},
    {"config": "x"},
    {"config": {"configurable": "x"}},
    {"config": {"recursion_limit": "x"}},
    {"config": {"configurable": {"a": 1}}, "context": {"b": 2}},
    {"metadata": "x"},
    {"config": {"configurable": {"a\x00": 1}}},
    {"context": {"a\x00": 1}},
    {"command": "x"},
    {"command": {"goto": 1}},
    {"command": {"goto": [{"node": "echo"}]}},
    {"command": {"goto": {"node": 1, "input": {}}}},
    {"command": {"update": "x"}},
    {"stream_mode": "everything"},
    {"stream_mode": ["values", 1]},
    {"stream_mode": ["lifecycle"]},
    {"interrupt_before": "x"},
    {"interrupt_before": [1]},
    {"interrupt_after": {"a": 1}},
    {"after_seconds": "1"},
    {"after_seconds": 1e300},
    {"after_seconds": FAR},
    {"webhook": 1},
    {"webhook": ""},
    {"webhook": "http://[::1"},
    {"webhook": "ftp://example.com"},
    {"multitask_strategy": "explode"},
    {"multitask_strategy": ["enqueue"]},
    {"multitask_strategy": {"a": 1}},
    {"if_not_exists": "explode"},
    {"durability": "eternal"},
    {"checkpoint_during": "x"},
    {"checkpoint_id": 1},
    {"checkpoint_id": True},
    {"checkpoint_id": ["x"]},
    {"checkpoint_id": {"a": 1}},
    {"checkpoint_id": "x"},
    {"checkpoint": "x"},
    {"checkpoint": [1]},
    {"langsmith_tracer": "x"},
    {"langsmith_tracer": [1]},
    {"langsmith_tracer": 1.5},
    {"langsmith_tracer": {"project_name": 1}},
    {"feedback_keys": "x"},
    {"stream_subgraphs": "x"},
    {"stream_resumable": 1},
]
RUN_ROUTES = ["/threads/THREAD/runs", "/runs", "/runs/wait", "/threads/THREAD/runs/stream"]


@pytest.mark.parametrize("path", [*RUN_ROUTES, "/runs/batch"])
def test_invalid_run_is_4xx_on_every_run_route(unchanged: Served, path: str) -> None:
    for bad in BAD_RUNS:
        body = {**RUN, **bad}
        refused(unchanged, "POST", path, [body] if path == "/runs/batch" else body)


RUNS = [
    *bodies("POST", "/threads/THREAD/runs/stream", {"on_disconnect": "explode"}, base=RUN),
    *bodies("POST", "/runs", {"on_completion": "explode"}, {"command": {"resume": 1}}, base=RUN),
    *bodies("POST", "/runs/batch", [], [1], [[]], {"a": 1}),
    *bodies(
        "POST",
        "/runs/cancel",
        {},
        {"status": "asleep"},
        {"status": 1},
        {"status": "all", "thread_id": "THREAD", "run_ids": ["RUN"]},
        {"thread_id": "THREAD"},
        {"run_ids": ["RUN"]},
        {"thread_id": "THREAD", "run_ids": ["x"]},
        {"thread_id": "THREAD", "run_ids": [1]},
        {"thread_id": "THREAD", "run_ids": []},
        {"thread_id": "THREAD", "run_ids": "RUN"},
        {"thread_id": 1, "run_ids": ["RUN"]},
        {"thread_id": "THREAD", "run_ids": ["RUN"]},
    ),
]


@pytest.mark.parametrize(("method", "path", "asked"), RUNS)
def test_invalid_batch_or_cancellation_is_4xx(
    unchanged: Served, method: str, path: str, asked: list[Body]
) -> None:
    for body in asked:
        refused(unchanged, method, path, body)


@pytest.mark.parametrize(
    "bad",
    [
        {"assistant_id": "nobody"},
        {"assistant_id": NOWHERE},
        {"webhook": "/threads"},
        {"after_seconds": 1e300},
        {"command": {"resume": 1}},
        {"config": {"configurable": {"a": 1}}, "context": {"b": 2}},
    ],
    ids=str,
)
def test_batch_with_one_invalid_run_creates_no_run(unchanged: Served, bad: dict[str, Any]) -> None:
    """The valid runs of a refused batch were created, and ran."""
    for place in (0, 1, 3):
        batch: list[Any] = [{**RUN, "on_completion": "keep"} for _ in range(3)]
        batch.insert(place, {**RUN, **bad})
        refused(unchanged, "POST", "/runs/batch", batch)


def test_batch_creates_its_runs_in_order(server: Served) -> None:
    batch = [{**RUN, "metadata": {"place": place}} for place in range(20)]
    made = server.post("/runs/batch", batch)
    assert [run["metadata"]["place"] for run in made] == list(range(20))
    assert len({run["run_id"] for run in made}) == 20


ASSISTANTS = [
    *bodies(
        "POST",
        "/assistants",
        {"graph_id": "nobody"},
        {"graph_id": "../echo"},
        {"graph_id": 1},
        {},
        {"graph_id": "echo", "assistant_id": "x"},
        {"graph_id": "echo", "assistant_id": "ASSISTANT"},
        {"graph_id": "echo", "if_exists": "explode"},
        {"graph_id": "echo", "config": "x"},
        {"graph_id": "echo", "config": {"configurable": []}},
        {"graph_id": "echo", "context": 1},
        {"graph_id": "echo", "config": {"configurable": {"a": 1}}, "context": {"b": 2}},
        {"graph_id": "echo", "metadata": "x"},
        {"graph_id": "echo", "context": {"a\x00": 1}},
        {"graph_id": "echo", "name": 1},
        {"graph_id": "echo", "description": []},
    ),
    *bodies("PATCH", "/assistants/ASSISTANT", {"graph_id": "nobody"}, {"metadata": 1}),
    *bodies(
        "POST",
        "/assistants/search",
        {"limit": -1},
        {"limit": FAR},
        {"offset": -1},
        {"offset": FAR},
        {"sort_by": "1; --"},
        {"sort_order": 1},
        {"select": ["secret"]},
        {"metadata": "x"},
        {"graph_id": 1},
        {"graph_id": "nobody"},
        {"name": []},
    ),
    *bodies("POST", "/assistants/ASSISTANT/versions", {"limit": -1}, {"offset": FAR}),
    *bodies(
        "POST",
        "/assistants/ASSISTANT/latest",
        {},
        {"version": "1"},
        {"version": 0},
        {"version": -1},
        {"version": 2**63},
        {"version": FAR},
    ),
]


@pytest.mark.parametrize(("method", "path", "asked"), ASSISTANTS)
def test_invalid_assistant_request_is_4xx(
    unchanged: Served, method: str, path: str, asked: list[Body]
) -> None:
    for body in asked:
        refused(unchanged, method, path, body)


BAD_CRONS: list[dict[str, Any]] = [
    {"schedule": "x"},
    {"schedule": ""},
    {"schedule": 1},
    {"schedule": "* * *"},
    {"schedule": "61 * * * *"},
    {"schedule": "*/0 * * * *"},
    {"schedule": "0 0 31 2 *"},
    {"schedule": "\x00 * * * *"},
    {"schedule": "@reboot"},
    {"schedule": "* * * * * * * * *"},
    {"schedule": "x" * 20_000},
    {"schedule": "1," * 20_000 + "1 * * * *x"},
    {"timezone": "Nowhere"},
    {"timezone": "America"},
    {"timezone": "x" * 20_000},
    {"timezone": "../../../etc/passwd"},
    {"timezone": 1},
    {"end_time": "tomorrow"},
    {"end_time": 1},
    {"end_time": "9999999-01-01T00:00:00Z"},
    {"enabled": "x"},
    {"webhook": "ftp://example.com"},
    {"metadata": "x"},
    {"input": 1},
    {"stream_mode": "everything"},
    {"checkpoint_id": 1},
    {"langsmith_tracer": "x"},
]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/runs/crons"),
        ("POST", "/threads/THREAD/runs/crons"),
        ("PATCH", "/runs/crons/CRON"),
    ],
)
def test_invalid_cron_is_4xx_on_every_cron_route(unchanged: Served, method: str, path: str) -> None:
    for bad in BAD_CRONS:
        refused(unchanged, method, path, bad if method == "PATCH" else {**CRON, **bad})


@pytest.mark.parametrize(
    "timezone", ["America", "x" * 300, "../../etc/passwd", "a\x00b", "", "Atlantis/Capital", 7]
)
def test_cron_with_an_unknown_time_zone_is_refused_with_422(
    unchanged: Served, timezone: Any
) -> None:
    """A folder of the zone database and a name too long for a file were a 500."""
    for method, path, body in (
        ("POST", "/runs/crons", {**CRON, "timezone": timezone}),
        ("POST", "/threads/THREAD/runs/crons", {**CRON, "timezone": timezone}),
        ("PATCH", "/runs/crons/CRON", {"timezone": timezone}),
    ):
        answer = unchanged.send(method, path, body)
        assert answer.status_code == 422, answer.text


@pytest.mark.parametrize(
    "path", ["/assistants/search", "/runs/crons/search", "/assistants/ASSISTANT/versions"]
)
@pytest.mark.parametrize("offset", [2**63, 10**30])
def test_offset_past_63_bits_is_refused(unchanged: Served, path: str, offset: int) -> None:
    answer = unchanged.send("POST", path, {"offset": offset})
    assert answer.status_code in (400, 422) and answer.json()["detail"]


CRONS = [
    *bodies(
        "POST",
        "/runs/crons",
        {"assistant_id": "nobody"},
        {"assistant_id": NOWHERE},
        {"on_run_completed": "explode"},
        base=CRON,
    ),
    *bodies("PATCH", "/runs/crons/CRON", {}),
    *bodies(
        "POST",
        "/runs/crons/search",
        {"assistant_id": "x"},
        {"thread_id": 1},
        {"limit": -1},
        {"offset": FAR},
        {"sort_by": "cron_id; --"},
        {"select": ["secret"]},
        {"enabled": "x"},
        {"metadata": []},
    ),
    *bodies("POST", "/runs/crons/count", {"assistant_id": "x"}, {"thread_id": "x"}),
]


@pytest.mark.parametrize(("method", "path", "asked"), CRONS)
def test_invalid_cron_search_or_update_is_4xx(
    unchanged: Served, method: str, path: str, asked: list[Body]
) -> None:
    for body in asked:
        refused(unchanged, method, path, body)


ITEM = {"namespace": ["a"], "key": "k", "value": {"x": 1}}
STORE = [
    *bodies(
        "PUT",
        "/store/items",
        {"namespace": []},
        {"namespace": [""]},
        {"namespace": ["a.b"]},
        {"namespace": ["a", 1]},
        {"namespace": "a"},
        {"namespace": ["langgraph", "x"]},
        {"key": 1},
        {"value": 1},
        {"value": None},
        {"index": True},
        {"index": [1]},
        {"ttl": 0},
        {"ttl": -1},
        {"ttl": "1"},
        {"ttl": 1e300},
        {"ttl": FAR},
        base=ITEM,
    ),
    *bodies("DELETE", "/store/items", {}, {"namespace": ["a.b"], "key": "k"}, {"namespace": ["a"]}),
    *bodies(
        "POST",
        "/store/items/search",
        {"namespace_prefix": ["a.b"]},
        {"namespace_prefix": [""]},
        {"namespace_prefix": "a"},
        {"filter": "x"},
        {"filter": {"x": {"$where": 1}}},
        {"filter": {"$or": []}},
        {"filter": {"$nor": [{"a": 1}]}},
        {"limit": -1},
        {"limit": FAR},
        {"offset": -1},
        {"query": 1},
        base={"namespace_prefix": ["a"]},
    ),
    *bodies(
        "POST",
        "/store/namespaces",
        {"prefix": ["a.b"]},
        {"suffix": [""]},
        {"max_depth": 0},
        {"max_depth": "x"},
        {"limit": -1},
        {"limit": FAR},
        {"offset": -1},
    ),
]


@pytest.mark.parametrize(("method", "path", "asked"), STORE)
def test_invalid_store_request_is_4xx(
    unchanged: Served, method: str, path: str, asked: list[Body]
) -> None:
    for body in asked:
        refused(unchanged, method, path, body)


def test_namespace_of_a_thousand_labels_is_stored_or_refused_with_400(server: Served) -> None:
    namespace = [f"label {n} %_'\"" for n in range(1000)]
    answer = server.send("PUT", "/store/items", {**ITEM, "namespace": namespace})
    if databases.kind() == "postgresql":
        # Longer than what an index of Postgres can hold.
        assert answer.status_code == 400
        return
    assert answer.is_success
    found = server.post("/store/items/search", {"namespace_prefix": namespace[:999]})
    assert [item["namespace"] for item in found["items"]] == [namespace]


@pytest.mark.parametrize(
    ("graph", "node", "values"),
    [
        ("echo", "echo", {"count": "x"}),
        ("echo", "echo", {"messages": 1}),
        ("echo", "echo", {"messages": [1]}),
        ("echo", "echo", {"messages": [[]]}),
        ("echo", "echo", {"messages": [{"role": "tool", "content": "x"}]}),
        ("echo", "echo", {"messages": [{"role": "nobody", "content": "x"}]}),
        ("subgraph", "before", {"trail": "x"}),
        ("steps", "begin", {"count": "x"}),
        ("steps", "begin", {"first": "x"}),
        ("dispatch", "plan", {"items": 1}),
    ],
    ids=str,
)
def test_values_that_a_graph_cannot_apply_are_4xx(
    server: Served, graph: str, node: str, values: dict[str, Any]
) -> None:
    """Every exception of reducers and branches except ValueError was a 500."""
    thread = server.post("/threads", {"metadata": {"graph_id": graph}})["thread_id"]
    before = server.contents()
    text = refused(server, "POST", f"/threads/{thread}/state", {"values": values, "as_node": node})
    assert json.loads(text)["detail"]
    assert server.contents() == before


@pytest.mark.parametrize(
    "kind", ["ValueError", "TypeError", "KeyError", "RecursionError", "UnicodeError"]
)
def test_exception_of_a_graph_fails_its_run(server: Served, kind: str) -> None:
    """The error handlers for invalid input must not catch exceptions of graphs."""
    thread = server.post("/threads", {})["thread_id"]
    body = {"assistant_id": "failing", "input": {"error": kind, "message": "the cause"}}
    answer = server.post(f"/threads/{thread}/runs/wait", body)
    assert answer["__error__"]["error"] == kind
    assert "the cause" in answer["__error__"]["message"]
    (run,) = server.client.get(f"/threads/{thread}/runs").json()
    assert run["status"] == "error"


def test_sys_exit_in_a_graph_fails_its_run_and_not_the_server(server: Served) -> None:
    """SystemExit ended the process with all its runs; the retry ended the next process."""
    thread = server.post("/threads", {})["thread_id"]
    body = {"assistant_id": "failing", "input": {"error": "SystemExit", "message": "enough"}}
    answer = server.post(f"/threads/{thread}/runs/wait", body)
    assert answer["__error__"]["error"] == "GraphExited"
    assert "sys.exit('enough')" in answer["__error__"]["message"]
    (run,) = server.client.get(f"/threads/{thread}/runs").json()
    assert run["status"] == "error"


def test_superstep_command_without_goto_updates_the_state(server: Served) -> None:
    """A superstep with a command but without `goto` was a 500."""
    for command in ({"update": {"value": "x"}}, {"update": {"value": "x"}, "goto": []}):
        step = {"updates": [{"as_node": "echo", "command": command}]}
        body = {"metadata": {"graph_id": "echo"}, "supersteps": [step]}
        assert server.post("/threads", body)["values"]


# --- protocols ----------------------------------------------------------------

RPC = {"jsonrpc": "2.0", "id": 7}
MCP = {"accept": "application/json, text/event-stream"}


def rpc_error(server: Served, path: str, body: Body) -> dict[str, Any]:
    """Send a JSON-RPC request that must fail. Return the error in the answer."""
    headers = MCP if path == "/mcp" else {}
    answer = server.client.post(
        server.filled(path),
        content=body if isinstance(body, bytes) else json.dumps(body),
        headers=headers,
    )
    assert answer.status_code < 500 and complaint(answer) is None, answer.text
    answered = answer.json()
    assert answered["jsonrpc"] == "2.0" and "result" not in answered
    if isinstance(body, dict):
        assert answered["id"] == body["id"]
    error: dict[str, Any] = answered["error"]
    assert error["message"]
    return error


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/mcp", "initialize"),
        ("/mcp", "tools/list"),
        ("/mcp", "tools/call"),
        ("/a2a/ASSISTANT", "message/send"),
        ("/a2a/ASSISTANT", "message/stream"),
        ("/a2a/ASSISTANT", "tasks/get"),
        ("/a2a/ASSISTANT", "tasks/cancel"),
        ("/a2a/ASSISTANT", "GetTask"),
    ],
)
def test_json_rpc_parameters_other_than_an_object_are_invalid_params(
    unchanged: Served, path: str, method: str
) -> None:
    """Every other type was a 500."""
    for params in (None, True, 1, "x", [], [1]):
        error = rpc_error(unchanged, path, {**RPC, "method": method, "params": params})
        assert error["code"] == -32602, params


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("initialize", {"protocolVersion": []}),
        ("initialize", {"protocolVersion": {}}),
        ("tools/list", {"cursor": None}),
        ("tools/list", {"cursor": -1}),
        ("tools/list", {"cursor": "-1"}),
        ("tools/list", {"cursor": []}),
        ("tools/list", {"cursor": 2**63}),
        ("tools/list", {"cursor": "9" * 400}),
        ("tools/call", {"name": 1}),
        ("tools/call", {"name": "nobody"}),
        ("tools/call", {}),
        ("tools/call", {"name": "echo", "context": "x"}),
    ],
)
def test_invalid_mcp_parameters_are_invalid_params(
    unchanged: Served, method: str, params: dict[str, Any]
) -> None:
    error = rpc_error(unchanged, "/mcp", {**RPC, "method": method, "params": params})
    assert error["code"] == -32602


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": "\\ud800"}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": NaN}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"\xff": 1}}',
    ],
)
@pytest.mark.parametrize("path", ["/mcp", "/a2a/ASSISTANT"])
def test_malformed_json_rpc_body_is_a_parse_error(unchanged: Served, path: str, raw: bytes) -> None:
    assert rpc_error(unchanged, path, raw)["code"] == -32700


@pytest.mark.parametrize("params", [{"context": {"a\x00": 1}}, {"arguments": 1}])
def test_refused_mcp_tool_call_is_no_5xx(unchanged: Served, params: dict[str, Any]) -> None:
    """The route calls the API as a client does; a refusal there was a 500."""
    body = {**RPC, "method": "tools/call", "params": {"name": "echo", **params}}
    answer = unchanged.client.post("/mcp", json=body, headers=MCP)
    assert answer.status_code < 500 and complaint(answer) is None, answer.text
    unchanged.settle()


def test_mcp_tool_call_accepts_integers_past_64_bits(server: Served) -> None:
    """They were a 500: this route parses JSON with another library than all others."""
    params = b'{"name": "echo", "arguments": {"value": 18446744073709551616}}'
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ' + params + b"}"
    answer = server.client.post("/mcp", content=body, headers=MCP)
    assert answer.is_success, answer.text


COMMANDS: list[Any] = [
    [],
    {"id": "x", "method": "run.start"},
    {"id": 1},
    {"id": 1, "method": 1},
    {"id": 1, "method": "explode"},
    {"id": 1, "method": "run.start"},
    {"id": 1, "method": "run.start", "params": []},
    {"id": 1, "method": "run.start", "params": {"assistant_id": 1}},
    {"id": 1, "method": "run.start", "params": {"assistant_id": "nobody"}},
    {"id": 1, "method": "run.start", "params": {"assistant_id": NOWHERE}},
    {"id": 1, "method": "input.respond", "params": {"interrupt_id": 1}},
    {"id": 1, "method": "input.respond", "params": {"interrupt_id": "x", "namespace": 1}},
    {"id": 1, "method": "input.respond", "params": {"responses": [1]}},
    {"id": 1, "method": "subscription.subscribe", "params": {"channels": []}},
    {"id": 1, "method": "subscription.subscribe", "params": {"channels": ["everything"]}},
    {"id": 1, "method": "subscription.unsubscribe", "params": {"subscription_id": 1}},
    {"id": 1, "method": "agent.getTree", "params": "x"},
]


@pytest.mark.parametrize("path", ["/threads/THREAD/commands", "/threads/x/commands"])
def test_invalid_protocol_command_is_answered_with_an_error(unchanged: Served, path: str) -> None:
    for command in COMMANDS:
        answer = unchanged.client.post(unchanged.filled(path), json=command)
        assert answer.status_code < 500 and complaint(answer) is None, (command, answer.text)
        body = answer.json()
        assert body["type"] == "error" and body["error"] and body["message"], command


@pytest.mark.parametrize(
    "body",
    [{}, {"channels": []}, {"channels": "values"}, {"channels": ["everything"]}, {"channels": [1]}],
    ids=str,
)
def test_invalid_event_stream_request_is_4xx(unchanged: Served, body: Any) -> None:
    refused(unchanged, "POST", "/threads/THREAD/stream/events", body)


def test_web_socket_answers_garbage_and_stays_open(unchanged: Served) -> None:
    base = str(unchanged.client.base_url).replace("http", "ws")
    url = unchanged.filled(f"{base.rstrip('/')}/threads/THREAD/stream/events")
    with connect(url) as socket:
        for frame in ("", "{", "[]", '"x"', "\x00", '{"id": 1}', '{"id": "x", "method": "y"}'):
            socket.send(frame)
            answer = json.loads(socket.recv(timeout=PATIENCE))
            assert (answer["type"], answer["error"]) == ("error", "invalid_argument"), frame
        for command in COMMANDS[4:]:
            socket.send(json.dumps(command))
            answer = json.loads(socket.recv(timeout=PATIENCE))
            assert answer["type"] in ("error", "success"), command
