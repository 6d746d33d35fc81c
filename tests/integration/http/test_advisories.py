"""Published advisories against LangGraph, its servers and Starlette, each tried on this server.

The server uses `tests/graphs/auth.py`: objects that bob creates are bob's, and ada tries to reach
them. `test_security_baseline.py` tries attacks at the root and at a prefix.
"""

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import ormsgpack
import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph_runtime_sql.checkpoint import reading
from langgraph_runtime_sql.database.schema import packed_id
from tests.support import databases
from tests.support.certificates import certified
from tests.support.garbage import LEAKS
from tests.support.processes import GRAPHS, Running
from tests.support.served import served
from tests.support.websites import redirect, websites

pytestmark = pytest.mark.usefixtures("each_database")

PATIENCE = 60.0
RUN = {"assistant_id": "echo", "input": {"value": "hers"}}
CRON = {**RUN, "schedule": "0 0 1 1 *"}


@dataclass(frozen=True)
class Victim:
    """Bob's objects on a server, and its clients.

    Attributes:
        bob, ada, nobody: Clients of the same server; `nobody` is not authenticated.
        ids: Ids of bob's thread, run, assistant and cron.
    """

    server: Running
    database: Path
    bob: httpx.Client
    ada: httpx.Client
    nobody: httpx.Client
    ids: dict[str, str]

    def contents(self) -> dict[str, list[Any]]:
        """Return every row of every table."""
        return databases.contents(self.database)

    def state(self) -> Any:
        return get(self.bob, f"/threads/{self.ids['thread_id']}/state")


def post(client: httpx.Client, path: str, body: Any) -> Any:
    answer = client.post(path, json=body)
    assert answer.is_success, f"{answer.status_code} {answer.text}"
    return answer.json()


def get(client: httpx.Client, path: str) -> Any:
    answer = client.get(path)
    assert answer.is_success, f"{answer.status_code} {answer.text}"
    return answer.json()


def config(folder: Path, **sections: Any) -> Path:
    graphs = ("echo", "failing", "configured")
    path = folder / "langgraph.json"
    content = {
        "graphs": {name: f"{GRAPHS}/{name}.py:graph" for name in graphs},
        "auth": {"path": f"{GRAPHS}/auth.py:auth", "disable_studio_auth": True},
        **sections,
    }
    path.write_text(json.dumps(content))
    return path


def ended(client: httpx.Client, thread: str, run: str) -> None:
    client.get(f"/threads/{thread}/runs/{run}/join").raise_for_status()


@pytest.fixture(scope="module")
def victim(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    folder = tmp_path_factory.mktemp("advisories")
    with (
        served(folder, config(folder)) as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE, headers={"x-user": "bob"}) as bob,
        httpx.Client(base_url=server.url, timeout=PATIENCE, headers={"x-user": "ada"}) as ada,
        httpx.Client(base_url=server.url, timeout=PATIENCE) as nobody,
    ):
        thread = post(bob, "/threads", {"metadata": {"secret": "bobs"}})["thread_id"]
        run = post(bob, f"/threads/{thread}/runs", {**RUN, "input": {"value": "bobs"}})["run_id"]
        ended(bob, thread, run)
        ids = {
            "thread_id": thread,
            "run_id": run,
            "assistant_id": post(bob, "/assistants", {"graph_id": "echo"})["assistant_id"],
            "cron_id": post(bob, "/runs/crons", CRON)["cron_id"],
        }
        ids["checkpoint_id"] = get(bob, f"/threads/{thread}/state")["checkpoint"]["checkpoint_id"]
        post(bob, f"/threads/{thread}/runs/crons", CRON)
        yield Victim(server, folder / "data.db", bob, ada, nobody, ids)


@pytest.fixture
def untouched(victim: Victim) -> Iterator[Victim]:
    """The victim; the test fails if its database changes."""
    before = victim.contents()
    yield victim
    assert victim.contents() == before


# --- every operation on a foreign object ---------------------------------------

