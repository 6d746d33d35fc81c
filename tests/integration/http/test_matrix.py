"""Every route of the app's own table refuses users without access.

Unless an explicit list here allows it, a request must be refused, or answered exactly as for an id
that does not exist, and must not change the database. A route without a row in `ROWS` fails.
"""

import asyncio
import json
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from my_agent.icp_finder.model import Candidate, Score, Scored
from my_agent.icp_finder.records import store
from tests.support import databases
from tests.support.identity_host import PREFIX
from tests.support.issuer import SECRET, bearer, token
from tests.support.processes import GRAPHS, ROOT, environment, free_port, running
from tests.support.products import using
from tests.support.redis import started

pytestmark = pytest.mark.usefixtures("each_database")

MARK = "only-ada-may-read-this"
ACCEPT = {"accept": "application/json, text/event-stream"}
REFUSED = (401, 403, 404)
# The v2 protocol answers commands with 200; this is its 404.
NOT_FOUND = '"message":"404: Thread or assistant not found."'

# Routes without authentication: whether the server is up, and its description.
PUBLIC = {"/", "/assets/{name}", "/ok", "/health", "/info", "/openapi.json"}

# Routes that other users of the tenant may use: the tenant's assistants and scores.
SHARED = {
    "GET /api/documents",
    "GET /api/passages/{document_id}",
    "GET /export/latest_scores.csv",
    "GET /assistants/{assistant_id}",
    "GET /assistants/{assistant_id}/graph",
    "GET /assistants/{assistant_id}/schemas",
    "GET /assistants/{assistant_id}/subgraphs",
    "GET /assistants/{assistant_id}/subgraphs/{namespace}",
    "POST /assistants/{assistant_id}/versions",
    "POST /assistants/search",
    "POST /assistants/count",
    "POST /mcp",
    "GET /a2a/{assistant_id}",
    "GET /a2a/{assistant_id}/",
    "POST /a2a/{assistant_id}",
    "POST /a2a/{assistant_id}/",
    "GET /a2a/{assistant_id}/.well-known/agent-card.json",
    "GET /a2a/{assistant_id}/.well-known/agent.json",
    "GET /.well-known/agent-card.json",
    # Runs of the tenant's assistants, on the user's own threads.
    "POST /runs",
    "POST /runs/wait",
    "POST /runs/stream",
    "POST /runs/batch",
    "POST /runs/crons",
}

# An id that another user has taken is refused with 409.
TAKEN = {"POST /threads", "POST /assistants"}


@dataclass(frozen=True)
class Ask:
    """A request of a route. Names in braces stand for ids of Ada's objects, or of missing ones.

    Attributes:
        body: As JSON.
        query: Of the URL.
        creates: Whether the request may create an object of the sender's own.
    """

    body: Any = field(default_factory=dict)
    query: str = ""
    creates: bool = False


RUN = {"assistant_id": "echo", "input": {"value": 1}}
THEIRS = {"assistant_id": "{assistant_id}", "input": {"value": 1}}
CREATED = {"if_not_exists": "create"}
CRON = {"schedule": "0 0 1 1 *", "assistant_id": "echo"}
CALL = {"jsonrpc": "2.0", "id": 1}
MESSAGE = {
    "role": "user",
    "messageId": "m1",
    "parts": [{"kind": "text", "text": "hello"}],
    "contextId": "{thread_id}",
}
A2A = [
    Ask({**CALL, "method": "message/send", "params": {"message": MESSAGE}}, creates=True),
    Ask({**CALL, "method": "message/stream", "params": {"message": MESSAGE}}, creates=True),
    Ask({**CALL, "method": "tasks/get", "params": {"id": "{thread_id}:{run_id}"}}),
    Ask({**CALL, "method": "tasks/get", "params": {"id": "{run_id}", "contextId": "{thread_id}"}}),
    Ask({**CALL, "method": "tasks/cancel", "params": {"id": "{thread_id}:{run_id}"}}),
]
NOTHING = [Ask()]
PAGE = [Ask(), Ask({"limit": 1000, "metadata": {}}), Ask({"metadata": {"mark": MARK}})]
START = {"assistant_id": "echo", "input": {"value": 1}}

# The product's graphs that have their own routes.
OURS = ("chat", "diagnosis", "icp_finder", "research", "tutor")
CANDIDATES = ("candidates", "scores.csv")
TUTORED = ("messages", "corrections", "summary")
RESEARCHED = ("progress", "report", "state")
CONTROLLED = ("cancel", "finish", "pause", "resume")
DIAGNOSED = ("state", "events", "timeline", "report", "diff")

