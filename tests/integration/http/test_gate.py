"""The gate: every route that writes passes it, which its entry in the audit log shows.

The routes are those of the mounted app: stock routes, the event stream, MCP, A2A, product routes and
those of identity. A write that did not pass the gate raises `UngatedWrite`, so its request fails.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import select, text
from websockets.sync.client import connect

from langgraph_runtime_sql.database.schema import threads
from langgraph_runtime_sql.errors import UngatedWrite
from langgraph_runtime_sql.gate import operations, writes
from langgraph_runtime_sql.gate.operations import Operation
from my_agent.icp_finder.model import Candidate, Score, Scored
from my_agent.icp_finder.records import store
from my_agent.research import projects
from server import operations as of_products
from tests.support import databases, runtime
from tests.support.issuer import SECRET, bearer, token
from tests.support.processes import GRAPHS, ROOT, environment, free_port, running
from tests.support.products import using
from tests.support.runtime import opened
from tests.support.served import served
from threadhold.tables.lent import Lent

pytestmark = pytest.mark.usefixtures("each_database")

OURS = ("chat", "diagnosis", "icp_finder", "research", "tutor")
ADA = bearer(token())
OPERATOR = bearer(token(sub="op", roles=["operator"]))

# Routes with a method that could write, but only read, or have nothing to write.
READS = {
    "POST /assistants/search",
    "POST /assistants/count",
    "POST /assistants/{assistant_id}/versions",
    "POST /diagnosis/{thread_id}/replay",
    "POST /runs/crons/search",
    "POST /runs/crons/count",
    "POST /store/items/search",
    "POST /store/namespaces",
    "POST /threads/search",
    "POST /threads/count",
    "POST /threads/{thread_id}/history",
    "POST /threads/{thread_id}/state/checkpoint",
    "POST /threads/{thread_id}/stream/events",
    "DELETE /mcp",
    "DELETE /a2a/{assistant_id}",
    "DELETE /a2a/{assistant_id}/",
}


@dataclass(frozen=True)
class Write:
    """A request that writes. Names in braces stand for ids of new objects of its sender.

    Attributes:
        operation: What the gate must have admitted.
        body: As JSON.
        headers: More headers; those of the sender, if it is not Ada.
        before: Requests whose answers do not matter.
    """

    operation: Operation
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    before: tuple[tuple[str, str, Any], ...] = ()


RUN = {"assistant_id": "echo", "input": {"value": 1}}
LATER = {**RUN, "after_seconds": 86_400}
CRON = {"schedule": "0 0 1 1 *", "assistant_id": "echo"}
ITEM = {"namespace": ["notes"], "key": "note", "value": {"a": 1}}
CALL = {"jsonrpc": "2.0", "id": 1}
MESSAGE = {"role": "user", "messageId": "m1", "parts": [{"kind": "text", "text": "hello"}]}
SEND = {**CALL, "method": "message/send", "params": {"message": MESSAGE}}
TOOL = {**CALL, "method": "tools/call", "params": {"name": "echo", "arguments": {"value": 1}}}
COMMAND = {"id": 1, "method": "run.start", "params": RUN}
STARTED, REVOKED = Write(operations.RUN_CREATE, RUN), {"token_id": "gone"}

WRITES: dict[str, Write] = {
    "POST /assistants": Write(operations.ASSISTANT_CREATE, {"graph_id": "echo"}),
    "PATCH /assistants/{assistant_id}": Write(operations.ASSISTANT_UPDATE, {"name": "other"}),
    "POST /assistants/{assistant_id}/latest": Write(operations.ASSISTANT_UPDATE, {"version": 1}),
    "DELETE /assistants/{assistant_id}": Write(operations.ASSISTANT_DELETE),
    "POST /threads": Write(operations.THREAD_CREATE),
    "POST /threads/resolve": Write(
        operations.THREAD_CREATE, {"agent": "icp_finder", "website": "ada.example"}
    ),
    "POST /threads/{hunt_id}/resume": Write(operations.THREAD_CREATE, {"website": "other.example"}),
    "POST /threads/{thread_id}/copy": Write(operations.THREAD_CREATE),
    "PATCH /threads/{thread_id}": Write(operations.THREAD_UPDATE, {"metadata": {"a": 1}}),
    "DELETE /threads/{thread_id}": Write(operations.THREAD_DELETE),
    "POST /threads/prune": Write(operations.THREAD_DELETE, {"thread_ids": ["{thread_id}"]}),
    "POST /threads/{thread_id}/state": Write(operations.STATE_WRITE, {"values": {"value": 2}}),
    "POST /runs": STARTED,
    "POST /runs/wait": STARTED,
    "POST /runs/stream": STARTED,
    "POST /runs/batch": Write(operations.RUN_CREATE, [RUN, RUN]),
    "POST /threads/{thread_id}/runs": STARTED,
    "POST /threads/{thread_id}/runs/wait": STARTED,
    "POST /threads/{thread_id}/runs/stream": STARTED,
    "POST /threads/{thread_id}/commands": Write(operations.RUN_CREATE, COMMAND),
    "POST /mcp": Write(operations.RUN_CREATE, TOOL),
    "POST /a2a/{assistant_id}": Write(operations.RUN_CREATE, SEND),
    "POST /a2a/{assistant_id}/": Write(operations.RUN_CREATE, SEND),
    "POST /runs/cancel": Write(operations.RUN_CANCEL, {"status": "all"}),
    "POST /threads/{thread_id}/runs/{pending_id}/cancel": Write(operations.RUN_CANCEL),
    "DELETE /threads/{thread_id}/runs/{run_id}": Write(operations.RUN_DELETE),
    "POST /runs/crons": Write(operations.CRON_CREATE, CRON),
    "POST /threads/{thread_id}/runs/crons": Write(operations.CRON_CREATE, CRON),
    "PATCH /runs/crons/{cron_id}": Write(operations.CRON_UPDATE, {"enabled": False}),
    "DELETE /runs/crons/{cron_id}": Write(operations.CRON_DELETE),
    "PUT /store/items": Write(operations.ITEM_PUT, ITEM),
    "DELETE /store/items": Write(
        operations.ITEM_DELETE,
        {"namespace": ["notes"], "key": "note"},
        before=(("PUT", "/store/items", ITEM),),
    ),
    "POST /revocations": Write(operations.REVOCATION_CREATE, REVOKED, OPERATOR),
    "POST /revocations/lift": Write(
        operations.REVOCATION_LIFT, REVOKED, OPERATOR, (("POST", "/revocations", REVOKED),)
    ),
    "POST /api/ask": Write(operations.RUN_CREATE, {"question": "Who are you?"}),
    "PUT /api/documents/{name}": Write(of_products.DOCUMENT_PUT, {"a": "text"}),
    "DELETE /api/documents/{name}": Write(
        of_products.DOCUMENT_DELETE, before=(("PUT", "/api/documents/{name}", {"a": "text"}),)
    ),
    "POST /tutor/chat": Write(operations.RUN_CREATE, {"message": "Hello there."}),
    "PATCH /tutor/profile": Write(of_products.PROFILE_UPDATE, {"level": "B1"}),
    "POST /tutor/exercises/{mistake_id}": Write(of_products.EXERCISE_ANSWER, {"answer": None}),
    "DELETE /tutor/profile/mistakes/{mistake_id}": Write(of_products.MISTAKE_DELETE),
    "DELETE /tutor/profile": Write(of_products.PROFILE_DELETE),
    "POST /research": Write(
        of_products.PROJECT_CREATE, {"question": "What does it cost?", "limits": {"fetches": 0}}
    ),
    **{
        f"POST /research/{{project_id}}/{what}": Write(of_products.PROJECT_UPDATE)
        for what in ("pause", "resume", "finish", "cancel")
    },
    "PUT /diagnosis/{incident_id}/sources/{name}": Write(of_products.SOURCE_ADD, {"a": "text"}),
    "POST /diagnosis/{incident_id}/branch": Write(of_products.SESSION_BRANCH, {"at_seq": 1}),
    "POST /diagnosis/{incident_id}/events": Write(
        of_products.NOTE_ADD,
        {"events": [{"text": "The disk was replaced."}]},
        {"if-match": "{seq}", **ADA},
    ),
    "POST /icp_finder/threads/{found_id}/feedback": Write(
        of_products.FEEDBACK_PUT, {"key": "uen:1", "verdict": "kept"}
    ),
}


@dataclass(frozen=True)
class World:
    """A server, and a folder with its database.

    Attributes:
        routes: The methods and paths of the app.
    """

    url: str
    database: str
    routes: list[str]

    def client(self, headers: dict[str, str] = ADA) -> httpx.Client:
        """Return a client with the headers of a sender."""
        accept = {"accept": "application/json, text/event-stream"}
        return httpx.Client(base_url=self.url, headers={**accept, **headers}, timeout=60)

    def entries(self, after: int = 0) -> list[dict[str, Any]]:
        """Return the newest entries of the audit log that come after a place in it."""
        with self.client(OPERATOR) as operator:
            found = operator.get("/audit", params={"limit": 100})
        assert found.status_code == 200, found.text
        return [each for each in found.json() if each["seq"] > after]


@pytest.fixture(scope="module")
def world(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder, port = tmp_path_factory.mktemp("gate"), free_port()
    project = json.loads((ROOT / "langgraph.json").read_text())
    config = {
        "graphs": {
            "echo": f"{GRAPHS}/echo.py:graph",
            **{name: f"{ROOT}/my_agent/{name}/graph.py:graph" for name in OURS},
        },
        "auth": project["auth"],
        # Without `state_keys`, so that the test can write what a search of the finder leaves.
        "sql": {name: project["sql"][name] for name in ("hooks", "tenant_key")},
    }
    (folder / "langgraph.json").write_text(json.dumps(config))
    script, listing = str(ROOT / "tests/support/identity_host.py"), folder / "routes.json"
    url = databases.url(folder / "data.db")
    env = environment(
        APP_ENV="production", JWT_SECRET=SECRET, DATABASE_URL=url, JWT_OPERATOR_TENANTS="acme"
    )
    with running([sys.executable, script, str(port), str(listing)], port, folder, env) as server:
        routes = [" ".join(each) for each in json.loads(listing.read_text())]
        yield World(server.url, url, routes)


@pytest.fixture
def ids(world: World) -> dict[str, str]:
    """Create objects of Ada. Return their ids."""
    with world.client() as ada:

        def make(path: str, body: Any, method: str = "POST") -> Any:
            answer = ada.request(method, path, json=body)
            assert answer.is_success, answer.text
            return answer.json()

        thread, project, found = (make("/threads", {})["thread_id"] for _ in range(3))
        run = make(f"/threads/{thread}/runs/wait", RUN)
        assert run is not None
        [ended] = make(f"/threads/{thread}/runs", None, "GET")
        made = {
            "thread_id": thread,
            "project_id": project,
            "found_id": found,
            "run_id": ended["run_id"],
            "assistant_id": make("/assistants", {"graph_id": "echo"})["assistant_id"],
            "cron_id": make("/runs/crons", CRON)["cron_id"],
            "name": f"{uuid4()}.md",
        }
    return made


def filled(value: Any, names: dict[str, str]) -> Any:
    """Replace names in braces in `value`."""
    content = json.dumps(value)
    for name, each in names.items():
        content = content.replace("{" + name + "}", each)
    return json.loads(content)


# What only some routes need, by the name of the id.
def pending(ada: httpx.Client, ids: dict[str, str]) -> str:
    made = ada.post(f"/threads/{ids['thread_id']}/runs", json=LATER)
    return str(made.json()["run_id"])


def hunt(ada: httpx.Client, ids: dict[str, str]) -> str:
    wanted = {"agent": "icp_finder", "website": f"{uuid4().hex}.example"}
    return str(ada.post("/threads/resolve", json=wanted).json()["thread_id"])


def incident(ada: httpx.Client, ids: dict[str, str]) -> str:
    seen = "2026-03-02 09:40:00 ERROR [pay] no space left on device"
    said = {"messages": [{"role": "user", "content": seen}]}
    body = {"assistant_id": "diagnosis", "input": said}
    assert ada.post(f"/threads/{ids['thread_id']}/runs/wait", json=body).is_success
    return ids["thread_id"]


def mistake(ada: httpx.Client, ids: dict[str, str]) -> str:
    ada.post("/tutor/chat", json={"message": "I has a dog."}).raise_for_status()
    return str(ada.get("/tutor/profile").json()["mistakes"][0]["id"])


MAKERS = {
    "{pending_id}": pending,
    "{hunt_id}": hunt,
    "{incident_id}": incident,
    "{mistake_id}": mistake,
}


def prepare(world: World, row: str, ids: dict[str, str]) -> dict[str, str]:
    """Create what a route needs beside the usual objects. Return all ids."""
    with world.client() as ada:
        made = {name.strip("{}"): maker(ada, ids) for name, maker in MAKERS.items() if name in row}
        if "{incident_id}" in row:
            made["seq"] = (
                ada.get(f"/diagnosis/{made['incident_id']}/state").headers["etag"].strip('"')
            )
        if row == "POST /runs/cancel":
            pending(ada, ids)
        with using(world.database):
            if "{project_id}" in row:
                key = projects.Key("acme", ids["project_id"])
                asyncio.run(projects.create(key, "What does it cost?"))
            if "{found_id}" in row:
                basis: Any = {"website": "ada.example", "customers": [], "icp": {}}
                one = Scored(Candidate(key="uen:1", name="A", source="register"), Score(0.5, {}))
                asyncio.run(store.save_discovery("acme", "Default ICP", "h1", basis, [one]))
                own = {"metadata": {"graph_id": "icp_finder"}}
                ada.patch(f"/threads/{ids['found_id']}", json=own).raise_for_status()
                values = {"last": {"rule_name": "Default ICP", "icp_hash": "h1"}}
                state = {"values": values, "as_node": "ingest"}
                ada.post(f"/threads/{ids['found_id']}/state", json=state).raise_for_status()
    return {**ids, **made}


def known(row: str) -> str:
    """Return the route of a row, whose names for ids may be more special."""
    for special, usual in (
        ("{pending_id}", "{run_id}"),
        ("{hunt_id}", "{thread_id}"),
        ("{found_id}", "{thread_id}"),
        ("{incident_id}", "{thread_id}"),
    ):
        row = row.replace(special, usual)
    return row


def test_every_route_that_could_write_is_known(world: World) -> None:
    """A new route belongs to `WRITES`, with its operation, or to `READS`."""
    could = {each for each in world.routes if each.split()[0] not in ("GET", "HEAD", "WEBSOCKET")}
    assert could == {known(row) for row in WRITES} | READS
    assert [each for each in world.routes if each.startswith("WEBSOCKET")] == [
        "WEBSOCKET /threads/{thread_id}/stream/events"
    ]


def test_every_operation_that_writes_has_a_route() -> None:
    offered = {
        each
        for module in (operations, of_products)
        for each in vars(module).values()
        if isinstance(each, Operation) and each.writes
    }
    # `prune` has it if its strategy keeps the newest checkpoint. The session of a copied thread
    # begins with any request for it, as `test_copied_thread_has_the_session` shows.
    special = {operations.THREAD_PRUNE, of_products.SESSION_TAKE}
    assert offered == {each.operation for each in WRITES.values()} | special


@pytest.mark.parametrize("row", WRITES)
def test_write_passes_the_gate(world: World, row: str, ids: dict[str, str]) -> None:
    write, ids = WRITES[row], prepare(world, row, ids)
    method, path = filled(row, ids).split(" ", 1)
    headers = filled(write.headers or ADA, ids)
    with world.client(headers) as sender:
        for once, place, body in filled(write.before, ids):
            sender.request(once, place, json=body).raise_for_status()
        last = max((each["seq"] for each in world.entries()), default=0)
        answer = sender.request(method, path, json=filled(write.body, ids))
    assert answer.is_success, answer.text
    kind, action = write.operation.kind, write.operation.action
    made = [
        each
        for each in world.entries(last)
        if (each["object"]["kind"], each["action"]) == (kind, action)
    ]
    assert made, f"no entry of {write.operation.name}"
    who = "op" if headers == OPERATOR else "ada"
    assert {each["user"] for each in made} == {who}
    assert {f"{each['method']} {each['route']}" for each in made} == {known(row)}


REFUSED = {
    "GET /icp_finder/threads/{found_id}/candidates": ("bob", 404),
    "GET /icp_finder/threads/{found_id}/scores.csv": ("bob", 404),
    "DELETE /api/documents/{name}": ("bob", 404),
    "POST /revocations": ("bob", 403),
    "GET /threads/{thread_id}": ("bob", 404),
    # Refused for another reason, although its check asks the platform for a thread.
    "PATCH /tutor/profile": ("bob", None),
}


@pytest.mark.parametrize("row", REFUSED)
def test_refusal_names_the_route_that_the_client_called(
    world: World, row: str, ids: dict[str, str]
) -> None:
    user, status = REFUSED[row]
    ids = prepare(world, row, ids)
    last = world.entries()[0]["seq"]
    method, path = filled(row, ids).split(" ", 1)
    with world.client(bearer(token(sub=user))) as bob:
        answer = bob.request(method, path, json=REVOKED if row == "POST /revocations" else {"x": 1})
    assert answer.status_code == (status or 422), answer.text
    found = [each for each in world.entries(last) if each["decision"] == "refused"]
    assert [
        (f"{each['method']} {each['route']}", each["user"], each["status"]) for each in found
    ] == ([] if status is None else [(known(row), user, status)])


@pytest.mark.parametrize(
    "row",
    [
        "GET /icp_finder/threads/{found_id}/scores.csv",
        "GET /export/latest_scores.csv",
        "GET /diagnosis/{incident_id}/report",
    ],
)
def test_export_has_an_entry(world: World, row: str, ids: dict[str, str]) -> None:
    ids = prepare(world, row, ids)
    last = world.entries()[0]["seq"]
    method, path = filled(row, ids).split(" ", 1)
    with world.client() as ada:
        assert ada.request(method, path).is_success
    [entry] = world.entries(last)
    assert (entry["action"], entry["user"], f"{entry['method']} {entry['route']}") == (
        ("export", "ada", known(row))
    )


def test_repeated_request_writes_nothing(world: World, ids: dict[str, str]) -> None:
    last = world.entries()[0]["seq"]
    key = {"idempotency-key": str(uuid4())}
    with world.client() as ada:
        answers = [
            ada.post(f"/threads/{ids['thread_id']}/runs/wait", json=RUN, headers=key)
            for _ in range(2)
        ]
    assert [each.headers.get("idempotent-replayed") for each in answers] == [None, "true"]
    assert [each["action"] for each in world.entries(last)] == ["create"]


def test_command_of_a_web_socket_passes_the_gate(world: World, ids: dict[str, str]) -> None:
    last = world.entries()[0]["seq"]
    url = f"ws{world.url[4:]}/threads/{ids['thread_id']}/stream/events"
    with connect(url, additional_headers=ADA) as socket:
        socket.send(json.dumps(COMMAND))
        assert json.loads(socket.recv(timeout=60))["type"] == "success"
    [entry] = [each for each in world.entries(last) if each["object"]["kind"] == "run"]
    assert (entry["action"], entry["user"]) == ("create", "ada")


def test_reads_enter_nothing(world: World, ids: dict[str, str]) -> None:
    with world.client() as ada:
        state = ada.get(f"/threads/{ids['thread_id']}/state").json()
        bodies: dict[str, Any] = {
            "POST /store/items/search": {"namespace_prefix": ["notes"]},
            "POST /threads/{thread_id}/state/checkpoint": {"checkpoint": state["checkpoint"]},
        }
        names = {**ids, "thread_id": incident(ada, ids)}
        last = world.entries()[0]["seq"]
        # The stream does not end.
        for row in sorted(READS - {"POST /threads/{thread_id}/stream/events"}):
            method, path = filled(row, names).split(" ", 1)
            answer = ada.request(method, path, json=bodies.get(row, {}))
            assert answer.status_code < 500, answer.text
    assert [each for each in world.entries(last) if each["decision"] == "allowed"] == []


OWN_APP = """
from langgraph.config import get_store
from langgraph_sdk import Auth
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