BODIES: dict[str, Any] = {
    "PATCH /assistants/{assistant_id}": {"name": "mine now"},
    "POST /assistants/{assistant_id}/latest": {"version": 1},
    "PATCH /threads/{thread_id}": {"metadata": {"a": 1}},
    "POST /threads/{thread_id}/state": {"values": {"value": "hers"}, "as_node": "echo"},
    "POST /threads/{thread_id}/state/checkpoint": {"checkpoint": {}},
    "POST /threads/{thread_id}/runs": RUN,
    "POST /threads/{thread_id}/runs/wait": RUN,
    "POST /threads/{thread_id}/runs/stream": RUN,
    "POST /threads/{thread_id}/runs/crons": CRON,
    "PATCH /runs/crons/{cron_id}": {"enabled": False},
    "POST /threads/{thread_id}/stream/events": {"channels": ["values"]},
    "POST /threads/{thread_id}/commands": {
        "id": 1,
        "method": "run.start",
        "params": {"assistant_id": "echo", "input": {"value": "hers"}},
    },
    "POST /a2a/{assistant_id}": {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "message/send",
        "params": {
            "message": {"role": "user", "parts": [{"kind": "text", "text": "a"}], "messageId": "x"}
        },
    },
}


def operations(victim: Victim) -> list[tuple[str, str, str]]:
    """Return every operation on an object: its name, method and path with bob's ids."""
    paths = get(victim.nobody, "/openapi.json")["paths"]
    ids = {**victim.ids, "namespace": "x"}
    return [
        (f"{method.upper()} {path}", method.upper(), path.format(**ids))
        for path, methods in paths.items()
        for method in methods
        if "{" in path and method in ("get", "post", "put", "patch", "delete")
    ]


def test_every_operation_on_a_foreign_object_is_refused(untouched: Victim) -> None:
    """CVE-2026-44504, GHSA-747p-c922-m55f and similar: the runtime enforces filters."""
    asked = operations(untouched)
    assert len(asked) > 30
    admitted = {}
    for name, method, path in asked:
        body = BODIES.get(name, {} if method == "POST" else None)
        with untouched.ada.stream(method, path, json=body) as answer:
            if answer.status_code in (401, 403, 404, 409):
                continue
            text = next(answer.iter_text(), "")
            if not text and "event-stream" in answer.headers["content-type"]:
                continue  # the stream ended without an event
        # Protocols that answer 200 refuse in the body; streams refuse in their first event.
        if not any(word in text for word in ('"error"', "event: error", "not found")):
            admitted[name] = f"{answer.status_code} {text[:200]}"
    assert admitted == {}


# --- LangGraph Platform -------------------------------------------------------


@pytest.mark.parametrize("route", ["runs", "runs/wait", "runs/stream"])
def test_ghsa_747p_c922_m55f_run_with_if_not_exists_on_a_foreign_thread_is_404(
    untouched: Victim, route: str
) -> None:
    """`if_not_exists=create` skipped the filter of the thread that does exist."""
    path = f"/threads/{untouched.ids['thread_id']}/{route}"
    body = {**RUN, "if_not_exists": "create"}
    for strategy in ("enqueue", "reject", "interrupt", "rollback"):
        answer = untouched.ada.post(path, json={**body, "multitask_strategy": strategy})
        assert answer.status_code == 404


def test_ghsa_747p_c922_m55f_creating_a_foreign_thread_again_is_409(untouched: Victim) -> None:
    """`if_exists=do_nothing` must not return a foreign row."""
    body = {"thread_id": untouched.ids["thread_id"], "if_exists": "do_nothing"}
    answer = untouched.ada.post("/threads", json=body)
    assert answer.status_code == 409
    assert "bobs" not in answer.text


def test_ghsa_747p_c922_m55f_creating_a_foreign_assistant_again_is_409(untouched: Victim) -> None:
    body = {
        "assistant_id": untouched.ids["assistant_id"],
        "graph_id": "echo",
        "if_exists": "do_nothing",
    }
    assert untouched.ada.post("/assistants", json=body).status_code == 409


def test_ghsa_jfj5_wrj9_63x4_run_of_a_foreign_assistant_is_404(victim: Victim) -> None:
    """Creating a run did not call the handler of `assistants.read`."""
    body = {**RUN, "assistant_id": victim.ids["assistant_id"]}
    thread = post(victim.ada, "/threads", {})["thread_id"]
    before = victim.contents()
    for path in ("/runs", "/runs/wait", "/runs/stream", f"/threads/{thread}/runs", "/runs/crons"):
        asked = {**body, "schedule": "0 0 1 1 *"} if path.endswith("crons") else body
        assert victim.ada.post(path, json=asked).status_code == 404, path
    assert victim.ada.post("/runs/batch", json=[body]).status_code == 404
    command = {
        "id": 1,
        "method": "run.start",
        "params": {"assistant_id": victim.ids["assistant_id"]},
    }
    assert post(victim.ada, f"/threads/{thread}/commands", command)["type"] == "error"
    assert victim.contents() == before