ROWS: dict[str, list[Ask]] = {
    "POST /api/ask": [
        Ask({"question": "Who are you?"}, creates=True),
        Ask({"question": "Who are you?", "thread_id": "{thread_id}"}, creates=True),
        Ask({"question": ""}),
    ],
    "GET /api/documents": NOTHING,
    "GET /api/passages/{document_id}": NOTHING,
    "PUT /api/documents/{name}": NOTHING,
    "DELETE /api/documents/{name}": NOTHING,
    "POST /tutor/chat": [
        Ask({"message": "Hello there."}, creates=True),
        Ask({"message": "Hello there.", "thread_id": "{thread_id}"}),
        Ask({"message": ""}),
    ],
    **{f"GET /tutor/threads/{{thread_id}}/{what}": NOTHING for what in TUTORED},
    "GET /tutor/profile": NOTHING,
    "PATCH /tutor/profile": [Ask({"level": "B1"}, creates=True), Ask({"level": "B9"})],
    "DELETE /tutor/profile": NOTHING,
    "DELETE /tutor/profile/mistakes/{mistake_id}": NOTHING,
    "GET /tutor/exercises": NOTHING,
    "POST /tutor/exercises/{mistake_id}": [Ask({"answer": "I have an apple."}), Ask()],
    **{f"GET /research/{{project_id}}/{what}": NOTHING for what in RESEARCHED},
    **{f"POST /research/{{project_id}}/{what}": NOTHING for what in CONTROLLED},
    **{f"GET /diagnosis/{{thread_id}}/{what}": NOTHING for what in DIAGNOSED},
    "GET /diagnosis/{thread_id}/state": [Ask(), Ask(query="at_seq=2"), Ask(query="at=x")],
    "POST /diagnosis/{thread_id}/replay": NOTHING,
    "PUT /diagnosis/{thread_id}/sources/{name}": NOTHING,
    "GET /diagnosis/{thread_id}/sources/{source_id}": [
        Ask(),
        Ask(query="start=3"),
        Ask(query="end=x"),
    ],
    "POST /diagnosis/{thread_id}/branch": [Ask({"at_seq": 1}), Ask()],
    "POST /diagnosis/{thread_id}/events": [Ask({"events": [{"text": "x"}]}), Ask()],
    "GET /export/latest_scores.csv": NOTHING,
    **{f"GET /icp_finder/threads/{{thread_id}}/{what}": NOTHING for what in CANDIDATES},
    "POST /icp_finder/threads/{thread_id}/feedback": [
        Ask({"key": "uen:1", "verdict": "kept"}),
        Ask(),
    ],
    "GET /metrics": NOTHING,
    "GET /revocations": NOTHING,
    "POST /revocations": [Ask({"tenant": "acme", "user": "ada"}), Ask({"token_id": "x"}), Ask()],
    "POST /revocations/lift": [Ask({"tenant": "acme", "user": "ada"}), Ask()],
    "GET /audit": NOTHING,
    "POST /assistants": [
        Ask({"graph_id": "echo", "assistant_id": "{assistant_id}", "if_exists": how}, creates=True)
        for how in ("raise", "do_nothing")
    ],
    "POST /assistants/search": PAGE,
    "POST /assistants/count": PAGE,
    "POST /assistants/{assistant_id}/latest": [Ask({"version": 1})],
    "POST /assistants/{assistant_id}/versions": NOTHING,
    "GET /assistants/{assistant_id}": NOTHING,
    "GET /assistants/{assistant_id}/graph": NOTHING,
    "GET /assistants/{assistant_id}/schemas": NOTHING,
    "GET /assistants/{assistant_id}/subgraphs": NOTHING,
    "GET /assistants/{assistant_id}/subgraphs/{namespace}": NOTHING,
    "PATCH /assistants/{assistant_id}": [Ask({"name": "taken over", "metadata": {"a": 1}})],
    "DELETE /assistants/{assistant_id}": [Ask(), Ask(query="delete_threads=true")],
    "POST /runs/stream": [Ask(RUN, creates=True), Ask(THEIRS, creates=True)],
    "POST /runs/wait": [Ask(RUN, creates=True), Ask(THEIRS, creates=True)],
    "POST /runs": [
        Ask(RUN, creates=True),
        Ask(THEIRS, creates=True),
        Ask({**RUN, "config": {"configurable": {"thread_id": "{thread_id}"}}}, creates=True),
    ],
    "POST /runs/batch": [Ask([RUN], creates=True), Ask([THEIRS, THEIRS], creates=True)],
    "POST /runs/cancel": [
        Ask({"status": "all"}),
        Ask({"thread_id": "{thread_id}", "run_ids": ["{run_id}"]}),
    ],
    "POST /runs/crons": [Ask(CRON, creates=True), Ask({**CRON, **THEIRS}, creates=True)],
    "POST /runs/crons/search": [*PAGE, Ask({"thread_id": "{thread_id}"})],
    "POST /runs/crons/count": [*PAGE, Ask({"assistant_id": "{assistant_id}"})],
    "GET /threads/{thread_id}/runs/{run_id}/join": NOTHING,
    "GET /threads/{thread_id}/runs/{run_id}/stream": [Ask(), Ask(query="cancel_on_disconnect=1")],
    "POST /threads/{thread_id}/runs/{run_id}/cancel": [Ask(), Ask(query="action=rollback")],
    "GET /threads/{thread_id}/runs/{run_id}": NOTHING,
    "DELETE /threads/{thread_id}/runs/{run_id}": NOTHING,
    **{
        f"POST /threads/{{thread_id}}/runs{kind}": [
            Ask(RUN),
            Ask({**RUN, **CREATED}, creates=True),
            Ask({**RUN, **CREATED, "multitask_strategy": "rollback"}, creates=True),
            Ask({**THEIRS, **CREATED}, creates=True),
        ]
        for kind in ("", "/wait", "/stream")
    },
    "POST /threads/{thread_id}/runs/crons": [Ask(CRON)],
    "GET /threads/{thread_id}/runs": [Ask(), Ask(query="status=success")],
    "GET /runs/crons/{cron_id}": NOTHING,
    "PATCH /runs/crons/{cron_id}": [Ask({"enabled": False}), Ask({"metadata": {"a": 1}})],
    "DELETE /runs/crons/{cron_id}": NOTHING,
    "POST /threads": [
        Ask({"thread_id": "{thread_id}", "if_exists": how, "metadata": {"a": 1}}, creates=True)
        for how in ("raise", "do_nothing")
    ],
    "POST /threads/search": [
        *PAGE,
        Ask({"ids": ["{thread_id}"]}),
        Ask({"metadata": {"tenant_id": "acme", "user_id": "ada"}}),
        Ask({"values": {"value": MARK}}),
        Ask({"status": "idle", "extract": {"v": "values.value"}}),
        Ask({"include_archived": True}),
    ],
    "POST /threads/count": [*PAGE, Ask({"metadata": {"tenant_id": "acme"}})],
    "POST /threads/prune": [Ask({"thread_ids": ["{thread_id}"]})],
    "POST /threads/resolve": [
        Ask({"agent": "icp_finder", "website": "ada.example"}, creates=True),
        Ask({"agent": "echo"}),
    ],
    "POST /threads/{thread_id}/resume": [Ask(), Ask({"website": "other.example"})],
    "GET /threads/{thread_id}": NOTHING,
    "PATCH /threads/{thread_id}": [Ask({"metadata": {"a": 1}}), Ask({"metadata": {}})],
    "DELETE /threads/{thread_id}": NOTHING,
    "GET /threads/{thread_id}/state": [Ask(), Ask(query="subgraphs=true")],
    "GET /threads/{thread_id}/storage": NOTHING,
    "POST /threads/{thread_id}/state": [Ask({"values": {"value": 2}, "as_node": "echo"})],
    "GET /threads/{thread_id}/history": NOTHING,
    "POST /threads/{thread_id}/history": NOTHING,
    "POST /threads/{thread_id}/copy": NOTHING,
    "GET /threads/{thread_id}/state/{checkpoint_id}": NOTHING,
    "POST /threads/{thread_id}/state/checkpoint": [
        Ask({"checkpoint": {"checkpoint_id": "{checkpoint_id}", "checkpoint_ns": ""}})
    ],
    "GET /threads/{thread_id}/stream": NOTHING,
    "GET /threads/{thread_id}/runs/{run_id}/partial": NOTHING,
    "GET /me": NOTHING,
    # It names no object, and does not end. `test_thread_list.py` looks what it shows to whom.
    "GET /threads/stream": [],
    "GET /threads/find": [Ask(query="text=echo")],
    "PUT /store/items": [
        Ask({"namespace": names, "key": "note", "value": {"a": 1}}, creates=True)
        for names in (["notes"], ["acme", "ada", "notes"], ["acme"])
    ],
    "GET /store/items": [
        Ask(query=f"key=note&namespace={names}")
        for names in ("notes", "acme.ada.notes", "acme", "%25.%25.notes")
    ],
    "DELETE /store/items": [
        Ask({"namespace": names, "key": "note"})
        for names in (["notes"], ["acme", "ada", "notes"], ["acme"])
    ],
    "POST /store/items/search": [
        Ask({"namespace_prefix": names})
        for names in ([], ["notes"], ["acme"], ["acme", "ada"], ["%"], ["acm"], ["acme", "ad"])
    ],
    "POST /store/namespaces": [
        Ask(),
        *(Ask({"prefix": names}) for names in (["acme"], ["acme", "ada"], ["*", "*"], ["%"])),
        Ask({"suffix": ["notes"]}),
    ],
    "GET /mcp": NOTHING,
    "DELETE /mcp": NOTHING,
    "POST /mcp": [
        Ask({**CALL, "method": "tools/list", "params": {}}),
        Ask({**CALL, "method": "tools/call", "params": {"name": "adas", "arguments": {}}}),
    ],
    "GET /a2a/{assistant_id}": NOTHING,
    "GET /a2a/{assistant_id}/": NOTHING,
    "DELETE /a2a/{assistant_id}": NOTHING,
    "DELETE /a2a/{assistant_id}/": NOTHING,
    "POST /a2a/{assistant_id}": A2A,
    "POST /a2a/{assistant_id}/": A2A[:1],
    "GET /a2a/{assistant_id}/.well-known/agent-card.json": NOTHING,
    "GET /a2a/{assistant_id}/.well-known/agent.json": NOTHING,
    "GET /.well-known/agent-card.json": [Ask(query="assistant_id={assistant_id}")],
    "POST /threads/{thread_id}/stream/events": [Ask({"channels": ["values", "lifecycle"]})],
    "POST /threads/{thread_id}/commands": [
        Ask({"id": 1, "method": "run.start", "params": START}, creates=True),
        Ask({"id": 1, "method": "run.cancel", "params": {"run_id": "{run_id}"}}),
        Ask({"id": 1, "method": "agent.getTree", "params": {}}),
        Ask({"id": 1, "method": "state.get", "params": {}}),
    ],
    # Last: its runs work in the background.
    "POST /research": [
        Ask({"question": "What does Skarra cost?", "limits": {"fetches": 0}}, creates=True),
        Ask(
            {"question": "What is it?", "project_id": "{project_id}", "limits": {"fetches": 0}},
            creates=True,
        ),
        Ask({"question": ""}),
    ],
}

