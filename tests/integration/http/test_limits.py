"""`sql.limits` over HTTP: what is too much is refused with a 429, to one tenant and not to another."""

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.support import databases
from tests.support.processes import GRAPHS
from tests.support.served import served

PATIENCE = 60.0
LIMITS = {
    "tenants": {
        "starts": {"starts_per_minute": 1},
        "pending": {"running_runs": 1, "pending_runs": 2},
        "stored": {"threads": 2, "assistants": 2, "crons": 2},
        "requests": {"requests_per_second": 2},
        "streams": {"open_streams": 1},
        "sockets": {"open_streams": 1},
        "bytes": {"stored_bytes": 300_000},
    },
    "users": {"eve": {"starts_per_minute": 1, "crons": 1}},
    "assistants": {"memory": {"starts_per_minute": 1}},
    "assistant": {"versions": 3, "version_bytes": 100_000},
    "thread": {"open_streams": 3, "page_bytes": 100_000},
    "process": {"open_streams": 8},
}
LONG = {"seconds": 600}

pytestmark = pytest.mark.usefixtures("each_database")


@pytest.fixture(scope="module")
def data(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path that names the server's database."""
    return tmp_path_factory.mktemp("limits") / "data.db"


@pytest.fixture(scope="module")
def url(data: Path) -> Iterator[str]:
    folder = data.parent
    project = {
        "graphs": {name: f"{GRAPHS}/{name}.py:graph" for name in ("echo", "sleeper", "memory")},
        "auth": {"path": f"{GRAPHS}/tenant_auth.py:auth"},
        "sql": {"tenant_key": "org", "limits": LIMITS},
    }
    (folder / "langgraph.json").write_text(json.dumps(project))
    with served(folder, folder / "langgraph.json") as server:
        yield server.url


@pytest.fixture
def clients(url: str) -> Iterator[Any]:
    """Return a function that makes the client of a tenant's user."""
    with ExitStack() as stack:

        def make(tenant: str, user: str = "ada") -> httpx.Client:
            headers = {"x-user": user, "x-tenant": tenant}
            client = httpx.Client(base_url=url, timeout=PATIENCE, headers=headers)
            return stack.enter_context(client)

        yield make


def start(client: httpx.Client, graph: str = "echo", **body: Any) -> httpx.Response:
    return client.post("/runs", json={"assistant_id": graph, "input": {"value": 1}, **body})


def refused(answer: httpx.Response, limit: str) -> int:
    """Check that an answer refuses because of a limit. Return its `Retry-After` in seconds."""
    assert answer.status_code == 429, answer.text
    body = answer.json()
    assert body["limit"] == limit
    assert limit in body["detail"]
    return int(answer.headers["retry-after"])


def refusals(client: httpx.Client, scope: str, limit: str) -> float:
    """Return how often the server says that it refused because of a limit."""
    name = f'threadhold_limit_refusals_total{{limit="{limit}",scope="{scope}"}} '
    text = client.get("/metrics").text
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


def test_tenants_starts_a_minute_are_refused(clients: Any) -> None:
    client, other = clients("starts"), clients("other")
    before = refusals(client, "tenant", "starts_per_minute")
    assert start(client).status_code == 200
    # Up to a minute until the next start.
    assert 1 <= refused(start(client), "tenant.starts_per_minute") <= 60
    batch = [{"assistant_id": "echo", "input": {}}] * 2
    refused(client.post("/runs/batch", json=batch), "tenant.starts_per_minute")
    assert refusals(client, "tenant", "starts_per_minute") >= before + 2
    assert [start(other).status_code for _ in range(6)] == [200] * 6


def test_starts_of_a_user_and_an_assistant_are_counted_in_each_tenant(clients: Any) -> None:
    for tenant in ("one", "two"):
        eve, ada = clients(tenant, "eve"), clients(tenant)
        assert start(eve).status_code == 200
        refused(start(eve), "user.starts_per_minute")
        assert start(ada).status_code == 200
        assert start(ada, "memory").status_code == 200
        refused(start(ada, "memory"), "assistant.starts_per_minute")


def test_running_runs_wait_and_pending_runs_are_refused(clients: Any) -> None:
    client, other = clients("pending"), clients("other")
    long: dict[str, Any] = {"graph": "sleeper", "input": LONG}
    made = start(client, **long).json()
    run = f"/threads/{made['thread_id']}/runs/{made['run_id']}"
    while client.get(run).json()["status"] != "running":
        pass
    waiting = [start(client, **long).json() for _ in range(2)]
    refused(start(client, **long), "tenant.pending_runs")
    assert start(other).status_code == 200
    statuses = [
        client.get(f"/threads/{each['thread_id']}/runs/{each['run_id']}").json()["status"]
        for each in waiting
    ]
    assert statuses == ["pending", "pending"]


def test_stored_threads_are_refused_until_one_is_deleted(clients: Any) -> None:
    client, other = clients("stored"), clients("other")
    made = [client.post("/threads", json={}).json() for _ in range(2)]
    refused(client.post("/threads", json={}), "tenant.threads")
    # A stateless run has a thread of its own.
    refused(start(client), "tenant.threads")
    refused(client.post(f"/threads/{made[0]['thread_id']}/copy"), "tenant.threads")
    again = {"thread_id": made[0]["thread_id"], "if_exists": "do_nothing"}
    assert client.post("/threads", json=again).status_code == 200
    assert all(other.post("/threads", json={}).status_code == 200 for _ in range(3))
    assert client.delete(f"/threads/{made[0]['thread_id']}").is_success
    assert client.post("/threads", json={}).status_code == 200


def test_stored_assistants_and_crons_are_refused(clients: Any) -> None:
    client, other = clients("stored"), clients("other")
    body = {"graph_id": "echo"}
    cron = {"assistant_id": "echo", "schedule": "0 0 1 1 *", "input": {}}
    for path, asked, limit in (
        ("/assistants", body, "tenant.assistants"),
        ("/runs/crons", cron, "tenant.crons"),
    ):
        assert [client.post(path, json=asked).status_code for _ in range(2)] == [200] * 2
        assert refused(client.post(path, json=asked), limit) == 60
        assert [other.post(path, json=asked).status_code for _ in range(3)] == [200] * 3
    eve = clients("other", "eve")
    assert eve.post("/runs/crons", json=cron).status_code == 200
    refused(eve.post("/runs/crons", json=cron), "user.crons")


def test_versions_of_an_assistant_are_refused_by_their_number_and_their_size(clients: Any) -> None:
    client = clients("versions")
    few, large = (
        client.post("/assistants", json={"graph_id": "echo"}).json()["assistant_id"]
        for _ in range(2)
    )

    def change(assistant: str, size: int) -> httpx.Response:
        # Random, so that no database stores it in fewer bytes.
        body = {"metadata": {"note": secrets.token_urlsafe(size * 3 // 4)}}
        return client.patch(f"/assistants/{assistant}", json=body)

    assert [change(few, 10).status_code for _ in range(2)] == [200, 200]
    assert refused(change(few, 10), "assistant.versions") == 60
    assert client.get(f"/assistants/{few}").json()["version"] == 3
    assert change(large, 60_000).status_code == 200
    refused(change(large, 60_000), "assistant.version_bytes")
    assert client.get(f"/assistants/{large}").json()["version"] == 2
    assert change(large, 10).status_code == 200
    # Another tenant learns nothing of it.
    assert clients("other").patch(f"/assistants/{few}", json={}).status_code == 404


def test_stored_bytes_are_refused_until_data_is_deleted(clients: Any, data: Path) -> None:
    client, other = clients("bytes"), clients("other")

    def text(size: int) -> dict[str, str]:
        # Random, so that no database stores it in fewer bytes.
        return {"text": secrets.token_urlsafe(size * 3 // 4)}

    def item(tenant: str) -> dict[str, Any]:
        return {"namespace": [tenant, "notes"], "key": "long", "value": text(120_000)}

    first, second = (
        client.post("/threads", json={"metadata": {"graph_id": "memory", "note": text(100_000)}})
        for _ in range(2)
    )
    assert first.status_code == second.status_code == 200, first.text
    deleted, kept = (f"/threads/{each.json()['thread_id']}" for each in (first, second))
    theirs = other.post("/threads", json={"metadata": {"graph_id": "memory"}}).json()["thread_id"]
    for path, body in (
        ("/threads", {"metadata": {"note": text(120_000)}}),
        (f"{kept}/runs", {"assistant_id": "echo", "input": text(120_000)}),
        ("/runs", {"assistant_id": "echo", "input": text(120_000)}),
        (f"{kept}/state", {"values": text(120_000)}),
        (f"{kept}/copy", {}),
    ):
        assert refused(client.post(path, json=body), "tenant.stored_bytes") == 60, path
        allowed = other.post(path.replace(kept, f"/threads/{theirs}"), json=body)
        assert allowed.status_code != 429, allowed.text
    refused(client.put("/store/items", json=item("bytes")), "tenant.stored_bytes")
    assert other.put("/store/items", json=item("other")).is_success
    # What is refused is not stored and does not count.
    assert client.put("/store/items", json={**item("bytes"), "value": text(50_000)}).is_success
    assert client.delete(deleted).is_success
    recount(data)
    for _ in range(400):
        answer = client.put("/store/items", json={**item("bytes"), "key": "next"})
        if answer.is_success:
            break
        refused(answer, "tenant.stored_bytes")
        time.sleep(0.05)
    assert answer.is_success
    # Close to the kept thread and the item; the item after the count is in `added`.
    counted, added = databases.execute(
        data, "SELECT counted, added FROM stored_bytes WHERE tenant = 'bytes'"
    )[0]
    assert 150_000 < counted < 170_000
    assert added >= 120_000


def recount(data: Path) -> None:
    """Make the next count of stored bytes due at once."""
    databases.execute(
        data, "UPDATE stored_bytes SET due_at = (SELECT min(created_at) FROM assistants)"
    )


def test_requests_a_second_are_refused(clients: Any) -> None:
    client, other = clients("requests"), clients("other")
    answers = [client.get("/threads/x") for _ in range(20)]
    found = [answer for answer in answers if answer.status_code == 429]
    assert found
    assert refused(found[0], "tenant.requests_per_second") == 1
    assert refusals(other, "tenant", "requests_per_second") >= len(found)
    assert all(other.get("/threads/x").status_code != 429 for _ in range(20))


def test_open_streams_are_refused_until_one_ends(clients: Any) -> None:
    client, other = clients("streams"), clients("other")
    body = {"assistant_id": "sleeper", "input": LONG}
    with client.stream("POST", "/runs/stream", json=body) as first:
        assert first.status_code == 200
        refused(client.post("/runs/wait", json=body), "tenant.open_streams")
        with other.stream("POST", "/runs/stream", json=body) as theirs:
            assert theirs.status_code == 200
    quick = {"assistant_id": "echo", "input": {"value": 1}}
    # The server notices the disconnect a moment later.
    for _ in range(200):
        if (answer := client.post("/runs/wait", json=quick)).status_code == 200:
            break
        time.sleep(0.05)
    assert answer.status_code == 200


def test_streams_of_a_thread_and_of_the_process_are_refused(clients: Any) -> None:
    client, other = clients("threads"), clients("other")
    threads = [client.post("/threads", json={}).json()["thread_id"] for _ in range(3)]
    asked = {"channels": ["values"]}
    path = "/threads/{}/stream/events"
    with ExitStack() as stack:

        def opened(thread: str) -> httpx.Response:
            return stack.enter_context(client.stream("POST", path.format(thread), json=asked))

        assert [opened(threads[0]).status_code for _ in range(3)] == [200] * 3
        refused(client.post(path.format(threads[0].upper()), json=asked), "thread.open_streams")
        # Streams of other tests may not have ended yet.
        answers = [opened(thread) for thread in threads[1:] for _ in range(3)]
        too_many = [answer for answer in answers if answer.status_code != 200]
        for answer in too_many:
            answer.read()
            refused(answer, "process.open_streams")
        assert too_many
        quick = {"assistant_id": "echo", "input": {"value": 1}}
        refused(other.post("/runs/wait", json=quick), "process.open_streams")


def test_websockets_are_counted_as_open_streams_and_refused(clients: Any, url: str) -> None:
    def opened(tenant: str) -> ClientConnection:
        thread = clients(tenant).post("/threads", json={}).json()["thread_id"]
        return connect(
            f"ws{url[4:]}/threads/{thread}/stream/events",
            additional_headers={"x-user": "ada", "x-tenant": tenant},
            open_timeout=PATIENCE,
        )

    client = clients("sockets")
    before = refusals(client, "tenant", "open_streams")
    with opened("sockets"):
        with pytest.raises(InvalidStatus) as answer:
            opened("sockets")
        assert answer.value.response.status_code == 403
        assert refusals(client, "tenant", "open_streams") == before + 1
        quick = {"assistant_id": "echo", "input": {"value": 1}}
        refused(client.post("/runs/wait", json=quick), "tenant.open_streams")
        with opened("other"):
            pass
    # The server notices the end a moment later.
    for _ in range(200):
        if (waited := client.post("/runs/wait", json=quick)).status_code == 200:
            break
        time.sleep(0.05)
    assert waited.status_code == 200
    with opened("sockets"):
        pass


def test_page_of_a_history_is_refused_by_its_size_and_says_how_many_states_fit(
    clients: Any,
) -> None:
    client = clients("pages")
    thread = f"/threads/{client.post('/threads', json={'metadata': {'graph_id': 'echo'}}).json()['thread_id']}"

    def refusal_after(letters: str) -> str:
        for letter in letters:
            change = {"values": {"value": letter * 40_000}}
            assert client.post(f"{thread}/state", json=change).status_code == 200
        answer = client.get(f"{thread}/history", params={"limit": 10})
        assert answer.status_code == 422, answer.text
        return str(answer.json()["detail"])

    assert "The first 2 fit" in refusal_after("abc")
    fitting = client.post(f"{thread}/history", json={"limit": 2}).json()
    assert [each["values"]["value"][0] for each in fitting] == ["c", "b"]
    # Many more are refused while they are read.
    assert "fewer states with `limit`" in refusal_after("defghi")
    larger = {"values": {"value": "z" * 200_000}}
    assert client.post(f"{thread}/state", json=larger).status_code == 200
    assert len(client.post(f"{thread}/history", json={"limit": 1}).json()) == 1


def test_mcp_passes_the_refusal_on(clients: Any) -> None:
    client = clients("three", "eve")
    headers = {"accept": "application/json, text/event-stream"}
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "echo", "arguments": {"value": 1}},
    }
    assert client.post("/mcp", json=call, headers=headers).status_code == 200
    refused(client.post("/mcp", json=call, headers=headers), "user.starts_per_minute")
