"""Who may do what: what goes wrong elsewhere, and does not here."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from langgraph_sdk import Auth
from starlette.exceptions import HTTPException

from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.ops.assistants.assistants import (
    Assistants,
    retire_system_assistants,
    system_id,
)
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.threads.threads import Threads
from tests.support import runtime, served
from tests.support.operations import Handlers, owned, page, row, rows, user
from tests.support.processes import GRAPHS, Running

pytestmark = pytest.mark.usefixtures("each_database")

ANN, BOB = user("ann"), user("bob")

# Writes down who is asked about what; nobody may delete a thread.
POLICY = """
import json
import os

from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(headers):
    name = headers.get(b"x-user", b"").decode()
    if not name:
        raise Auth.exceptions.HTTPException(status_code=401, detail="Who are you?")
    return {"identity": name, "permissions": ["read"]}


@auth.on
async def owned(ctx, value):
    event = f"{ctx.resource}.{ctx.action}"
    with open(os.environ["POLICY_RECORD"], "a") as file:
        file.write(json.dumps([ctx.user.identity, event, str(value.get("thread_id"))]) + "\\n")
    if event == "threads.delete":
        raise Auth.exceptions.HTTPException(status_code=403, detail="Threads are kept")
    if ctx.resource == "assistants":
        return None
    if ctx.action in ("create", "create_run"):
        value["metadata"]["owner"] = ctx.user.identity
    return {"owner": ctx.user.identity}
"""


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("policy") / "asked"
    path.touch()
    return path


@pytest.fixture(scope="module")
def server(each_database: str, record: Path) -> Iterator[Running]:
    folder = record.parent
    (folder / "policy.py").write_text(POLICY)
    names = ("echo", "sleeper", "configured", "loopback")
    project = {
        "graphs": {name: f"{GRAPHS}/{name}.py:graph" for name in names},
        "auth": {"path": "./policy.py:auth"},
    }
    config = folder / "langgraph.json"
    config.write_text(json.dumps(project))
    with served.served(folder, config, POLICY_RECORD=str(record)) as started:
        yield started


@pytest.fixture(scope="module")
def settings() -> Iterator[None]:
    with runtime.serving("echo"):
        yield


@pytest.fixture
async def db(settings: None, tmp_path: Path) -> AsyncIterator[Database]:
    async with runtime.opened(tmp_path / "authorisation.db") as opened:
        await runtime.register(["echo"])
        yield opened


@pytest.fixture
def handlers(settings: None, monkeypatch: pytest.MonkeyPatch) -> Handlers:
    return Handlers().install(monkeypatch)


def _asked(record: Path, event: str, thread: str | None = None) -> list[str]:
    """Who was asked about `event`, in order."""
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    return [who for who, what, of in lines if what == event and thread in (None, of)]


async def _thread(ctx: Any, **metadata: Any) -> UUID:
    found = await row(Threads.put(None, uuid4(), metadata=metadata, if_exists="raise", ctx=ctx))
    thread: UUID = found["thread_id"]
    return thread


async def _run(thread: UUID | None, ctx: Any, assistant: UUID | None = None) -> list[Any]:
    return await rows(
        Runs.put(
            None,
            assistant or system_id("echo"),
            {"input": {}},
            thread_id=thread,
            metadata={},
            prevent_insert_if_inflight=False,
            ctx=ctx,
        )
    )


# --- what handlers change and return


async def test_what_a_handler_writes_into_metadata_is_stored_and_searched(
    server: Running,
) -> None:
    """The owner that a handler writes into a new thread's metadata is not stored."""
    async with served.client(server, **{"x-user": "ann"}) as ann:
        created = await ann.thread()
        made = str(uuid4())
        run = await ann.run(made, "echo", if_not_exists="create")
        assert await ann.ended(made, run) == "success"
        stateless = {"assistant_id": "echo", "input": {}, "on_completion": "keep"}
        kept = (await ann.post("/runs", stateless))["thread_id"]
        mine = await ann.post("/threads/search", {"metadata": {"owner": "ann"}})
        assert {each["thread_id"] for each in mine} >= {created, made, kept}
    async with served.client(server, **{"x-user": "bob"}) as bob:
        assert await bob.post("/threads/search", {}) == []
        for thread in (created, made, kept):
            assert (await bob.http.get(f"/threads/{thread}")).status_code == 404


async def test_a_copy_belongs_to_whoever_copies(db: Database, handlers: Handlers) -> None:
    """A copy keeps the owner of its source, and who made it cannot see it."""
    source = await _thread(None, owner="bob", shared=True)

    def shared(name: str, event: str, value: dict[str, Any]) -> Any:
        if event == "threads.read":
            return {"$or": [{"owner": name}, {"shared": True}]}
        return owned(name, event, value)

    handlers.policy = shared
    copied = await row(Threads.copy(None, source, ctx=ANN))
    assert copied["metadata"] == {"owner": "ann", "shared": True}
    asked: dict[str, Any] = {"metadata": {}, "values": None, "status": None, "limit": 9}
    found, _ = await page(Threads.search(None, **asked, offset=0, ctx=ANN))
    assert [each["thread_id"] for each in found] == [copied["thread_id"]]
    assert (await runtime.thread(source))["metadata"]["owner"] == "bob"