# Requests without a valid token: a prefix of the path, and headers.
OUTSIDERS: dict[str, tuple[str, dict[str, str]]] = {
    "no token": ("", {}),
    "expired": ("", bearer(token(exp=int(time.time()) - 10))),
    "empty authorization": ("", {"authorization": ""}),
    "studio": ("", {"x-auth-scheme": "langsmith", "x-api-key": "x", "x-tenant-id": "acme"}),
    "noauth": ("/noauth", {}),
    "prefix": (PREFIX, {}),
    "prefix, studio": (PREFIX, {"x-auth-scheme": "langsmith", "x-api-key": "x"}),
    "prefix, noauth": (f"{PREFIX}/noauth", {}),
    "ui": ("/ui", {}),
    "host": ("", {"host": "127.0.0.1", "x-forwarded-host": "localhost"}),
    "host with a path": ("", {"host": "localhost/ok?x="}),
}
STRANGERS = {
    "other tenant": ("globex", "ada"),
    "same tenant": ("acme", "bob"),
    "other administrator": ("globex", "root", "tenant_admin"),
}
# These strangers reach the app at its prefix.
ELSEWHERE = {"other administrator": PREFIX}


def stranger(who: str) -> dict[str, str]:
    """Return the headers of a stranger's requests."""
    tenant, user, *roles = STRANGERS[who]
    return {**ACCEPT, **bearer(token(tenant_id=tenant, sub=user, roles=roles))}