auth = Auth()


@auth.authenticate
async def authenticate(authorization):
    return "ada"


@auth.on.threads.create
async def count(ctx, value):
    await get_store().aput(("handlers",), "thread", {})


async def note(request):
    await get_store().aput(("routes",), "note", {})
    return JSONResponse({})


app = Starlette(routes=[Route("/notes", note, methods=["POST"])])
"""


def test_the_projects_own_code_writes_items_in_requests(tmp_path: Path) -> None:
    """As in a run: its routes and handlers are trusted. What they write has entries."""
    (tmp_path / "own.py").write_text(OWN_APP)
    config = {
        "graphs": {"echo": f"{GRAPHS}/echo.py:graph"},
        "auth": {"path": "./own.py:auth"},
        "http": {"app": "./own.py:app"},
    }
    (tmp_path / "langgraph.json").write_text(json.dumps(config))
    with (
        served(tmp_path, tmp_path / "langgraph.json") as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        for path in ("/notes", "/threads"):
            assert client.post(path, json={}).status_code == 200
    statement = "SELECT route, detail FROM audit_entries WHERE object_kind = 'item' ORDER BY seq"
    assert [
        (route, json.loads(detail))
        for route, detail in databases.execute(tmp_path / "data.db", statement)
    ] == [
        ("/notes", {"namespace": ["routes"], "key": "note"}),
        ("/threads", {"namespace": ["handlers"], "key": "thread"}),
    ]


async def test_write_of_a_request_that_was_not_admitted_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path / "data.db") as db:
        with writes.in_client_request():
            assert await db.read(lambda conn: conn.fetchall(select(threads.c.thread_id))) == []
            with pytest.raises(UngatedWrite):
                await db.write(lambda conn: conn.now())
            with pytest.raises(UngatedWrite):
                await asyncio.to_thread(db.write_sync, lambda conn: conn.now())
            with writes.checked(operations.THREAD_CREATE):
                await db.write(lambda conn: conn.now())
            with pytest.raises(UngatedWrite):
                await db.write(lambda conn: conn.now())
            with writes.own_write("health"):
                await db.write(lambda conn: conn.now())
        await db.write(lambda conn: conn.now())


async def test_write_to_a_graphs_table_that_was_not_admitted_is_refused(tmp_path: Path) -> None:
    def write(connection: Any) -> None:
        connection.execute(text("SELECT 1"))

    graphs = Lent()
    async with runtime.opened(tmp_path / "data.db"):
        with writes.in_client_request():
            with pytest.raises(UngatedWrite):
                await graphs.run(write, "acme", write=True)
            with pytest.raises(UngatedWrite):
                await asyncio.to_thread(graphs.write, write, "acme")
            with writes.checked(of_products.DOCUMENT_PUT):
                await graphs.run(write, "acme", write=True)
            await graphs.run(write, "acme")
        await graphs.run(write, "acme", write=True)
