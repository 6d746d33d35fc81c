"""Clients: random requests of users, with every answer recorded."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx

from tests.history.exchange import PATIENCE, Refused, document, take, unanswered
from tests.history.recorder import Recorder
from tests.history.undone import ENDED

GRAPH = "witness"
# Number of threads that the clients share at a time, and number of uses of each before a new
# thread replaces it, because states grow.
SHARED = 6
USES = 40
# Seconds for which a piece of a thread's stream is read.
WATCHING = 3.0
# Maximum seconds between two requests of a client.
THINKING = 0.3

RESUMABLE = {"stream_mode": ["custom"], "stream_resumable": True}

Body = dict[str, Any] | None


@dataclass
class World:
    """The data that all clients share.

    Attributes:
        urls: URLs of the servers.
        recorder: Records every operation.
        record: The file in which runs record their steps.
        threads: The ids of the threads that all clients use now.
        resumable: The runs with resumable streams, and their threads.
        streamed: The runs whose streams were read to the end.
    """

    urls: Sequence[str]
    recorder: Recorder
    record: str
    threads: list[str] = field(default_factory=list)
    uses: dict[str, int] = field(default_factory=dict)
    resumable: dict[str, str] = field(default_factory=dict)
    streamed: set[str] = field(default_factory=set)
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Client:
    """One client.

    Args:
        number: Its number, from 1.
        http: An HTTP client without a base URL, because each request may go to any server.
    """

    def __init__(
        self, number: int, world: World, http: httpx.AsyncClient, rng: random.Random
    ) -> None:
        self.number = number
        self._world = world
        self._http = http
        self._rng = rng
        self._own: list[str] = []
        # (thread, key) of metadata entries, and (None, key) of items.
        self._written: list[tuple[str | None, str]] = []
        self._values = 0

    async def work(self) -> None:
        """Do random actions until the history is over."""
        actions = {
            self.enqueue: 8,
            self.follow: 4,
            self.stream: 4,
            self.watch: 3,
            self.wait: 3,
            self.join: 2,
            self.wait_without_thread: 2,
            self.replace: 2,
            self.reject: 1,
            self.cancel: 3,
            self.put_item: 4,
            self.patch: 4,
            self.look: 4,
            self.update_state: 4,
            self.delete_thread: 1,
        }
        while not self._world.over.is_set():
            [action] = self._rng.choices(list(actions), list(actions.values()))
            try:
                await action()
            except Refused:
                continue
            finally:
                await asyncio.sleep(self._rng.uniform(0, THINKING))

    # --- runs

    async def enqueue(self) -> tuple[str, str]:
        """Queue a run on a thread; return both ids."""
        return await self._run(await self._thread(), "enqueue")

    async def replace(self) -> None:
        """Create a run that interrupts or rolls back the runs before it."""
        await self._run(await self._thread(), self._rng.choice(["interrupt", "rollback"]))

    async def reject(self) -> None:
        """Create a run that is rejected on a busy thread."""
        await self._run(await self._thread(), "reject")

    async def cancel(self) -> None:
        """Queue a run and cancel it, before or during its execution."""
        thread, run = await self._run(await self._thread(), "enqueue")
        await asyncio.sleep(self._rng.uniform(0, 1))
        action = self._rng.choice(["interrupt", "interrupt", "rollback"])
        path = f"/threads/{thread}/runs/{run}/cancel?action={action}"
        await self._ask("cancel", "POST", path, {}, thread=thread, run=run, action=action)

    async def wait(self) -> None:
        """Queue a run and wait for its result."""
        thread = await self._thread()
        body = self._body("enqueue")
        path = f"/threads/{thread}/runs/wait"
        await self._ask("wait", "POST", path, body, thread=thread, **_about(body))

    async def wait_without_thread(self) -> None:
        """Start a stateless run and wait for its result."""
        body = self._body(None)
        await self._ask("wait", "POST", "/runs/wait", body, thread=None, **_about(body))

    async def join(self) -> None:
        """Queue a run, and wait for its result at another server."""
        thread = await self._thread()
        body = self._body("enqueue")
        path = f"/threads/{thread}/runs"
        about = {"thread": thread, **_about(body)}
        run = (await self._ask("run", "POST", path, body, **about))["run_id"]
        await self._ask("join", "GET", f"{path}/{run}/join", None, run=run, **about)

    async def _run(self, thread: str, strategy: str) -> tuple[str, str]:
        body = self._body(strategy) | RESUMABLE
        path = f"/threads/{thread}/runs"
        answer = await self._ask("run", "POST", path, body, thread=thread, **_about(body))
        run = str(answer["run_id"])
        self._world.resumable[run] = thread
        return thread, run

    def _body(self, strategy: str | None) -> dict[str, Any]:
        asked = {
            "count": self._rng.randint(1, 5),
            "delay": self._rng.choice([0.0, 0.05, 0.2, 0.4]),
            "record": self._world.record,
        }
        body: dict[str, Any] = {
            "assistant_id": GRAPH,
            "input": asked,
            "metadata": {"tag": str(uuid4())},
        }
        if strategy is not None:
            body |= {
                "multitask_strategy": strategy,
                "durability": self._rng.choice(["sync", "async", "exit"]),
            }
        return body

    # --- streams

    async def follow(self) -> None:
        """Queue a run and read its stream to the end, in pieces from different servers."""
        thread, run = await self.enqueue()
        await self._read_rest(thread, run, "-1", self._process())

    async def stream(self) -> None:
        """Queue a run with its stream, and continue at another server where it breaks off."""
        thread, process = await self._thread(), self._process()
        body = self._body("enqueue") | RESUMABLE | {"on_disconnect": "continue"}
        url = f"{self._world.urls[process]}/threads/{thread}/runs/stream"
        async with AsyncExitStack() as stack:
            with self._record("run", process, thread=thread, **_about(body)) as made:
                with unanswered(made):
                    answer = await stack.enter_async_context(
                        self._http.stream("POST", url, json=body)
                    )
                if not answer.is_success:
                    await answer.aread()
                run = str(document("run", answer, made))
                self._world.resumable[run] = thread
            with self._record("stream", process, thread=thread, run=run, after="-1") as pending:
                last, _ = await take(answer, pending, "-1", self._rng.randint(1, 6))
        await self._read_rest(thread, run, last, self._other(process))

    async def _read_rest(self, thread: str, run: str, last: str, process: int) -> None:
        """Read the rest of a stream in pieces from different servers."""
        while True:
            limit = self._rng.randint(1, 6)
            last, ended = await self._piece(thread, run, last, process, limit)
            if ended:
                self._world.streamed.add(run)
                return
            process = self._other(process)
            await asyncio.sleep(0.05)

    async def watch(self) -> None:
        """Follow a thread for a while, in pieces from different servers."""
        thread, process, session = await self._thread(), self._process(), str(uuid4())
        headers: dict[str, str] = {}
        for _ in range(self._rng.randint(2, 5)):
            # All events, so that their numbers have no gap.
            modes = "stream_modes=run_modes,state_update"
            url = f"{self._world.urls[process]}/threads/{thread}/stream?{modes}"
            after, limit = headers.get("Last-Event-ID", ""), self._rng.randint(1, 15)
            with (
                self._record(
                    "watch", process, thread=thread, session=session, after=after
                ) as pending,
                unanswered(pending),
            ):
                async with self._http.stream("GET", url, headers=headers) as answer:
                    if not answer.is_success:
                        await answer.aread()
                        document("watch", answer, pending)
                    after, ended = await take(answer, pending, after, limit, seconds=WATCHING)
            if ended and any(name == "error" for _, name, _ in pending.answer["events"]):
                return
            if after:
                headers = {"Last-Event-ID": after}
            process = self._other(process)

    async def read_whole(self, thread: str, run: str, process: int) -> None:
        """Read the whole stream of an ended run at one server."""
        await self._piece(thread, run, "-1", process, None)

    async def _piece(
        self, thread: str, run: str, after: str, process: int, limit: int | None
    ) -> tuple[str, bool]:
        """Read up to `limit` events; return the last id, and whether no more events come."""
        headers = {"Last-Event-ID": after}
        url = f"{self._world.urls[process]}/threads/{thread}/runs/{run}/stream"
        closed = False
        with self._record("stream", process, thread=thread, run=run, after=after) as pending:
            try:
                async with self._http.stream("GET", url, headers=headers) as answer:
                    if not answer.is_success:
                        await answer.aread()
                        pending.fail(status=answer.status_code, text=answer.text[:300])
                        return after, answer.status_code == 404
                    after, closed = await take(answer, pending, after, limit)
            except httpx.TransportError as error:
                pending.info(error=repr(error), hung=isinstance(error, httpx.ReadTimeout))
        return after, closed and await self._has_ended(thread, run, process)

    async def _has_ended(self, thread: str, run: str, process: int) -> bool:
        """Return whether the run has ended, because a stream also ends with its server."""
        url = f"{self._world.urls[process]}/threads/{thread}/runs/{run}"
        try:
            answer = await self._http.get(url)
        except httpx.TransportError:
            return False
        if answer.status_code == 404:
            return True
        return answer.is_success and answer.json()["status"] in ENDED

    # --- threads, states and items

    async def put_item(self) -> None:
        """Write an item that only this client writes."""
        value, key = self._value(), f"{self.number}-{self._rng.randrange(5)}"
        body = {"namespace": ["history"], "key": key, "value": {"value": value}}
        await self._ask("item", "PUT", "/store/items", body, thread=None, key=key, value=value)
        self._written.append((None, key))

    async def patch(self) -> None:
        """Write an entry of a thread's metadata that only this client writes."""
        thread, value = await self._thread(), self._value()
        key = f"client_{self.number}"
        body = {"metadata": {key: value}}
        path = f"/threads/{thread}"
        await self._ask("patch", "PATCH", path, body, thread=thread, key=key, value=value)
        self._written.append((thread, key))

    async def look(self) -> None:
        """Read an item or entry that this client wrote, at any server."""
        if not self._written:
            return
        thread, key = self._rng.choice(self._written)
        path = f"/threads/{thread}" if thread else f"/store/items?namespace=history&key={key}"
        await self._ask("look", "GET", path, None, thread=thread, key=key)

    async def update_state(self) -> None:
        """Append to the state of a shared thread, or of one that only this client uses."""
        shared = self._rng.random() < 0.3
        thread = await (self._thread() if shared else self._own_thread())
        entry = f"{uuid4()}:update"
        body = {"values": {"log": [entry]}, "as_node": "step"}
        path = f"/threads/{thread}/state"
        await self._ask("state", "POST", path, body, thread=thread, entry=entry)

    async def delete_thread(self) -> None:
        """Create a thread, perhaps run on it, and delete it."""
        thread = await self._new_thread()
        if self._rng.random() < 0.5:
            await self._run(thread, "enqueue")
        await self._ask("delete", "DELETE", f"/threads/{thread}", None, thread=thread)

    async def _thread(self) -> str:
        """Return a shared thread; a new thread replaces one that was used often enough."""
        threads, uses = self._world.threads, self._world.uses
        if len(threads) < SHARED:
            threads.append(await self._new_thread())
        thread = self._rng.choice(threads)
        uses[thread] = uses.get(thread, 0) + 1
        if uses[thread] == USES:
            threads.remove(thread)
        return thread

    async def _own_thread(self) -> str:
        if not self._own or self._rng.random() < 0.1:
            self._own.append(await self._new_thread())
        return self._own[-1]

    async def _new_thread(self) -> str:
        thread = str(uuid4())
        body = {"thread_id": thread, "metadata": {"graph_id": GRAPH}}
        await self._ask("thread", "POST", "/threads", body, thread=thread)
        return thread

    # --- requests

    def _value(self) -> int:
        self._values += 1
        return self._values

    def _process(self) -> int:
        return self._rng.randrange(len(self._world.urls))

    def _other(self, process: int) -> int:
        return (process + self._rng.randint(1, len(self._world.urls) - 1)) % len(self._world.urls)

    def _record(self, kind: str, process: int, **asked: Any) -> Any:
        return self._world.recorder.operation(kind, self.number, process, **asked)

    async def _ask(self, kind: str, method: str, path: str, body: Body, **asked: Any) -> Any:
        """Send a request to any server and return the answer's document.

        Raises:
            Refused: there is no document.
        """
        process = self._process()
        with self._record(kind, process, **asked) as pending:
            with unanswered(pending):
                async with asyncio.timeout(PATIENCE):
                    url = self._world.urls[process] + path
                    answer = await self._http.request(method, url, json=body)
            return document(kind, answer, pending)


def _about(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "tag": body["metadata"]["tag"],
        "count": body["input"]["count"],
        "strategy": body.get("multitask_strategy"),
        "durability": body.get("durability"),
        "resumable": body.get("stream_resumable", False),
    }