@dataclass(frozen=True)
class World:
    """A server, and Ada's objects there."""

    url: str
    database: Path
    routes: list[tuple[str, str]]
    ids: dict[str, str]
    first: set[tuple[str, ...]] = field(default_factory=set)

    def dump(self) -> set[tuple[str, ...]]:
        """Return every row of every table, each value as text."""
        return {
            (table, *row)
            for table, rows in databases.contents(self.database).items()
            for row in rows
        }


@pytest.fixture(scope="module")
def world(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with furnished(tmp_path_factory.mktemp("matrix")) as made:
        yield made


@contextmanager
def furnished(folder: Path, **more: str) -> Iterator[World]:
    """Serve the app with Ada's objects until the end of the block."""
    port = free_port()
    config = {
        "graphs": {
            "echo": f"{GRAPHS}/echo.py:graph",
            **{name: f"{ROOT}/my_agent/{name}/graph.py:graph" for name in OURS},
        },
        **{key: json.loads((ROOT / "langgraph.json").read_text())[key] for key in ("auth", "sql")},
    }
    (folder / "langgraph.json").write_text(json.dumps(config))
    script = str(ROOT / "tests/support/identity_host.py")
    line = [sys.executable, script, str(port), str(folder / "routes.json")]
    env = environment(
        APP_ENV="production",
        JWT_SECRET=SECRET,
        DATABASE_URL=databases.url(folder / "data.db"),
        **more,
    )
    with running(line, port, folder, env) as server:
        ids = furnish(server.url)
        score(databases.url(folder / "data.db"))
        routes = [
            (method, path) for method, path in json.loads((folder / "routes.json").read_text())
        ]
        made = World(server.url, folder / "data.db", routes, ids)
        made.first.update(made.dump())
        yield made


def furnish(url: str) -> dict[str, str]:
    """Create one object of each kind for Ada. Return their ids."""
    mark = {"metadata": {"mark": MARK}}
    with httpx.Client(base_url=url, headers=bearer(token()), timeout=60) as ada:

        def make(path: str, body: Any, method: str = "POST") -> Any:
            answer = ada.request(method, path, json=body)
            assert answer.is_success, answer.text
            return answer.json() if answer.content else None

        assistant = make("/assistants", {"graph_id": "echo", "name": "adas", "description": MARK})
        thread = make("/threads", mark)["thread_id"]
        run = {"assistant_id": "echo", "input": {"value": MARK}, **mark}
        make(f"/threads/{thread}/runs/wait", run)
        state = make(f"/threads/{thread}/state", None, "GET")
        [done] = make(f"/threads/{thread}/runs", None, "GET")
        make(f"/threads/{thread}/runs", {**run, "after_seconds": 86400})
        wanted = {"agent": "icp_finder", "website": "ada.example"}
        hunt = make("/threads/resolve", wanted)["thread_id"]
        lesson = make("/threads", {})["thread_id"]
        said = {"messages": [{"role": "user", "content": f"I has a {MARK}."}]}
        make(f"/threads/{lesson}/runs/wait", {"assistant_id": "tutor", "input": said})
        project = make("/threads", {})["thread_id"]
        # Without fetches it ends at once, with a report that found nothing.
        asked = {"question": f"What does {MARK} cost?", "limits": {"fetches": 0}}
        make(f"/threads/{project}/runs/wait", {"assistant_id": "research", "input": asked})
        incident = make("/threads", {})["thread_id"]
        seen = f"2026-03-02 09:40:00 ERROR [pay] no space left on device: {MARK}"
        said = {"messages": [{"role": "user", "content": seen}]}
        make(f"/threads/{incident}/runs/wait", {"assistant_id": "diagnosis", "input": said})
        # A name with braces in a path is the name of a file.
        source = make(f"/diagnosis/{incident}/sources/notes.md", {"mark": MARK}, "PUT")["source"][
            "id"
        ]
        cron = make(f"/threads/{thread}/runs/crons", {**CRON, **mark})
        make("/runs/crons", {**CRON, **mark})
        document = make("/api/documents/notes.md", {"mark": MARK}, "PUT")
        item = {"namespace": ["notes"], "key": "note", "value": {"mark": MARK}}
        make("/store/items", item, "PUT")
    return {
        "thread_id": thread,
        "hunt_id": hunt,
        "lesson_id": lesson,
        "project_id": project,
        "incident_id": incident,
        "source_id": source,
        "document_id": document["document_id"],
        "run_id": done["run_id"],
        "assistant_id": assistant["assistant_id"],
        "cron_id": cron["cron_id"],
        "checkpoint_id": state["checkpoint"]["checkpoint_id"],
        "namespace": "echo",
    }


def score(database_url: str, tenant: str = "acme", mark: str = MARK) -> None:
    """Store scores of a candidate for a tenant."""
    basis: Any = {"website": "ada.example", "customers": [], "icp": {}}
    found = Scored(Candidate(key="uen:1", name=mark, source="register"), Score(0.5, {}))
    with using(database_url):
        asyncio.run(store.save_discovery(tenant, "Default ICP", "h1", basis, [found]))


def nothing() -> dict[str, str]:
    """Return ids of objects that do not exist."""
    names: tuple[str, ...] = ("thread_id", "lesson_id", "project_id", "incident_id", "run_id")
    names += ("hunt_id", "assistant_id", "cron_id", "checkpoint_id", "document_id", "source_id")
    return {**{name: str(uuid4()) for name in names}, "namespace": "echo"}


def filled(value: Any, ids: dict[str, str]) -> Any:
    """Replace names in braces in `value` by ids."""
    text = json.dumps(value)
    for name, identifier in ids.items():
        text = text.replace("{" + name + "}", identifier)
    return json.loads(text)


def send(
    client: httpx.Client, row: str, ask: Ask, ids: dict[str, str], before: str = ""
) -> tuple[int, str]:
    """Send a request. Return the status and the body, with ids and times made equal."""
    method, path = row.split(" ", 1)
    if path.startswith("/tutor/"):
        # The tutor's routes serve its own threads only.
        ids = {**ids, "thread_id": ids["lesson_id"]}
    if path.startswith("/icp_finder/"):
        ids = {**ids, "thread_id": ids["hunt_id"]}
    if path.startswith("/diagnosis/"):
        ids = {**ids, "thread_id": ids["incident_id"]}
    url = before + filled(path, ids) + (f"?{filled(ask.query, ids)}" if ask.query else "")
    body = None if method in ("GET", "HEAD") else filled(ask.body, ids)
    answer = client.request(method, url, json=body)
    return answer.status_code, normalised(answer.text, ids)


def normalised(text: str, ids: dict[str, str]) -> str:
    for name, identifier in ids.items():
        if name != "namespace":
            text = text.replace(identifier, f"<{name}>")
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<id>", text)
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)?", "<time>", text)