def test_ghsa_jfj5_wrj9_63x4_owner_may_run_the_assistant(victim: Victim) -> None:
    post(victim.bob, "/runs/wait", {**RUN, "assistant_id": victim.ids["assistant_id"]})


WEBHOOKS = [
    "/threads",
    "http://example.com/x",
    "https://localhost/x",
    "https://127.0.0.1/x",
    "https://10.1.2.3/x",
    "https://169.254.169.254/latest/meta-data",
    "https://[::ffff:127.0.0.1]/x",
    # 6to4 and its relay, Teredo, documentation, NAT64, site-local, IPv4-compatible, SRv6.
    "https://[2002:7f00:1::1]/x",
    "https://192.88.99.1/x",
    "https://[2001:0:808:808::1]/x",
    "https://[3fff::1]/x",
    "https://[64:ff9b:1::1]/x",
    "https://[fec0::1]/x",
    "https://[::8.8.8.8]/x",
    "https://[5f00::1]/x",
]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/runs"),
        ("POST", "/runs/wait"),
        ("POST", "/runs/stream"),
        ("POST", "/runs/batch"),
        ("POST", "/threads/{thread_id}/runs"),
        ("POST", "/threads/{thread_id}/runs/stream"),
        ("POST", "/runs/crons"),
        ("POST", "/threads/{thread_id}/runs/crons"),
        ("PATCH", "/runs/crons/{cron_id}"),
    ],
)
def test_ghsa_2c9q_c2q9_qgqv_private_webhook_is_422_on_every_route(
    untouched: Victim, method: str, path: str
) -> None:
    """GHSA-q3v5-r5ch-p57j too: such a webhook called the API itself, without authentication."""
    for webhook in WEBHOOKS:
        body = {**CRON, "webhook": webhook} if "crons" in path else {**RUN, "webhook": webhook}
        asked: Any = [body] if path.endswith("batch") else body
        answer = untouched.bob.request(method, path.format(**untouched.ids), json=asked)
        assert answer.status_code == 422, webhook


class _Redirect(BaseHTTPRequestHandler):
    """Redirects `/redirect` to a private address of the same server."""

    visited: list[str]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.visited.append(self.path)
        self.send_response(307 if self.path == "/redirect" else 200)
        if self.path == "/redirect":
            port = self.server.server_address[1]
            self.send_header("location", f"http://127.0.0.1:{port}/inside")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def redirecting() -> Iterator[tuple[str, list[str]]]:
    visited: list[str] = []
    kind = type("Redirect", (_Redirect,), {"visited": visited})
    with HTTPServer(("127.0.0.1", 0), kind) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield f"http://localhost:{listening.server_address[1]}", visited
        listening.shutdown()
        thread.join()


def test_ghsa_2c9q_c2q9_qgqv_webhook_redirects_are_not_followed(tmp_path: Path) -> None:
    """An allowed address redirects the server to a forbidden one."""
    webhooks = {"url": {"allowed_domains": ["localhost"]}}
    with (
        redirecting() as (url, visited),
        served(
            tmp_path, config(tmp_path, webhooks=webhooks), ALLOW_PRIVATE_WEBHOOKS="true"
        ) as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE, headers={"x-user": "bob"}) as bob,
    ):
        for path in ("/open", "/redirect"):
            post(bob, "/runs/wait", {**RUN, "webhook": url + path})
        wait_for(lambda: "Webhook failed" in server.log.read_text())
    assert visited == ["/open", "/redirect"]


def test_webhook_redirects_from_https_to_http_are_not_followed(tmp_path: Path) -> None:
    webhooks = {"url": {"allowed_domains": ["localhost"]}}
    tls, _ = certified(tmp_path, "localhost")
    with (
        websites(tls) as secure,
        redirecting() as (url, visited),
        served(
            tmp_path,
            config(tmp_path, webhooks=webhooks),
            ALLOW_PRIVATE_WEBHOOKS="true",
            SSL_CERT_FILE=str(tmp_path / "certificate.pem"),
        ) as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE, headers={"x-user": "bob"}) as bob,
    ):
        secure.pages["/redirect"] = redirect(f"{url}/open", 307)
        for path in (f"https://localhost:{secure.port}/redirect", f"{url}/again"):
            post(bob, "/runs/wait", {**RUN, "webhook": path})
        wait_for(lambda: "redirects from https to http" in server.log.read_text())
        wait_for(lambda: visited == ["/again"])
    assert secure.asked == ["/redirect"]


