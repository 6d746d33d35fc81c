"""`Host`, `X-Forwarded-*` and their like: no answer repeats them, and nothing is decided by them.

A client writes these headers as it likes, and a cache may store the answer for others. Only the
address that a proxy on this machine appends to `X-Forwarded-For` is believed.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support import databases
from tests.support.processes import GRAPHS, Running
from tests.support.served import served

pytestmark = pytest.mark.usefixtures("each_database")

MARK = "evil"
VICTIM, OTHER = "203.0.113.66", "203.0.113.7"
FORWARDED = {
    "x-forwarded-host": "evil.example",
    "x-forwarded-server": "evil.example",
    "x-forwarded-port": "6666",
    "x-forwarded-proto": "javascript",
    "x-forwarded-scheme": "javascript",
    "x-forwarded-prefix": "/evil",
    "x-script-name": "/evil",
    "x-forwarded-for": VICTIM,
    "x-real-ip": VICTIM,
    "x-client-ip": VICTIM,
    "forwarded": f"for={VICTIM};host=evil.example;proto=javascript",
    "x-original-url": "/evil",
    "x-rewrite-url": "/evil",
    "x-http-method-override": "DELETE",
    "referer": "http://evil.example/",
}
HOSTS = (
    *("evil.example", "evil.example:80", "evil@evil.example", "127.0.0.1:80@evil.example", "[::1"),
    # A loopback name keeps its place in agent cards; what follows must not get into them.
    *("localhost", "127.0.0.1", "localhost/evil?", "127.0.0.1#evil", "localhost:1/evil"),
)
USER = {"x-user": "ada", "x-tenant": "acme"}
PATIENCE = 60.0


@pytest.fixture(scope="module")
def folder(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("forwarded")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    config = {
        "graphs": {"echo": f"{GRAPHS}/echo.py:graph"},
        "auth": {"path": f"{GRAPHS}/tenant_auth.py:auth"},
        "sql": {"tenant_key": "org", "limits": {"tenants": {"busy": {"requests_per_second": 1}}}},
    }
    (folder / "langgraph.json").write_text(json.dumps(config))
    with served(folder, folder / "langgraph.json", APP_ENV="production") as started:
        yield started


@pytest.fixture
def ids(server: Running) -> dict[str, str]:
    with httpx.Client(base_url=server.url, headers=USER, timeout=PATIENCE) as http:
        thread = http.post("/threads", json={}).json()["thread_id"]
        run = {"assistant_id": "echo", "input": {"value": 1}}
        http.post(f"/threads/{thread}/runs/wait", json=run)
        state = http.get(f"/threads/{thread}/state").json()
        cron = {"assistant_id": "echo", "schedule": "0 0 1 1 *"}
        return {
            "thread_id": thread,
            "run_id": http.get(f"/threads/{thread}/runs").json()[0]["run_id"],
            "checkpoint_id": state["checkpoint"]["checkpoint_id"],
            "assistant_id": http.post("/assistants/search", json={}).json()[0]["assistant_id"],
            "cron_id": http.post("/runs/crons", json=cron).json()["cron_id"],
            "namespace": "",
        }


# They wait for events that do not come.
ENDLESS = {
    "GET /threads/stream",
    "GET /threads/{thread_id}/stream",
    "POST /threads/{thread_id}/stream/events",
}


def asked(http: httpx.Client, ids: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each route of the API that the description names, with ids, but no deletion."""
    paths = http.get("/openapi.json").json()["paths"]
    found = {f"{m.upper()} {p}" for p, ms in paths.items() for m in ms if m in ("get", "post")}
    cards = {"GET /.well-known/agent-card.json", "GET /a2a/{assistant_id}/.well-known/agent.json"}
    unknown = {"GET /threads/", "GET //threads", "GET /none", "GET /ui/x", "POST /assistants/"}
    for route in sorted((found | cards | unknown) - ENDLESS):
        method, path = route.split(" ")
        yield method, path.format_map(Ids(ids))


class Ids(dict[str, str]):
    """Ids by the names of parameters."""

    def __missing__(self, name: str) -> str:
        return "x"


BODIES: dict[str, Any] = {
    "wait": {"assistant_id": "echo", "input": {"value": 1}},
    "stream": {"assistant_id": "echo", "input": {"value": 1}},
    "mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
}


def test_no_answer_and_no_log_line_repeats_them(server: Running, ids: dict[str, str]) -> None:
    with httpx.Client(base_url=server.url, headers=USER, timeout=PATIENCE) as http:
        repeated = []
        for method, path in asked(http, ids):
            body = BODIES.get(path.rsplit("/", 1)[-1], {}) if method == "POST" else None
            query = {"assistant_id": ids["assistant_id"]}
            for host in HOSTS if "well-known" in path else HOSTS[:1]:
                headers = {**FORWARDED, "host": host, "accept": "application/json"}
                answer = http.request(method, path, json=body, params=query, headers=headers)
                said = answer.text + str(answer.headers.multi_items())
                if any(each in said.lower() for each in (MARK, "javascript", VICTIM, "6666")):
                    repeated.append((method, path, host, said))
                assert answer.status_code < 500 or answer.status_code == 501, (path, answer.text)
        assert repeated == []
        # Nor what a run keeps for its graph.
        thread = ids["thread_id"]
        run = {"assistant_id": "echo", "input": {"value": 2}}
        made = http.post(f"/threads/{thread}/runs", json=run, headers=FORWARDED).json()
        joined = http.get(f"/threads/{thread}/runs/{made['run_id']}/join").text
        states = http.get(f"/threads/{thread}/state").text
        assert MARK not in (json.dumps(made) + joined + states).lower()
    assert MARK not in server.log.read_text().lower()


def test_they_are_no_way_around_authentication_or_limits(server: Running) -> None:
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as http:
        for address in ("127.0.0.1", "::1", "localhost", VICTIM):
            sent = {**FORWARDED, "x-forwarded-for": address, "x-real-ip": address}
            for host in HOSTS:
                refused = http.post("/threads/search", json={}, headers={**sent, "host": host})
                assert refused.status_code in (400, 401), (address, host)
        busy = {"x-user": "ada", "x-tenant": "busy"}
        statuses = [
            http.post(
                "/threads/count", json={}, headers={**busy, "x-forwarded-for": f"203.0.113.{n}"}
            ).status_code
            for n in range(6)
        ]
        assert statuses.count(429) >= 3, statuses


@pytest.mark.parametrize(
    ("source", "forwarded", "entered"),
    [
        # A proxy on this machine appends the address of its client to what that client has sent.
        ("127.0.0.1", f"{VICTIM}, {OTHER}", OTHER),
        ("127.0.0.1", f"127.0.0.1, {OTHER}", OTHER),
        # Anybody else is no proxy.
        ("127.0.0.2", VICTIM, "127.0.0.2"),
        ("127.0.0.2", f"127.0.0.1, {OTHER}", "127.0.0.2"),
    ],
)
def test_audit_log_has_the_address_that_no_client_can_choose(
    server: Running, folder: Path, source: str, forwarded: str, entered: str
) -> None:
    transport = httpx.HTTPTransport(local_address=source)
    with httpx.Client(transport=transport, base_url=server.url, headers=USER) as http:
        sent = {"x-forwarded-for": forwarded, "x-real-ip": VICTIM, "forwarded": f"for={VICTIM}"}
        thread = http.post("/threads", json={}, headers=sent).json()["thread_id"]
    query = "SELECT address FROM audit_entries WHERE object_id = ?"
    found = databases.execute(folder / "data.db", query, thread)
    assert {address for (address,) in found} == {entered}