def test_every_route_has_a_row_in_the_matrix(world: World) -> None:
    found = {
        f"{method} {path}"
        for method, path in world.routes
        if path not in PUBLIC and method not in ("HEAD", "WEBSOCKET")
    }
    assert found == set(ROWS)
    assert [path for method, path in world.routes if method == "WEBSOCKET"] == [
        "/threads/{thread_id}/stream/events"
    ]
    assert {path for _, path in world.routes if path in PUBLIC} == PUBLIC


@pytest.mark.parametrize("trick", OUTSIDERS)
def test_every_route_refuses_requests_without_a_valid_token(world: World, trick: str) -> None:
    before, headers = OUTSIDERS[trick]
    kept, wrong = world.dump(), []
    with httpx.Client(base_url=world.url, headers={**ACCEPT, **headers}, timeout=60) as client:
        for method, path in world.routes:
            if path in PUBLIC or method == "WEBSOCKET":
                continue
            row = f"{method} {path}"
            for ask, ids in product(ROWS.get(row) or NOTHING, (world.ids, nothing())):
                status, text = send(client, row, ask, ids, before)
                if status not in REFUSED or MARK in text:
                    wrong.append(f"{row}: {status} {text[:80]}")
                if status == 401 and method != "HEAD":
                    assert json.loads(text) == {"detail": "A valid bearer token is needed"}
    assert wrong == []
    assert world.dump() == kept


