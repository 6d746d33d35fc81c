"""The ledger: what a server acknowledged to its clients, and checks that it was kept."""

import asyncio
import json
import random
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import httpx

from tests.chaos.victim import PATIENCE, Victim, lines

STEPS = 4


@dataclass
class Steps:
    """A run of the graph `steps`.

    Attributes:
        record: The file that lists the executed steps.
        sync: Whether each step begins only after the previous one is stored. Otherwise a
            checkpoint is written while later steps run, and may be lost with them.
        thread: Its thread; empty for a stateless run.
    """

    record: Path
    sync: bool
    thread: str = ""

    def body(self) -> dict[str, Any]:
        """Return the body of the request for this run."""
        asked = {"count": STEPS, "delay": 0.02, "record": str(self.record)}
        durability = "sync" if self.sync else "async"
        return {"assistant_id": "steps", "input": asked, "durability": durability}


class Refused(AssertionError):
    """A running server gave an answer that it must not give."""


@dataclass
class Ledger:
    """What the clients asked for, and what was acknowledged.

    Attributes:
        asked: The newest value asked for, by kind and name: it may be stored.
        kept: The newest value acknowledged: it must be stored.
        runs: Acknowledged runs of `steps`, by their ids.
        cancelled: Acknowledged cancellations: run id to thread id.
        deleted: Acknowledged deletions of threads.
    """

    asked: dict[tuple[str, str], int] = field(default_factory=dict)
    kept: dict[tuple[str, str], int] = field(default_factory=dict)
    runs: dict[str, "Steps"] = field(default_factory=dict)
    cancelled: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    acknowledged: Counter[str] = field(default_factory=Counter)
    values: Iterator[int] = field(default_factory=count)