def wait_for(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_agent_server_0_7_29_crons_belong_to_their_owner(untouched: Victim) -> None:
    """0.7.36 too: no handler was called, or not for the cron's thread."""
    cron = f"/runs/crons/{untouched.ids['cron_id']}"
    assert untouched.ada.get(cron).status_code == 404
    assert untouched.ada.patch(cron, json={"input": {"value": "hers"}}).status_code == 404
    assert untouched.ada.delete(cron).status_code == 404
    assert post(untouched.ada, "/runs/crons/search", {}) == []
    assert post(untouched.ada, "/runs/crons/count", {}) == 0
    path = f"/threads/{untouched.ids['thread_id']}/runs/crons"
    assert untouched.ada.post(path, json=CRON).status_code == 404
    asked = {"thread_id": untouched.ids["thread_id"]}
    assert post(untouched.ada, "/runs/crons/search", asked) == []


INJECTION = "x\r\n\r\nevent: evil\r\ndata: {}\r\n\r\n\n\nevent: evil\ndata: {}\n\n"


def test_agent_server_0_7_32_newlines_cannot_inject_stream_events(victim: Victim) -> None:
    """CR and LF in a client's values must not create events in the stream."""
    modes = ["values", "updates", "debug", "messages", "custom", "events"]
    body = {
        **RUN,
        "input": {"value": INJECTION, "messages": [{"role": "user", "content": INJECTION}]},
        "metadata": {INJECTION: INJECTION},
        "stream_mode": modes,
        "stream_resumable": True,
    }
    thread = post(victim.ada, "/threads", {})["thread_id"]
    with victim.ada.stream("POST", f"/threads/{thread}/runs/stream", json=body) as answer:
        assert answer.is_success
        found = list(answer.iter_lines())
    names = {line.removeprefix("event: ") for line in found if line.startswith("event: ")}
    assert "values" in names and "evil" not in names
    assert all(line == "" or line.startswith(("event: ", "data: ", "id: ", ":")) for line in found)


def test_agent_server_0_7_32_failed_run_shows_its_error_without_internals(victim: Victim) -> None:
    body = {"assistant_id": "failing", "input": {"error": "KeyError", "message": "the cause"}}
    thread = post(victim.ada, "/threads", {})["thread_id"]
    with victim.ada.stream("POST", f"/threads/{thread}/runs/stream", json=body) as answer:
        text = answer.read().decode()
    assert "KeyError" in text
    shown = text + json.dumps(post(victim.ada, "/runs/wait", body))
    shown += json.dumps(get(victim.ada, f"/threads/{thread}"))
    assert not LEAKS.search(shown), shown
    assert str(GRAPHS) not in shown


def test_agent_server_0_7_33_store_items_of_other_users_are_hidden(victim: Victim) -> None:
    """The handler prefixes each namespace with the user, which no request names."""
    item = {"namespace": ["notes"], "key": "k"}
    assert victim.bob.put("/store/items", json={**item, "value": {"x": "bobs"}}).is_success
    before = victim.contents()
    for namespace in ("bob.notes", "notes", "ada.bob.notes"):
        answer = victim.ada.get("/store/items", params={"namespace": namespace, "key": "k"})
        assert "bobs" not in answer.text
    for prefix in ([], ["bob"], ["notes"], ["bob", "notes"]):
        body = {"namespace_prefix": prefix, "filter": {"$or": [{"x": "bobs"}, {"x": None}]}}
        assert "bobs" not in victim.ada.post("/store/items/search", json=body).text
        listed = victim.ada.post("/store/namespaces", json={"prefix": prefix} if prefix else {})
        assert "bob" not in listed.text
    assert victim.contents() == before
    # Items that ada writes or deletes under bob's namespace are ada's.
    hers = {"namespace": ["bob", "notes"], "key": "k"}
    assert victim.ada.put("/store/items", json={**hers, "value": {"x": "hers"}}).is_success
    assert victim.ada.request("DELETE", "/store/items", json=item).is_success
    kept = get(victim.bob, "/store/items?namespace=notes&key=k")
    assert kept["value"] == {"x": "bobs"}


@pytest.mark.parametrize("user", ["bo", "bobby", "b%", "b_b", "%", "bo*", "BOB"])
def test_cve_2026_71433_users_with_similar_names_see_nothing_of_each_other(
    victim: Victim, user: str
) -> None:
    """Prefixes matched by LIKE, or not up to the end of a label, cross tenants."""
    item = {"namespace": ["secrets"], "key": "k", "value": {"x": "bobs"}}
    assert victim.bob.put("/store/items", json=item).is_success
    with httpx.Client(base_url=victim.server.url, headers={"x-user": user}) as other:
        for body in ({}, {"namespace_prefix": ["secrets"]}, {"filter": {"x": "bobs"}}):
            assert post(other, "/store/items/search", body)["items"] == []
        assert "secrets" not in other.post("/store/namespaces", json={}).text
        assert post(other, "/threads/search", {}) == []


def test_agent_server_0_7_45_nul_characters_do_not_break_runs(victim: Victim) -> None:
    """Text with NUL made requests fail, and runs fail on every retry."""
    body = {**RUN, "input": {"value": "a\x00b"}, "metadata": {"a": "\x00"}}
    thread = post(victim.ada, "/threads", {"metadata": {"k": "\x00"}})["thread_id"]
    post(victim.ada, f"/threads/{thread}/runs/wait", body)
    assert get(victim.ada, f"/threads/{thread}")["status"] == "idle"
    assert get(victim.ada, f"/threads/{thread}/runs")[0]["status"] == "success"
    item = {"namespace": ["a"], "key": "a\x00b", "value": {"x": "\x00"}}
    put = victim.ada.put("/store/items", json=item)
    if databases.kind() == "postgresql":
        # Text of Postgres cannot hold NUL: the server refuses it with a 400, not a 500.
        assert put.status_code == 400
        return
    assert put.is_success
    answer = victim.ada.get("/store/items", params={"namespace": "a", "key": "a\x00b"})
    assert answer.is_success and answer.json()["key"]


@pytest.mark.parametrize(
    "path",
    [
        "/noauth/threads/search",
        "/noauth2/threads/search",
        "//noauth/threads/search",
        "/%6eoauth/threads/search",
        "/threads/../noauth/threads/search",
        "/noauth/../threads/search",
        "/ui/../threads/search",
        "/ui%2f..%2fthreads/search",
        "/threads/search/",
        "//threads/search",
        "/./threads/search",
        "/threads/search;/ok",
        "/ok/../threads/search",
        "/docs%2f..%2fthreads/search",
    ],
)
def test_agent_server_0_7_68_no_path_bypasses_authentication(untouched: Victim, path: str) -> None:
    assert raw_status(untouched, "POST", path) in (401, 404, 405)
    assert raw_status(untouched, "GET", path) in (401, 404, 405)


def raw_status(victim: Victim, method: str, target: str, *headers: str) -> int:
    """Send a request line as written, because clients normalize paths. Return the status."""
    url = httpx.URL(victim.server.url)
    lines = [f"{method} {target} HTTP/1.1", *(headers or ("host: x",)), "connection: close"]
    if method == "POST":
        lines += ["content-type: application/json", "content-length: 2"]
    request = "\r\n".join(lines) + "\r\n\r\n" + ("{}" if method == "POST" else "")
    with socket.create_connection(("127.0.0.1", url.port or 80), timeout=PATIENCE) as connection:
        connection.sendall(request.encode())
        with connection.makefile("rb") as answer:
            return int(answer.readline().split()[1])


def test_studio_header_authenticates_no_request(untouched: Victim) -> None:
    """Servers that allow `x-auth-scheme: langsmith` give it a user that sees everything."""
    for extra in ({}, {"x-api-key": "lsv2_x"}, {"authorization": "Bearer x"}):
        headers = {"x-auth-scheme": "langsmith", **extra}
        for _, method, path in operations(untouched):
            answer = untouched.nobody.request(method, path, json={}, headers=headers)
            assert answer.status_code in (401, 404), path
    hers = {"x-auth-scheme": "langsmith"}
    for path in (
        f"/threads/{untouched.ids['thread_id']}",
        f"/runs/crons/{untouched.ids['cron_id']}",
    ):
        assert untouched.ada.get(path, headers=hers).status_code in (401, 404)


# --- Aegra --------------------------------------------------------------------


@pytest.mark.parametrize(
    "trick",
    [
        {"config": {"configurable": {"thread_id": "BOB"}}},
        {"config": {"configurable": {"thread_id": "BOB", "checkpoint_id": "CHECKPOINT"}}},
        {"checkpoint": {"thread_id": "BOB", "checkpoint_id": "CHECKPOINT", "checkpoint_ns": ""}},
        {"context": {"thread_id": "BOB"}},
        {"metadata": {"thread_id": "BOB", "owner": "bob", "run_id": "RUN"}},
        {"thread_id": "BOB"},
        {"config": {"metadata": {"owner": "bob", "thread_id": "BOB"}}},
    ],
    ids=str,
)
def test_cve_2026_44504_run_body_cannot_redirect_to_a_foreign_thread(
    victim: Victim, trick: dict[str, Any]
) -> None:
    """GHSA-m98r-6667-4wq7 and Aegra#431: only the thread in the path counts."""
    text = json.dumps(trick).replace("BOB", victim.ids["thread_id"])
    text = text.replace("CHECKPOINT", victim.ids["checkpoint_id"]).replace("RUN", "x")
    body = {**RUN, **json.loads(text)}
    before = victim.state()
    thread = post(victim.ada, "/threads", {})["thread_id"]
    for path in (f"/threads/{thread}/runs/wait", "/runs/wait"):
        answer = victim.ada.post(path, json=body)
        assert answer.status_code < 500 and "bobs" not in answer.text
    cron = {**CRON, **json.loads(text)}
    answer = victim.ada.post(f"/threads/{thread}/runs/crons", json=cron)
    assert answer.status_code < 500 and "bobs" not in answer.text
    assert victim.state() == before
    runs = get(victim.bob, f"/threads/{victim.ids['thread_id']}/runs")
    assert [run["run_id"] for run in runs] == [victim.ids["run_id"]]
    mine = post(victim.bob, "/threads/search", {"ids": [thread]})
    assert mine == []


def test_cve_2026_44504_checkpoint_body_cannot_reach_a_foreign_thread(victim: Victim) -> None:
    """A checkpoint in the body names another thread than the path."""
    thread = post(victim.ada, "/threads", {"metadata": {"graph_id": "echo"}})["thread_id"]
    checkpoint = {
        "thread_id": victim.ids["thread_id"],
        "checkpoint_id": victim.ids["checkpoint_id"],
        "checkpoint_ns": "",
    }
    before = victim.state()
    for path, body in (
        ("state/checkpoint", {"checkpoint": checkpoint}),
        ("history", {"checkpoint": checkpoint}),
        ("history", {"before": checkpoint, "limit": 9}),
        ("state", {"checkpoint": checkpoint, "values": {"value": "hers"}, "as_node": "echo"}),
    ):
        answer = victim.ada.post(f"/threads/{thread}/{path}", json=body)
        assert answer.status_code < 500 and "bobs" not in answer.text, path
    path = f"/threads/{thread}/state/{victim.ids['checkpoint_id']}"
    assert "bobs" not in victim.ada.get(path).text
    assert victim.state() == before


def test_aegra_499_deleted_thread_leaves_no_row(victim: Victim) -> None:
    thread = post(victim.ada, "/threads", {})["thread_id"]
    post(victim.ada, f"/threads/{thread}/runs/wait", RUN)
    assert thread in str(victim.contents()) or thread.replace("-", "") in str(victim.contents())
    assert victim.ada.delete(f"/threads/{thread}").is_success
    left = str(victim.contents())
    assert thread not in left and thread.replace("-", "") not in left


# --- SQL ----------------------------------------------------------------------

SQL = [
    "') OR 1=1 --",
    "' OR '1'='1",
    '" OR 1=1 --',
    "a') UNION SELECT * FROM threads --",
    "$.owner') OR json_extract(metadata, '$.secret",
    "owner' OR owner IS NOT NULL --",
    "a'; DROP TABLE threads; --",
    "%",
    "$",
    "$.*",
    "..",
    "a\x00' OR 1=1 --",
]


@pytest.mark.parametrize("key", SQL)
def test_cve_2025_67644_filter_keys_are_never_sql(untouched: Victim, key: str) -> None:
    """GHSA-9rwj-6rc7-p77c: metadata keys went into the statement of SqliteSaver as text."""
    if "\x00" in key and databases.kind() == "postgresql":
        # JSON of Postgres cannot hold NUL: the filter is refused if there are rows to compare, and
        # otherwise finds nothing.
        for path, where in (("threads/count", "values"), ("store/items/search", "filter")):
            answer = untouched.ada.post(f"/{path}", json={where: {key: "x"}})
            assert answer.status_code == 400 or answer.json() in (0, {"items": []}), answer.text
        assert post(untouched.ada, "/threads/count", {"metadata": {key: "x"}}) == 0
        return
    for wanted in ({key: "x"}, {key: None}, {key: {key: 1}}, {"secret": key}, {key: ["x"]}):
        assert post(untouched.ada, "/threads/count", {"metadata": wanted}) == 0
        assert post(untouched.ada, "/threads/count", {"values": wanted}) == 0
        for path in ("/threads/search", "/runs/crons/search"):
            assert post(untouched.ada, path, {"metadata": wanted}) == []
        assert post(untouched.ada, "/assistants/search", {"metadata": wanted}) == []
        history = f"/threads/{untouched.ids['thread_id']}/history"
        # In langgraph, a filter for null matches a missing key.
        past = post(untouched.bob, history, {"metadata": wanted, "limit": 9})
        assert len(past) == (3 if wanted == {key: None} else 0)
        assert untouched.ada.post(history, json={"metadata": wanted}).status_code == 404
        found = untouched.ada.post("/store/items/search", json={"filter": wanted})
        assert found.status_code < 500 and "bobs" not in found.text
        for sort in ("sort_by", "sort_order", "status"):
            answer = untouched.ada.post("/threads/search", json={sort: key})
            assert answer.status_code == 422


@pytest.mark.parametrize("text", SQL)
def test_cve_2025_8709_store_operators_and_names_are_never_sql(
    untouched: Victim, text: str
) -> None:
    """GHSA-4h97-wpxp-3757 and CVE-2025-64104: the same in SqliteStore."""
    for wanted in ({"x": {f"${text}": 1}}, {"x": {"$eq": text}}, {text: {"$gt": text}}):
        answer = untouched.ada.post("/store/items/search", json={"filter": wanted})
        assert answer.status_code < 500 and "bobs" not in answer.text
        assert "sqlite" not in answer.text.lower() and "syntax" not in answer.text
    for method, path, asked in (
        ("GET", f"/store/items?{httpx.QueryParams({'namespace': text, 'key': text})}", None),
        ("POST", "/store/namespaces", {"prefix": [text]}),
        ("POST", "/store/namespaces", {"suffix": [text]}),
    ):
        answer = untouched.ada.request(method, path, json=asked)
        assert answer.status_code < 500 and "bob" not in answer.text


def test_cve_2026_48776_ids_with_path_traversal_are_4xx(untouched: Victim) -> None:
    """GHSA-w39p-vh2g-g8g5: ids with `../` reached other routes with the caller's rights."""
    for identifier in ("..%2f..%2fassistants%2fsearch", "%2e%2e%2fsearch", "..%5c..%5cthreads"):
        for path in (
            f"/threads/{identifier}",
            f"/threads/{identifier}/runs",
            f"/runs/crons/{identifier}",
        ):
            assert untouched.bob.get(path).status_code in (404, 422)
            assert untouched.bob.delete(path).status_code in (404, 405, 422)
        answer = untouched.bob.post(f"/threads/{identifier}/copy")
        assert answer.status_code in (400, 404)


# --- attacks through checkpoints ----------------------------------------------


def _msgpack(code: int, *call: Any) -> Callable[[Any], tuple[str, bytes]]:
    def poisoned(checkpoint: Any) -> tuple[str, bytes]:
        checkpoint["channel_values"]["value"] = POISON
        serializer = JsonPlusSerializer()
        _, encoded = serializer.dumps_typed(checkpoint)
        decoded = ormsgpack.unpackb(
            encoded, ext_hook=ormsgpack.Ext, option=ormsgpack.OPT_NON_STR_KEYS
        )
        decoded["channel_values"]["value"] = ormsgpack.Ext(code, ormsgpack.packb(call))
        return "msgpack", ormsgpack.packb(decoded, option=ormsgpack.OPT_NON_STR_KEYS)

    return poisoned


POISON = "poison"


def _json(checkpoint: Any) -> tuple[str, bytes]:
    checkpoint["channel_values"] = {
        "value": {
            "lc": 2,
            "type": "constructor",
            "id": ["os", "system"],
            "args": ["touch RAN"],
            "kwargs": {},
        }
    }
    return "json", json.dumps(checkpoint, default=str).encode()


def _pickle(checkpoint: Any) -> tuple[str, bytes]:
    return "pickle", b"cos\nsystem\n(S'touch RAN'\ntR."


ATTACKS = {
    "CVE-2025-64439 constructor in json": _json,
    "CVE-2026-27794 pickle": _pickle,
    "CVE-2026-28277 one argument": _msgpack(0, "os", "system", "touch RAN"),
    "CVE-2026-28277 many arguments": _msgpack(1, "os", "system", ["touch RAN"]),
    "CVE-2026-28277 named arguments": _msgpack(2, "os", "system", {"command": "touch RAN"}),
    "CVE-2026-28277 a method": _msgpack(3, "os", "system", "touch RAN", "__call__"),
    "CVE-2026-28277 a model": _msgpack(5, "evil", "Evil", {}, "model_validate_json"),
}
# No supported version of the serializer runs these any more, even if configured to trust them.
STOPPED = ("CVE-2025-64439 constructor in json", "CVE-2026-28277 a method")
EVIL = "import pathlib\n\npathlib.Path('RAN').touch()\n"


def test_forged_rows_run_code_where_nothing_stops_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trusting serializer runs the attacks of the next test."""
    (tmp_path / "evil.py").write_text(EVIL)
    # The module runs its code at each import.
    monkeypatch.delitem(sys.modules, "evil", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    trusting = JsonPlusSerializer(pickle_fallback=True, allowed_msgpack_modules=True)
    ran = tmp_path / "RAN"
    for name, attack in ATTACKS.items():
        trusting.loads_typed(attack(_checkpoint()))
        assert ran.exists() is (name not in STOPPED), name
        ran.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def attacked(
    each_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, httpx.Client]]:
    folder = tmp_path_factory.mktemp("forged")
    (folder / "evil.py").write_text(EVIL)
    importable = f"{folder}:{GRAPHS.parents[2]}"
    with (
        served(folder, config(folder), PYTHONPATH=importable) as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE, headers={"x-user": "bob"}) as bob,
    ):
        yield folder, bob


@pytest.mark.parametrize("attack", ATTACKS)
def test_forged_database_row_runs_no_code(attacked: tuple[Path, httpx.Client], attack: str) -> None:
    """The second half of the known chain: SQL injection, forged row, code execution."""
    folder, bob = attacked
    thread = post(bob, "/threads", {})["thread_id"]
    post(bob, f"/threads/{thread}/runs/wait", RUN)
    _forge(folder / "data.db", thread, ATTACKS[attack])
    # The server may show it as data or refuse it, but no reader runs its code.
    bob.get(f"/threads/{thread}/state")
    bob.post(f"/threads/{thread}/history", json={"limit": 9})
    bob.post(f"/threads/{thread}/runs/wait", json=RUN)
    bob.post(f"/threads/{thread}/state", json={"values": {"value": "x"}, "as_node": "echo"})
    bob.post(f"/threads/{thread}/copy")
    assert list(folder.rglob("RAN")) == []
    # The server still serves other requests.
    post(bob, "/runs/wait", RUN)


def _forge(database: Path, thread: str, attack: Callable[[Any], tuple[str, bytes]]) -> None:
    """Replace every stored value of a thread by the attack."""
    kind, forged = attack(_checkpoint())
    of_thread = packed_id(thread)
    value = reading.packed({}, forged)
    kept = databases.execute(
        database,
        "UPDATE thread_checkpoints SET type = ?, value = ?, size = ?, base_id = NULL"
        " WHERE thread_id = ? RETURNING 1",
        *(kind, value, len(value), of_thread),
    )
    written = databases.execute(
        database,
        "UPDATE thread_writes SET type = ?, value = ? WHERE thread_id = ? RETURNING 1",
        *(kind, forged, of_thread),
    )
    assert kept and written


def _checkpoint() -> Any:
    return {"v": 4, "channel_values": {}}


# --- Starlette ----------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1/ok?", "x/docs#", "x@127.0.0.1", "127.0.0.1:80/ui/", "[::1]/noauth", "x y", "/ok"],
)
def test_cve_2026_48710_host_header_does_not_bypass_authentication(
    untouched: Victim, host: str
) -> None:
    """GHSA-86qp-5c8j-p5mr: the Host header could set `request.url.path`."""
    for path in ("/threads/search", "/store/items/search"):
        assert raw_status(untouched, "POST", path, f"host: {host}") in (400, 401)


@pytest.mark.parametrize(
    "target", ["http://evil.example/threads/search", "//evil.example/threads/search", "*", "x"]
)
def test_cve_2026_54282_absolute_request_target_does_not_bypass_authentication(
    untouched: Victim, target: str
) -> None:
    """GHSA-jp82-jpqv-5vv3: a path that reads like a host."""
    assert raw_status(untouched, "POST", target) in (400, 401, 404)


def test_cve_2025_62727_long_range_header_is_answered_quickly(untouched: Victim) -> None:
    """GHSA-7f5h-v6xp-fcq8: quadratic work for a long Range header."""
    ranges = "bytes=" + ",".join(f"{n}-{n + 1}" for n in range(5000))
    started = time.monotonic()
    for path in ("/docs", "/openapi.json", "/info"):
        assert untouched.nobody.get(path, headers={"range": ranges[:60_000]}).status_code < 500
    assert time.monotonic() - started < 60