@pytest.mark.parametrize("trick", OUTSIDERS)
def test_web_socket_refuses_connections_without_a_valid_token(world: World, trick: str) -> None:
    before, headers = OUTSIDERS[trick]
    headers = {name: value for name, value in headers.items() if name != "host"}
    for ids in (world.ids, nothing()):
        path = f"{before}/threads/{ids['thread_id']}/stream/events"
        with (
            pytest.raises(InvalidStatus) as refused,
            connect(f"ws{world.url[4:]}{path}", additional_headers=headers),
        ):
            pass
        assert refused.value.response.status_code in REFUSED


CASES = [(row, ask) for row in ROWS for ask in ROWS[row]]


def may_create(who: str, row: str, ask: Ask) -> bool:
    """Return whether a stranger's request may change the database."""
    return ask.creates or is_shared(who, row)


def is_shared(who: str, row: str) -> bool:
    return who == "same tenant" and row in SHARED


@pytest.mark.parametrize("who", STRANGERS)
def test_foreign_object_is_answered_like_a_missing_one(world: World, who: str) -> None:
    before = world.dump()
    asked = [(row, ask) for row, ask in CASES if not may_create(who, row, ask)]
    assert wrong_answers(world, who, asked) == []
    after = world.dump()
    assert before ^ after == set()


@pytest.mark.parametrize("who", STRANGERS)
def test_stranger_creates_objects_beside_those_of_others(world: World, who: str) -> None:
    asked = [(row, ask) for row, ask in CASES if may_create(who, row, ask)]
    assert wrong_answers(world, who, asked) == []
    assert world.first - settled(world) == set(), "something of Ada's was changed or deleted"


def wrong_answers(world: World, who: str, asked: list[tuple[str, Ask]]) -> list[str]:
    """Send a stranger's requests. Return those that are not answered as for a missing object."""
    with httpx.Client(base_url=world.url, headers=stranger(who), timeout=60) as client:
        said = [
            (row, ask, _answered_as_if_absent(client, world, row, ask, who)) for row, ask in asked
        ]
    return [f"{row} {ask}: {wrong}" for row, ask, wrong in said if wrong is not None]