class Client:
    """A client that sends random requests until its server dies."""

    def __init__(
        self, number: int, http: httpx.AsyncClient, folder: Path, ledger: Ledger, rng: random.Random
    ) -> None:
        self.number, self.http, self.folder = number, http, folder
        self.ledger, self.rng = ledger, rng

    async def work(self) -> None:
        """Send requests until the connection breaks."""
        while True:
            action = self.rng.choice(ACTIONS)
            try:
                await action(self)
            except httpx.TransportError:
                return
            self.ledger.acknowledged[action.__name__] += 1

    async def post(self, path: str, body: Any, method: str = "POST") -> Any:
        answer = await self.http.request(method, path, json=body)
        if not answer.is_success:
            raise Refused(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json() if answer.content else None

    def ask(self, kind: str, name: str) -> int:
        self.ledger.asked[kind, name] = value = next(self.ledger.values)
        return value

    def keep(self, kind: str, name: str, value: int) -> None:
        self.ledger.kept[kind, name] = value

    async def thread(self) -> str:
        thread = str(uuid.uuid4())
        value = self.ask("thread", thread)
        await self.post("/threads", {"thread_id": thread, "metadata": {"value": value}})
        self.keep("thread", thread, value)
        return thread

    async def create_thread(self) -> None:
        await self.thread()

    async def delete_thread(self) -> None:
        thread = await self.thread()
        # From here on the thread may or may not be deleted.
        del self.ledger.kept["thread", thread]
        await self.post(f"/threads/{thread}", None, "DELETE")
        self.ledger.deleted.add(thread)

    async def update_state(self) -> None:
        thread = str(uuid.uuid5(uuid.NAMESPACE_URL, f"state {self.number}"))
        await self.post(
            "/threads",
            {"thread_id": thread, "if_exists": "do_nothing", "metadata": {"graph_id": "echo"}},
        )
        value = self.ask("state", thread)
        await self.post(f"/threads/{thread}/state", {"values": {"value": value}, "as_node": "echo"})
        self.keep("state", thread, value)

    async def put_item(self) -> None:
        key = f"{self.number}-{self.rng.randrange(3)}"
        value = self.ask("item", key)
        await self.post(
            "/store/items", {"namespace": ["chaos"], "key": key, "value": {"value": value}}, "PUT"
        )
        self.keep("item", key, value)

    async def create_cron(self) -> None:
        value = self.ask("cron", "")
        body = {"assistant_id": "echo", "schedule": "0 3 1 1 *", "metadata": {"value": value}}
        cron = await self.post("/runs/crons", body)
        self.keep("cron", cron["cron_id"], value)

    async def create_assistant(self) -> None:
        assistant = str(uuid.uuid4())
        value = self.ask("assistant", assistant)
        body = {"assistant_id": assistant, "graph_id": "echo", "metadata": {"value": value}}
        await self.post("/assistants", body)
        self.keep("assistant", assistant, value)

    def steps(self, thread: str = "") -> Steps:
        record = self.folder / f"record-{uuid.uuid4()}"
        # langgraph accepts `sync` only for runs with a thread.
        return Steps(record, bool(thread) and self.rng.random() < 0.5, thread)

    async def run_in_background(self) -> None:
        thread = await self.thread()
        for _ in range(self.rng.randint(1, 3)):
            steps = self.steps(thread)
            body = {**steps.body(), "multitask_strategy": "enqueue"}
            run = await self.post(f"/threads/{thread}/runs", body)
            self.ledger.runs[run["run_id"]] = steps

    async def run_and_wait(self) -> None:
        thread = await self.thread()
        steps = self.steps(thread)
        await self.post(f"/threads/{thread}/runs/wait", steps.body())
        [run] = (await self.http.get(f"/threads/{thread}/runs")).json()
        self.ledger.runs[run["run_id"]] = steps

    async def run_and_stream(self) -> None:
        thread = await self.thread()
        steps = self.steps(thread)
        path = f"/threads/{thread}/runs/stream"
        async with self.http.stream("POST", path, json=steps.body()) as answer:
            # The headers acknowledge the run and name it.
            run = answer.headers["content-location"].rpartition("/")[2]
            self.ledger.runs[run] = steps
            async for _ in answer.aiter_bytes():
                pass

    async def run_without_thread(self) -> None:
        steps = self.steps()
        run = await self.post("/runs", steps.body())
        self.ledger.runs[run["run_id"]] = steps

    async def run_later(self) -> None:
        thread = await self.thread()
        steps = self.steps(thread)
        run = await self.post(f"/threads/{thread}/runs", {**steps.body(), "after_seconds": 1})
        self.ledger.runs[run["run_id"]] = steps

    async def cancel(self) -> None:
        thread = await self.thread()
        body = {"assistant_id": "sleeper", "input": {"seconds": 3}}
        run = (await self.post(f"/threads/{thread}/runs", body))["run_id"]
        await asyncio.sleep(self.rng.choice([0, 0.02]))
        path = f"/threads/{thread}/runs/{run}"
        answer = await self.http.post(f"{path}/cancel", json={})
        if answer.is_success:
            self.ledger.cancelled[run] = thread
        elif (await self.http.get(path)).json()["status"] != "success":
            # Only a run that has ended meanwhile may be refused.
            raise Refused(f"{path}/cancel: {answer.status_code} {answer.text}")


# Every kind of request.
ACTIONS: list[Callable[[Client], Awaitable[None]]] = [
    Client.create_thread,
    Client.delete_thread,
    Client.update_state,
    Client.put_item,
    Client.create_cron,
    Client.create_assistant,
    Client.run_in_background,
    Client.run_and_wait,
    Client.run_and_stream,
    Client.run_without_thread,
    Client.run_later,
    Client.cancel,
]


def losses(victim: Victim, ledger: Ledger, cuts: int) -> list[str]:
    """Return what the server acknowledged and did not keep, once its runs have ended.

    Args:
        cuts: Number of times the server was killed.
    """
    lost = [
        f"{kind} {name}: acknowledged {value}, asked for {ledger.asked.get((kind, name))}, "
        f"found {found}"
        for (kind, name), value in ledger.kept.items()
        if (found := _found(victim, kind, name)) is None
        or not value <= found <= ledger.asked.get((kind, name), value)
    ]
    for thread in ledger.deleted:
        if victim.client.get(f"/threads/{thread}").status_code != 404:
            lost.append(f"thread {thread} was deleted and is back")
    given_up = exhausted(victim)
    for run, steps in ledger.runs.items():
        if run in given_up:
            continue
        lost += [f"run {run}: {what}" for what in _run_losses(victim, run, steps, cuts)]
    for run, thread in ledger.cancelled.items():
        if (status := victim.status(thread, run)) != "interrupted":
            lost.append(f"run {run} was cancelled and is {status}")
    return lost


def exhausted(victim: Victim) -> set[str]:
    """Return the runs that failed because their process was killed three times."""
    # Parse only these lines: a kill may have cut another line short.
    message = "Run exceeded max attempts"
    events = [json.loads(line) for line in victim.log().splitlines() if message in line]
    return {each["run_id"] for each in events if each["event"] == message}


def _found(victim: Victim, kind: str, name: str) -> int | None:
    """Return the value that the server has now."""
    path = {
        "thread": f"/threads/{name}",
        "state": f"/threads/{name}/state",
        "item": f"/store/items?namespace=chaos&key={name}",
        "assistant": f"/assistants/{name}",
    }
    if kind == "cron":
        [body] = victim.sql("SELECT metadata ->> 'value' FROM crons WHERE cron_id = ?", name) or [
            (None,)
        ]
        return None if body[0] is None else int(body[0])
    answer = victim.client.get(path[kind])
    if not answer.is_success:
        return None
    part = {"state": "values", "item": "value"}.get(kind, "metadata")
    return int(answer.json()[part]["value"])


def _run_losses(victim: Victim, run: str, asked: Steps, cuts: int) -> list[str]:
    found = []
    if asked.thread and (status := victim.status(asked.thread, run)) != "success":
        found.append(f"it is {status}")
    executed = [line.split() for line in lines(asked.record)]
    steps = [int(step) for _, step in executed]
    if sorted(set(steps)) != list(range(STEPS)):
        found.append(f"it took the steps {steps}")
    again = [(was, step) for was, step in pairwise(steps) if step <= was]
    if len(again) > cuts or (asked.sync and any(step < was for was, step in again)):
        found.append(f"it took steps again that had been kept (sync: {asked.sync}): {steps}")
    # Each attempt writes under its own id, so concurrent attempts would alternate.
    attempts = [attempt for attempt, _ in executed]
    changes = 1 + sum(a != b for a, b in pairwise(attempts))
    if attempts and changes != len(set(attempts)):
        found.append(f"attempts ran beside each other: {attempts}")
    return found


async def load(victim: Victim, ledger: Ledger, clients: int, rng: random.Random) -> None:
    """Run clients until the server is gone."""
    limits = httpx.Limits(max_connections=clients)
    async with (
        httpx.AsyncClient(base_url=victim.url, timeout=PATIENCE, limits=limits) as http,
        asyncio.TaskGroup() as group,
    ):
        for number in range(clients):
            client = Client(number, http, victim.folder, ledger, random.Random(rng.random()))
            group.create_task(client.work())