@pytest.mark.parametrize(
    "strange",
    [
        {"owner": {"$like": "a%"}},
        {"owner": {"$eq": "ann", "$ne": "bob"}},
        {"$not": [{"owner": "bob"}, {"owner": "carl"}]},
        {"$or": [{"owner": {"$like": "a%"}}, {"owner": "bob"}]},
    ],
)
async def test_a_filter_that_is_not_understood_lets_nobody_in(
    db: Database, handlers: Handlers, strange: dict[str, Any]
) -> None:
    """An operator that is not known, or not the first of several, matches everything."""
    thread = await _thread(None, owner="ann")
    handlers.policy = lambda name, event, value: strange
    operations: list[Callable[[], Any]] = [
        lambda: rows(Threads.get(None, thread, ctx=ANN)),
        lambda: page(
            Threads.search(None, metadata={}, values=None, status=None, limit=9, offset=0, ctx=ANN)
        ),
        lambda: Threads.count(None, ctx=ANN),
        lambda: rows(Threads.patch(None, thread, metadata={"x": 1}, ctx=ANN)),
        lambda: rows(Threads.delete(None, thread, ctx=ANN)),
        lambda: Threads.prune([thread], ctx=ANN),
        lambda: _run(thread, ANN),
    ]
    for operation in operations:
        with pytest.raises(HTTPException) as refused:
            await operation()
        assert refused.value.status_code == 500
    assert (await runtime.thread(thread))["metadata"] == {"owner": "ann"}


async def test_what_a_handler_does_to_the_thread_meanwhile_is_kept(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run writes back the thread as it was before its handler changed it."""
    thread = await _thread(None, kept=True)
    auth = Auth()

    @auth.on.threads.create_run
    async def patch(ctx: Any, value: Any) -> None:
        await rows(Threads.patch(None, thread, metadata={"patched": True}))

    monkeypatch.setattr("langgraph_api.auth.custom.get_auth_instance", lambda: auth)
    [run] = await _run(thread, ANN)
    found = await runtime.thread(thread)
    assert found["metadata"].items() >= {"kept": True, "patched": True, "graph_id": "echo"}.items()
    assert run["metadata"]["patched"] is True


async def test_calling_oneself_system_gives_an_assistant_no_privilege(
    db: Database, handlers: Handlers
) -> None:
    """Who writes `created_by: system` into an assistant opens it to all, or loses it at restart."""
    handlers.policy = owned
    mine = await row(
        Assistants.put(
            None,
            uuid4(),
            graph_id="echo",
            config={},
            context={},
            metadata={"created_by": "system"},
            if_exists="raise",
            name="mine",
            ctx=ANN,
        )
    )
    theirs = await _thread(BOB)
    assert await _run(theirs, BOB, mine["assistant_id"]) == []
    assert len(await _run(await _thread(ANN), ANN, mine["assistant_id"])) == 1
    await db.write(lambda conn: retire_system_assistants(conn, {str(system_id("echo"))}))
    again = await row(Assistants.get(None, mine["assistant_id"], ctx=ANN))
    assert again["metadata"]["created_by"] == "system"


async def test_a_missing_id_is_not_judged_by_another_row(db: Database, handlers: Handlers) -> None:
    """The filter for a thread that does not exist is tried on whichever thread came last."""
    handlers.policy = owned
    own = await _thread(ANN)
    for operation in (
        lambda: rows(Threads.delete(None, uuid4(), ctx=ANN)),
        lambda: rows(Threads.get(None, uuid4(), ctx=ANN)),
        lambda: Threads.prune([own, uuid4()], ctx=ANN),
    ):
        with pytest.raises(HTTPException) as refused:
            await operation()
        assert refused.value.status_code == 404
    assert await rows(Threads.patch(None, uuid4(), metadata={}, ctx=ANN)) == []
    assert await rows(Threads.copy(None, uuid4(), ctx=ANN)) == []
    assert await runtime.thread(own) is not None


# --- in whose name


async def test_a_stateless_run_takes_its_thread_whatever_its_users_handlers_say(
    server: Running, record: Path
) -> None:
    """The runtime cleans up in the name of the run's user, who may not delete threads."""
    before = len(_asked(record, "threads.delete"))
    async with served.client(server, **{"x-user": "carl"}) as carl:
        assert await carl.post("/threads/count", {}) == 0
        for _ in range(3):
            answer = await carl.post("/runs/wait", {"assistant_id": "echo", "input": {"value": 1}})
            assert answer["value"] == 1
        assert await carl.post("/threads/count", {}) == 0
        thread = await carl.thread()
        assert (await carl.http.delete(f"/threads/{thread}")).status_code == 403
    assert _asked(record, "threads.delete")[before:] == ["carl"]


async def test_a_client_inside_a_graph_acts_for_the_runs_user(
    server: Running, record: Path
) -> None:
    """What a graph asks of its own server is done for nobody, or refused."""
    before = len(_asked(record, "threads.create_run"))
    async with served.client(server, **{"x-user": "dora"}) as dora:
        body = {"assistant_id": "loopback", "input": {"value": "x"}}
        answer = await dora.post("/runs/wait", body)
    assert answer["answer"]["value"] == "x"
    assert _asked(record, "threads.create_run")[before:] == ["dora", "dora"]


async def test_nodes_know_whose_run_it_is(server: Running) -> None:
    """A run does not know its user."""
    async with served.client(server, **{"x-user": "emma"}) as emma:
        answer = await emma.post("/runs/wait", {"assistant_id": "configured", "input": {}})
    assert answer["seen"]["user"] == {"identity": "emma", "permissions": ["read"]}


async def test_handlers_are_not_asked_again_while_a_client_waits(
    server: Running, record: Path
) -> None:
    """Each client that follows a quiet run asks the handlers twice a second."""
    async with served.client(server, **{"x-user": "fred"}) as fred:
        thread = await fred.thread()
        run = await fred.run(thread, "sleeper", {"seconds": 3})
        before = len(_asked(record, "threads.read", thread))
        path = f"/threads/{thread}/runs/{run}/stream"
        async with asyncio.timeout(served.PATIENCE):
            await asyncio.gather(*(fred.events("GET", path) for _ in range(3)))
    assert len(_asked(record, "threads.read", thread)) - before <= 2 * 3