def settled(world: World) -> set[tuple[str, ...]]:
    """Return every row when no research project is active any more."""
    rows = world.dump()
    until = time.monotonic() + 60
    while (
        any(
            row[0] == "research_projects" and not {"'queued'", "'running'"}.isdisjoint(row)
            for row in rows
        )
        or rows != world.dump()
    ):
        assert time.monotonic() < until
        time.sleep(0.2)
        rows = world.dump()
    return rows


def _answered_as_if_absent(
    client: httpx.Client, world: World, row: str, ask: Ask, who: str
) -> str | None:
    """Request Ada's resource, then a missing one. Return the difference of the answers, or None."""
    before_path = ELSEWHERE.get(who, "")
    status, text = send(client, row, ask, world.ids, before_path)
    if is_shared(who, row) or (status == 409 and row in TAKEN):
        return None
    if MARK in text:
        return f"is told {text[:200]}"
    if status in REFUSED or NOT_FOUND in text:
        return None
    absent = send(client, row, ask, nothing(), before_path)
    # An object that a stranger creates has ids and times of its own.
    if status == absent[0] and (ask.creates or text == absent[1]):
        return None
    return f"{status} {text[:200]}, not {absent[0]} {absent[1][:200]}"


@pytest.mark.parametrize("who", STRANGERS)
def test_web_socket_of_a_foreign_thread_is_answered_like_a_missing_one(
    world: World, who: str
) -> None:
    headers = {"authorization": stranger(who)["authorization"]}
    kept = world.dump()
    told = []
    for ids in (world.ids, nothing()):
        url = f"ws{world.url[4:]}{ELSEWHERE.get(who, '')}/threads/{ids['thread_id']}/stream/events"
        told.append((normalised(listened(url, headers), ids), normalised(asked(url, headers), ids)))
    assert told[0] == told[1]
    assert MARK not in str(told[0])
    assert world.dump() == kept


def listened(url: str, headers: dict[str, str]) -> str:
    """Open a WebSocket and send nothing. Return its first message, or how it closes."""
    try:
        with connect(url, additional_headers=headers) as socket:
            return str(socket.recv(timeout=60))
    except (InvalidStatus, ConnectionClosed) as refused:
        return str(refused)


def asked(url: str, headers: dict[str, str]) -> str:
    """Send a command to a WebSocket. Return the answer, or how it closes.

    The server closes it, sometimes before it answers; then ask again.
    """
    command = json.dumps({"id": 1, "method": "agent.getTree", "params": {}})
    refusal = ""
    for _ in range(50):
        try:
            with connect(url, additional_headers=headers) as socket:
                socket.send(command)
                return str(socket.recv(timeout=60))
        except (InvalidStatus, ConnectionClosed) as refused:
            refusal = str(refused)
    return refusal


@dataclass(frozen=True)
class Published:
    """Servers of one database, and runs of Ada that have published events.

    Attributes:
        runs: Thread and run id of each, by the state of the run.
    """

    urls: list[str]
    runs: dict[str, tuple[str, str]]


