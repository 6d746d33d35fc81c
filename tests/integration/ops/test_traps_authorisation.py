"""Authorization faults of similar servers. Each docstring states the fault, each name what holds here."""

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

pytestmark = [pytest.mark.usefixtures("each_database"), pytest.mark.graphs("echo")]

ANN, BOB = user("ann"), user("bob")

# Records each call of a handler; no user may delete a thread.
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


@pytest.fixture
async def db(settings: None, tmp_path: Path) -> AsyncIterator[Database]:
    async with runtime.opened(tmp_path / "authorisation.db") as opened:
        await runtime.register(["echo"])
        yield opened


@pytest.fixture
def handlers(settings: None, monkeypatch: pytest.MonkeyPatch) -> Handlers:
    return Handlers().install(monkeypatch)


def _asked(record: Path, event: str, thread: str | None = None) -> list[str]:
    """Return the users for whom the handler was called with `event`, in order."""
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


async def test_metadata_written_by_a_thread_handler_is_stored_and_searched(
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


async def test_copied_thread_belongs_to_the_user_who_copied_it(
    db: Database, handlers: Handlers
) -> None:
    """A copy keeps the owner of its source, and the user who made it cannot see it."""
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
async def test_unknown_filter_operator_is_500_for_threads(
    db: Database, handlers: Handlers, strange: dict[str, Any]
) -> None:
    """An unknown operator, or a second one beside a known one, matches everything."""
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


async def test_thread_change_made_inside_a_handler_is_kept(
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


async def test_created_by_system_in_metadata_gives_an_assistant_no_privilege(
    db: Database, handlers: Handlers
) -> None:
    """`created_by: system` in metadata opens an assistant to all users, or a restart deletes it."""
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


async def test_missing_thread_is_404_whatever_other_threads_match(
    db: Database, handlers: Handlers
) -> None:
    """The filter for a missing thread is applied to the last thread that was read."""
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


# --- the user that a request acts for


async def test_stateless_run_deletes_its_thread_without_asking_handlers(
    server: Running, record: Path
) -> None:
    """The runtime deletes the thread as the run's user, and a handler refuses it."""
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


async def test_sdk_client_inside_a_graph_acts_for_the_user_of_the_run(
    server: Running, record: Path
) -> None:
    """A request of a graph to its own server has no user, or is refused."""
    before = len(_asked(record, "threads.create_run"))
    async with served.client(server, **{"x-user": "dora"}) as dora:
        body = {"assistant_id": "loopback", "input": {"value": "x"}}
        answer = await dora.post("/runs/wait", body)
    assert answer["answer"]["value"] == "x"
    assert _asked(record, "threads.create_run")[before:] == ["dora", "dora"]


async def test_nodes_see_the_user_of_their_run(server: Running) -> None:
    """The configuration of a run lacks its user."""
    async with served.client(server, **{"x-user": "emma"}) as emma:
        answer = await emma.post("/runs/wait", {"assistant_id": "configured", "input": {}})
    assert answer["seen"]["user"] == {"identity": "emma", "permissions": ["read"]}


async def test_handlers_are_not_called_again_while_a_client_waits(
    server: Running, record: Path
) -> None:
    """Each client that follows a silent run calls the handlers twice a second."""
    async with served.client(server, **{"x-user": "fred"}) as fred:
        thread = await fred.thread()
        run = await fred.run(thread, "sleeper", {"seconds": 3})
        before = len(_asked(record, "threads.read", thread))
        path = f"/threads/{thread}/runs/{run}/stream"
        async with asyncio.timeout(served.PATIENCE):
            await asyncio.gather(*(fred.events("GET", path) for _ in range(3)))
    assert len(_asked(record, "threads.read", thread)) - before <= 2 * 3
