"""`effects.once`: which calls are the same effect, and who may make them."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import RetryPolicy, Send
from sqlalchemy import select, update
from typing_extensions import TypedDict

from langgraph_runtime_sql import effects as library
from langgraph_runtime_sql import runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import effects as table
from langgraph_runtime_sql.database.schema import runs, thread_checkpoints
from langgraph_runtime_sql.errors import SupersededAttempt
from langgraph_runtime_sql.ops.assistants.rows import system_id
from tests.support import databases
from tests.support.http_server import QuietHandler, answering
from tests.support.processes import GRAPHS
from tests.support.runtime import ended, opened, register, serving, start_run, working
from tests.support.served import client, served
from threadhold import effects

pytestmark = pytest.mark.usefixtures("each_database")


class State(TypedDict, total=False):
    value: str


class Bank:
    """Counts payments.

    Attributes:
        paid: The ids of the effects, in the order of the calls.
    """

    def __init__(self) -> None:
        self.paid: list[str] = []

    async def pay(self, effect: str) -> int:
        self.paid.append(effect)
        return len(self.paid)


Node = Any
Play = Callable[..., Awaitable[str | None]]


@pytest.fixture
def bank() -> Bank:
    return Bank()


@pytest.fixture
async def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Play]:
    """Give a function that runs a graph, and returns the status of the run."""
    with serving():
        from langgraph_api import graph

        graph.SYSTEM_ASSISTANT_IDS.add(str(system_id("effects")))

        async def run(compiled: Any, input: Any = None, thread: Any = None, **body: Any) -> Any:
            monkeypatch.setitem(graph.GRAPHS, "effects", compiled)
            await register(["effects"])
            created = await start_run(thread or uuid.uuid4(), "effects", input, **body)
            return await ended(created["run_id"])

        async with opened(tmp_path / "effects.db"), working():
            yield run


def graph_of(node: Node, **options: Any) -> Any:
    return StateGraph(State).add_node("node", node, **options).add_edge(START, "node").compile()


async def test_key_used_twice_in_a_node_is_one_effect(play: Play, bank: Bank) -> None:
    async def node(state: State) -> State:
        results = [await effects.once(key, bank.pay) for key in ("a", "a", "b")]
        return {"value": str(results)}

    assert await play(graph_of(node), {}) == "success"
    assert len(bank.paid) == 2


async def test_parallel_use_of_a_key_pays_once(play: Play, bank: Bank) -> None:
    async def node(state: State) -> State:
        async def pay(effect: str) -> int:
            await asyncio.sleep(0)
            return await bank.pay(effect)

        await asyncio.gather(*(effects.once("a", pay) for _ in range(5)), return_exceptions=True)
        return {"value": str(await effects.once("a", bank.pay))}

    assert await play(graph_of(node), {}) == "success"
    assert len(bank.paid) == 1


async def test_equal_tool_calls_of_one_step_are_two_effects(play: Play, bank: Bank) -> None:
    @tool
    async def charge(amount: int, call: Annotated[str, InjectedToolCallId]) -> str:
        """Charge an amount."""
        return str(await effects.once(call, bank.pay))

    calls = [{"name": "charge", "args": {"amount": 5}, "id": each} for each in ("1", "2")]

    async def model(state: MessagesState) -> Any:
        return {"messages": [AIMessage("", tool_calls=calls)]}

    builder = StateGraph(MessagesState).add_node("model", model).add_node(ToolNode([charge]))
    graph = builder.add_edge(START, "model").add_edge("model", "tools").compile()
    assert await play(graph, {"messages": []}) == "success"
    assert len(set(bank.paid)) == 2


async def test_parallel_tasks_of_a_node_are_effects_of_their_own(play: Play, bank: Bank) -> None:
    async def node(state: State) -> None:
        await effects.once("a", bank.pay)

    builder = StateGraph(State).add_node("node", node)
    builder.add_conditional_edges(START, lambda _: [Send("node", {"value": "same"})] * 3, ["node"])
    assert await play(builder.compile(), {"value": "x"}) == "success"
    assert len(set(bank.paid)) == 3


async def test_retry_policy_repeats_no_effect(play: Play, bank: Bank) -> None:
    tries: list[str] = []

    async def node(state: State) -> None:
        await effects.once("a", bank.pay)
        tries.append("")
        if len(tries) < 3:
            raise ConnectionError

    policy = RetryPolicy(max_attempts=3, initial_interval=0.001, jitter=False)
    assert await play(graph_of(node, retry_policy=policy), {}) == "success"
    assert (len(tries), len(bank.paid)) == (3, 1)


@pytest.mark.parametrize("error", [ConnectionError, effects.NotDone])
async def test_retry_policy_repeats_only_what_certainly_did_not_happen(
    play: Play, bank: Bank, error: type[Exception]
) -> None:
    async def pay(effect: str) -> int:
        await bank.pay(effect)
        if len(bank.paid) < 3:
            raise error
        return 1

    async def node(state: State) -> None:
        await effects.once("a", pay)

    policy = RetryPolicy(max_attempts=3, initial_interval=0.001, jitter=False, retry_on=Exception)
    unknown = error is ConnectionError
    end = await play(graph_of(node, retry_policy=policy), {})
    assert (end, len(bank.paid)) == (("error", 1) if unknown else ("success", 3))


def with_child(inner: Node, calls: int, checkpointer: Any, after: Callable[[], None]) -> Any:
    """Return a graph whose node calls a subgraph, and then `after`."""
    child = StateGraph(State).add_node("one", inner).add_node("two", inner)
    compiled = child.add_edge(START, "one").add_edge("one", "two").compile(checkpointer)

    async def node(state: State) -> None:
        for _ in range(calls):
            await compiled.ainvoke({"value": ""})
        after()

    policy = RetryPolicy(max_attempts=3, initial_interval=0.001, jitter=False)
    return graph_of(node, retry_policy=policy)


@pytest.mark.parametrize("checkpointer", [None, True])
async def test_subgraph_that_begins_again_pays_once(
    play: Play, bank: Bank, checkpointer: Any
) -> None:
    """A failed run is continued by another, so the node calls its whole subgraph again."""
    fails = [True]

    async def inner(state: State) -> State:
        await effects.once("a", bank.pay)
        return {"value": "paid"}

    def fail() -> None:
        if fails:
            raise ValueError

    graph, thread = with_child(inner, 1, checkpointer, fail), uuid.uuid4()
    assert await play(graph, {}, thread) == "error"
    assert len(set(bank.paid)) == 2
    fails.clear()
    assert await play(graph, None, thread) == "success"
    assert len(bank.paid) == 2
    # Another turn of the conversation pays again.
    assert await play(graph, {}, thread) == "success"
    assert len(set(bank.paid)) == len(bank.paid) == 4


async def test_retry_policy_that_calls_a_subgraph_again_pays_nothing_twice(
    play: Play, bank: Bank
) -> None:
    tries: list[str] = []

    async def inner(state: State) -> State:
        await effects.once("a", bank.pay)
        return {"value": "paid"}

    def fail_once() -> None:
        tries.append("")
        if len(tries) == 1:
            raise ConnectionError

    graph, thread = with_child(inner, 1, None, fail_once), uuid.uuid4()
    # The retry cannot be told from a loop. The next run can.
    assert await play(graph, {}, thread) == "error"
    assert len(bank.paid) == 2
    assert await play(graph, None, thread) == "success"
    assert len(bank.paid) == 2


async def test_key_used_by_two_calls_of_a_subgraph_is_refused(play: Play, bank: Bank) -> None:
    errors: list[str] = []

    async def inner(state: State) -> State:
        try:
            await effects.once("a", bank.pay)
        except effects.KeyReused as error:
            errors.append(str(error))
        return {"value": "paid"}

    assert await play(with_child(inner, 2, None, lambda: None), {}) == "success"
    assert (len(bank.paid), len(errors)) == (2, 2)
    assert "another key" in errors[0]


async def test_loop_in_a_subgraph_needs_keys_of_its_own(play: Play, bank: Bank) -> None:
    keys = ["a", "a", "b"]

    async def turn(state: State) -> State:
        with nullcontext() if len(keys) != 2 else pytest.raises(effects.KeyReused):
            await effects.once(keys[0], bank.pay)
        del keys[0]
        return {"value": "turn"}

    child = StateGraph(State).add_node("turn", turn).add_edge(START, "turn")
    child.add_conditional_edges("turn", lambda _: "turn" if keys else "__end__")
    graph = StateGraph(State).add_node("child", child.compile()).add_edge(START, "child")
    assert await play(graph.compile(), {"value": ""}) == "success"
    assert len(bank.paid) == 2


async def test_subgraph_without_checkpoints_is_refused(
    play: Play, bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "CHECKPOINT_SECONDS", 0.2)

    async def inner(state: State) -> State:
        with pytest.raises(effects.NotInRun, match="needs stored checkpoints"):
            await effects.once("a", bank.pay)
        return {"value": "refused"}

    assert await play(with_child(inner, 1, False, lambda: None), {}) == "success"
    assert bank.paid == []


async def test_run_from_an_earlier_checkpoint_pays_again(play: Play, bank: Bank) -> None:
    """Time travel repeats what happened after the checkpoint; see the documentation."""

    async def node(state: State) -> State:
        return {"value": str(await effects.once("a", bank.pay))}

    graph, thread = graph_of(node), uuid.uuid4()
    assert await play(graph, {"value": ""}, thread) == "success"
    saved = thread_checkpoints.c.checkpoint_id
    query = select(saved).order_by(saved)
    found = await runtime.current().database.read(lambda conn: conn.fetchall(query))
    paid = []
    for each in (found[1], found[-1]):
        before = len(bank.paid)
        assert await play(graph, None, thread, checkpoint=each) == "success"
        paid.append(len(bank.paid) - before)
    # The second continues at the end, where nothing is left to do.
    assert paid == [1, 0]


async def supersede(by: int) -> None:
    """Change the number of the attempts, as a process that takes over the runs does."""
    change = update(runs).values(attempt=runs.c.attempt + by)
    await runtime.current().database.write(lambda conn: conn.execute(change))


async def test_superseded_attempt_starts_no_effect(play: Play, bank: Bank) -> None:
    async def node(state: State) -> None:
        # Now the checkpoint is stored.
        await effects.once("a", bank.pay)
        await supersede(1)
        with pytest.raises(SupersededAttempt):
            await effects.once("b", bank.pay)
        await supersede(-1)

    assert await play(graph_of(node), {}) == "success"
    assert len(bank.paid) == 1


async def test_late_result_of_a_superseded_attempt_is_stored(play: Play, bank: Bank) -> None:
    found: list[Any] = []

    async def pay(effect: str) -> int:
        await supersede(1)
        return await bank.pay(effect)

    async def node(state: State) -> None:
        await effects.once("a", pay)
        query = select(table.c.status)
        found.append(await runtime.current().database.read(lambda conn: conn.scalar(query)))
        await supersede(-1)

    assert await play(graph_of(node), {}) == "success"
    assert (found, len(bank.paid)) == (["done"], 1)


async def test_effect_under_way_cannot_be_resolved(play: Play, bank: Bank) -> None:
    resolved: list[bool] = []

    async def pay(effect: str) -> int:
        def resolve(conn: Connection) -> bool:
            return library.resolve(conn, uuid.UUID(effect), done=False)

        resolved.append(await runtime.current().database.write(resolve))
        return await bank.pay(effect)

    async def node(state: State) -> None:
        await effects.once("a", pay)

    assert await play(graph_of(node), {}) == "success"
    assert resolved == [False]


@contextmanager
def paid_at() -> Iterator[tuple[str, list[str]]]:
    """Give the address of a bank, and the ids of the effects that it gets."""
    paid: list[str] = []

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            paid.append(body["effect"])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"receipt {len(paid)}".encode())

    with answering(Handler) as url:
        yield url, paid


async def test_effects_of_one_tenant_are_out_of_reach_of_another(tmp_path: Path) -> None:
    """Same graph, nodes and keys; the thief names the other's thread and checkpoints everywhere."""
    config = {
        "graphs": {"payment": f"{GRAPHS}/payment.py:graph"},
        "auth": {"path": f"{GRAPHS}/tenant_auth.py:auth"},
        "sql": {"tenant_key": "org"},
    }
    (tmp_path / "langgraph.json").write_text(json.dumps(config))
    of = [{"x-user": "ada", "x-tenant": tenant} for tenant in ("acme", "globex")]
    with paid_at() as (url, paid), served(tmp_path, tmp_path / "langgraph.json") as server:
        async with client(server, **of[0]) as acme, client(server, **of[1]) as globex:
            theirs, own = await acme.thread(), await globex.thread()
            pay = {"assistant_id": "payment", "input": {"url": url}}
            receipts = await acme.post(f"/threads/{theirs}/runs/wait", pay)
            assert receipts["receipts"] == [f"receipt {n}" for n in (1, 2, 3)]
            states = await acme.post(f"/threads/{theirs}/history", {})
            for state in states:
                at = state["checkpoint"]
                for ns in ("", *(task["name"] + ":" + task["id"] for task in state["tasks"])):
                    stolen = {
                        "thread_id": theirs,
                        "checkpoint_id": at["checkpoint_id"],
                        "checkpoint_ns": ns,
                        "checkpoint_map": {"": at["checkpoint_id"]},
                    }
                    for more in ({"config": {"configurable": stolen}}, {"checkpoint": stolen}):
                        refused = await globex.http.post(
                            f"/threads/{theirs}/runs/wait", json={**pay, **more}
                        )
                        assert refused.status_code in (404, 422), refused.text
                        # On its own thread it pays itself, or not at all.
                        before = len(paid)
                        answer = await globex.http.post(
                            f"/threads/{own}/runs/wait", json={**pay, **more}
                        )
                        got = answer.json().get("receipts", []) if answer.is_success else []
                        assert not set(got) & set(receipts["receipts"]), answer.text
                        assert len(paid) - before in (0, 3)
            assert len(set(paid)) == len(paid) > 3
            # Acme's own repetition of its last step still finds its receipt.
            assert (await acme.get(f"/threads/{theirs}/state"))["values"] == receipts
    rows = databases.execute(
        tmp_path / "data.db", "SELECT effect_id, thread_id, tenant FROM effects"
    )
    assert {thread for _, thread, tenant in rows if tenant == "acme"} == {theirs}
    assert {thread for _, thread, tenant in rows if tenant == "globex"} == {own}