@pytest.fixture(scope="module")
def published(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    """Start the servers. On Postgres these are two processes; the second one executes no runs."""
    folder, on_postgres = tmp_path_factory.mktemp("told"), each_database == "postgresql"
    gate = folder / "gate"
    config = {
        "graphs": {"steps": f"{GRAPHS}/steps.py:graph"},
        **{key: json.loads((ROOT / "langgraph.json").read_text())[key] for key in ("auth", "sql")},
    }
    (folder / "langgraph.json").write_text(json.dumps(config))
    with ExitStack() as stack:
        more = {"JWT_SECRET": SECRET, "DATABASE_URL": databases.url(folder / "data.db")}
        if on_postgres:
            more["REDIS_URL"] = stack.enter_context(started(tmp_path_factory.mktemp("valkey"))).url
        urls = []
        for jobs in ("4", "0") if on_postgres else ("4",):
            port, script = free_port(), str(ROOT / "tests/support/identity_host.py")
            # Beside the script there is a module called `redis`.
            line = [sys.executable, "-P", script, str(port), str(folder / f"routes-{port}.json")]
            env = environment(APP_ENV="production", N_JOBS_PER_WORKER=jobs, **more)
            urls.append(stack.enter_context(running(line, port, folder, env)).url)
        yield Published(urls, tell(urls[0], gate))
        gate.write_text("100")


def tell(url: str, gate: Path) -> dict[str, tuple[str, str]]:
    """Start runs of Ada that publish the mark. One of them runs until the gate exists."""
    body = {
        "assistant_id": "steps",
        "input": {"count": 2, "record": str(gate.parent / MARK)},
        "stream_mode": ["values"],
        "stream_resumable": True,
    }
    with httpx.Client(base_url=url, headers=bearer(token()), timeout=60) as ada:

        def make(path: str, **input: str) -> tuple[str, str]:
            made = ada.post(path, json={**body, "input": {**body["input"], **input}}).json()
            return made["thread_id"], made["run_id"]

        def thread() -> str:
            return str(ada.post("/threads", json={}).json()["thread_id"])

        runs = {
            kind: make(f"/threads/{thread()}/runs")
            for kind in ("ended", "deleted", "thread deleted")
        }
        runs["stateless"] = make("/runs")
        for thread_id, run_id in runs.values():
            # At its end the stream ends.
            with ada.stream("GET", f"/threads/{thread_id}/runs/{run_id}/stream") as events:
                events.read()
        assert ada.delete("/threads/{}/runs/{}".format(*runs["deleted"])).is_success
        assert ada.delete(f"/threads/{runs['thread deleted'][0]}").is_success
        runs["live"] = make(f"/threads/{thread()}/runs", gate=str(gate))
        path = "/threads/{}/runs/{}/stream".format(*runs["live"])
        with ada.stream("GET", path, headers={"last-event-id": "-1"}) as events:
            assert any(MARK in text for text in events.iter_lines())
    return runs


@pytest.mark.parametrize("kind", ["live", "ended", "stateless", "deleted", "thread deleted"])
@pytest.mark.parametrize("who", STRANGERS)
def test_stream_of_a_foreign_run_is_answered_like_a_missing_one(
    published: Published, who: str, kind: str
) -> None:
    thread_id, run_id = published.runs[kind]
    own_threads = []
    for url in published.urls:
        with httpx.Client(
            base_url=url + ELSEWHERE.get(who, ""), headers=stranger(who), timeout=60
        ) as client:
            own = client.post("/threads", json={}).json()["thread_id"]
            own_threads.append(own)
            for foreign, last, rest in product(
                (own, thread_id, str(uuid4())), ("", "-1", "1-0"), ("stream", "join")
            ):
                headers = {"last-event-id": last} if last else {}

                def asked(run: str, thread: str) -> tuple[int, str]:
                    path = f"/threads/{thread}/runs/{run}/{rest}"  # noqa: B023  # called at once
                    answer = client.get(path, headers=headers)  # noqa: B023
                    return answer.status_code, normalised(answer.text, {"run": run})

                found = asked(run_id, foreign)
                assert MARK not in found[1]
                missing = own if foreign == own else str(uuid4())
                assert found == asked(str(uuid4()), missing)
    if kind != "live":
        # The thread's own stream from its beginning, until it pauses. All wait at the same time.
        streams = [
            f"{url}{ELSEWHERE.get(who, '')}/threads/{path}/stream"
            for url, own in zip(published.urls, own_threads, strict=True)
            for path in (thread_id, own)
        ]
        with ThreadPoolExecutor(len(streams)) as pool:
            for shown in pool.map(partial(begun, stranger(who)), streams):
                assert MARK not in shown


def begun(headers: dict[str, str], url: str) -> str:
    """Return the replayed part of a stream, or its refusal."""
    parts = []
    asked = {**headers, "last-event-id": "-"}
    try:
        with httpx.stream("GET", url, headers=asked, timeout=0.5) as answer:
            parts.extend(answer.iter_text())
    except httpx.ReadTimeout:
        pass
    return "".join(parts)


def test_owner_can_follow_the_stream_of_an_ended_run(published: Published) -> None:
    """Without this, refusals of every request would pass the tests above."""
    path = "/threads/{}/runs/{}/stream".format(*published.runs["ended"])
    for url in published.urls:
        with httpx.Client(base_url=url, headers=bearer(token()), timeout=60) as ada:
            assert MARK in ada.get(path, headers={"last-event-id": "-1"}).text


def test_owner_can_read_every_object(world: World) -> None:
    """Without this, refusals of every request would pass all other tests here."""
    with httpx.Client(base_url=world.url, headers={**ACCEPT, **bearer(token())}) as ada:
        for row in ROWS:
            if row.startswith("GET ") and "{" in row and not row.startswith("GET /a2a"):
                status, text = (
                    send(ada, row, Ask(), world.ids) if "stream" not in row else (200, "")
                )
                assert status == 200, f"{row}: {text}"
        assert MARK in ada.get("/export/latest_scores.csv").text
        found = ada.post("/threads/search", json={"metadata": {"mark": MARK}}).json()
        assert [thread["thread_id"] for thread in found] == [world.ids["thread_id"]]
