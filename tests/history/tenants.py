"""Tenants: a fuzzer that looks for bytes of one tenant in what another one receives.

Everything that a tenant stores carries its canary, a text that occurs nowhere else. Each tenant then
asks random servers for random ids of all tenants: of live, ended and deleted objects. The checker
searches all that was received.
"""

import asyncio
import contextlib
import json
import random
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import websockets

from tests.history.evidence import Evidence, Received
from tests.support.processes import GRAPHS, Running
from tests.support.served import served

TENANTS = ("ada", "bob", "eve", "zoe")
# Seconds for which a stream is read.
READING = 1.5
PATIENCE = 60.0
# Number of ids of each kind from which requests choose.
KEPT = 12

Ids = dict[str, list[str]]


@dataclass
class Tenant:
    """A tenant, its canary, and the ids of its objects by kind; deleted ones stay listed."""

    name: str
    canary: str
    ids: Ids = field(
        default_factory=lambda: {"thread": [], "run": [], "assistant": [], "cron": [], "item": []}
    )

    def note(self, kind: str, name: str) -> None:
        self.ids[kind] = [*self.ids[kind][-KEPT + 1 :], name]


class Fuzzer:
    """Requests of the tenants.

    Args:
        urls: URLs of the servers.
        webhook: URL that webhooks call; the tenant's name is appended.

    Attributes:
        received: All that tenants received.
    """

    def __init__(self, urls: list[str], webhook: str, http: httpx.AsyncClient, seed: int) -> None:
        self.tenants = [Tenant(name, f"canary-{secrets.token_hex(12)}") for name in TENANTS]
        self.received: list[Received] = []
        self._urls, self._webhook, self._http = urls, webhook, http
        self._rng = random.Random(seed)

    async def work(self, tenant: Tenant, until: float) -> None:
        """Do random actions of a tenant until a time of the monotonic clock."""
        await self._make(tenant)
        while time.monotonic() < until:
            action = self._rng.choice(
                (self._make, self._ask, self._ask, self._stream, self._socket)
            )
            # A stream that is read for a limited time, or that the server ends, is no failure.
            with contextlib.suppress(httpx.TransportError, TimeoutError):
                await action(tenant)

    # --- what a tenant stores

    async def _make(self, of: Tenant) -> None:
        """Store something with the canary, and perhaps delete an older object."""
        words = {"messages": [{"role": "user", "content": of.canary}], "value": of.canary}
        thread = str(uuid4())
        # An id of a deleted thread may be taken again, by any tenant.
        if self._rng.random() < 0.2 and (gone := self._rng.choice(self.tenants).ids["thread"]):
            thread = self._rng.choice(gone)
        metadata = {"note": of.canary}
        made = await self._send(of, "POST", "/threads", {"thread_id": thread, "metadata": metadata})
        if made.is_success:
            of.note("thread", thread)
        run = {
            "assistant_id": self._rng.choice(("echo", "steps")),
            "input": words,
            "metadata": metadata,
            "stream_mode": ["values", "messages", "updates"],
            "stream_resumable": True,
            "multitask_strategy": "enqueue",
            "webhook": f"{self._webhook}/{of.name}",
        }
        where = self._rng.choice((f"/threads/{thread}/runs", "/runs"))
        await self._send(of, "POST", where, run, kind="run")
        slow = {**run, "assistant_id": "sleeper", "input": {**words, "seconds": 3.0}}
        await self._send(of, "POST", f"/threads/{thread}/runs", slow, kind="run")
        # Its error quotes the input, and the server logs the error.
        failing = {**run, "assistant_id": "failing", "input": {"message": of.canary}}
        await self._send(of, "POST", where, failing, kind="run")
        assistant = {"graph_id": "echo", "name": of.canary, "metadata": metadata}
        await self._send(of, "POST", "/assistants", assistant, kind="assistant")
        cron = {"assistant_id": "echo", "schedule": "0 0 1 1 *", "input": words}
        await self._send(of, "POST", "/runs/crons", cron, kind="cron")
        key = str(uuid4())
        item = {"namespace": ["notes"], "key": key, "value": words}
        if (await self._send(of, "PUT", "/store/items", item)).is_success:
            of.note("item", key)
        kind = self._rng.choice(("thread", "run", "assistant", "cron"))
        if self._rng.random() < 0.5 and of.ids[kind]:
            name, inside = (
                self._rng.choice(of.ids[kind]),
                self._rng.choice(of.ids["thread"] or ["x"]),
            )
            await self._send(of, "DELETE", _path(kind, name, inside), None)

    # --- what a tenant asks for

    def _any(self, kind: str) -> str:
        found = [name for each in self.tenants for name in each.ids[kind]]
        return self._rng.choice(found or [str(uuid4())])

    async def _ask(self, of: Tenant) -> None:
        """Send a random request with ids of any tenant."""
        thread, run = self._any("thread"), self._any("run")
        assistant, cron, item = self._any("assistant"), self._any("cron"), self._any("item")
        other = self._rng.choice(self.tenants).name
        notes = {"metadata": {"touched": of.name}}
        method, path, body = self._rng.choice(
            [
                ("GET", f"/threads/{thread}", None),
                ("GET", f"/threads/{thread}/state", None),
                ("GET", f"/threads/{thread}/history", None),
                ("GET", f"/threads/{thread}/runs", None),
                ("GET", f"/threads/{thread}/runs/{run}", None),
                ("GET", f"/threads/{thread}/runs/{run}/join", None),
                ("POST", f"/threads/{thread}/runs/{run}/cancel", {}),
                ("PATCH", f"/threads/{thread}", notes),
                ("POST", f"/threads/{thread}/copy", {}),
                ("POST", f"/threads/{thread}/runs/wait", {"assistant_id": assistant, "input": {}}),
                ("POST", "/threads/search", {"limit": 100}),
                ("POST", "/threads/search", {"ids": [thread], "metadata": {}}),
                ("GET", f"/assistants/{assistant}", None),
                ("GET", f"/assistants/{assistant}/schemas", None),
                ("POST", f"/assistants/{assistant}/versions", {}),
                ("PATCH", f"/assistants/{assistant}", notes),
                ("POST", "/assistants/search", {"limit": 100}),
                ("POST", "/runs/wait", {"assistant_id": assistant, "input": {"value": "x"}}),
                ("GET", f"/runs/crons/{cron}", None),
                ("PATCH", f"/runs/crons/{cron}", {"enabled": False}),
                ("POST", "/runs/crons/search", {"limit": 100}),
                ("GET", f"/store/items?namespace=notes&key={item}", None),
                ("GET", f"/store/items?namespace={other}.notes&key={item}", None),
                ("POST", "/store/items/search", {"namespace_prefix": [], "limit": 100}),
                ("POST", "/store/items/search", {"namespace_prefix": [other], "limit": 100}),
                ("POST", "/store/namespaces", {"limit": 100}),
            ]
        )
        with contextlib.suppress(httpx.ReadTimeout):
            await self._send(of, method, path, body)

    async def _stream(self, of: Tenant) -> None:
        """Read a stream of any tenant's run or thread, from its begin or from now."""
        thread, run = self._any("thread"), self._any("run")
        own = self._rng.choice(of.ids["thread"] or [thread])
        method, path, body = self._rng.choice(
            [
                ("GET", f"/threads/{thread}/runs/{run}/stream", None),
                # A foreign run under a thread of one's own.
                ("GET", f"/threads/{own}/runs/{run}/stream", None),
                ("GET", f"/threads/{thread}/stream", None),
                ("POST", f"/threads/{thread}/stream/events", {"channels": ["values", "messages"]}),
            ]
        )
        headers = self._rng.choice([{}, {"last-event-id": "-1"}, {"last-event-id": "0-0"}])
        text, status = "", 0
        try:
            async with (
                asyncio.timeout(READING),
                self._http.stream(
                    method,
                    self._rng.choice(self._urls) + path,
                    json=body,
                    headers={"x-user": of.name, **headers},
                ) as answer,
            ):
                status = answer.status_code
                async for part in answer.aiter_text():
                    text += part
        finally:
            self._note(of, f"{method} {path} {headers or ''}", text, status)

    async def _socket(self, of: Tenant) -> None:
        """Subscribe to the events of any tenant's thread by WebSocket."""
        path = f"/threads/{self._any('thread')}/stream/events"
        url = self._rng.choice(self._urls).replace("http:", "ws:") + path
        text = ""
        try:
            async with (
                asyncio.timeout(READING),
                websockets.connect(url, additional_headers={"x-user": of.name}) as socket,
            ):
                command = {"id": 1, "method": "subscribe", "params": {"channels": ["values"]}}
                await socket.send(json.dumps(command))
                async for message in socket:
                    text += message if isinstance(message, str) else message.decode()
        except websockets.WebSocketException as error:
            text += str(error)
        finally:
            self._note(of, f"WEBSOCKET {path}", text, 0)

    async def _send(
        self, of: Tenant, method: str, path: str, body: Any, kind: str = ""
    ) -> httpx.Response:
        url = self._rng.choice(self._urls) + path
        answer = await self._http.request(method, url, json=body, headers={"x-user": of.name})
        headers = "\n".join(f"{name}: {value}" for name, value in answer.headers.items())
        self._note(of, f"{method} {path}", f"{headers}\n{answer.text}", answer.status_code)
        if kind and answer.is_success:
            of.note(kind, answer.json()[f"{kind}_id"])
        return answer

    def _note(self, of: Tenant, what: str, text: str, status: int) -> None:
        self.received.append(Received(of.name, what, text, status))


def _path(kind: str, name: str, thread: str) -> str:
    return {
        "thread": f"/threads/{name}",
        "run": f"/threads/{thread}/runs/{name}",
        "assistant": f"/assistants/{name}",
        "cron": f"/runs/crons/{name}",
    }[kind]


@contextmanager
def webhooks() -> Iterator[tuple[str, list[Received]]]:
    """Receive webhooks at `/{tenant}`; yield the URL and what arrived."""
    arrived: list[Received] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            arrived.append(Received(self.path.strip("/"), "webhook", body, 200))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://localhost:{server.server_address[1]}", arrived
        server.shutdown()
        thread.join()


async def fuzz(
    folder: Path, seed: int, seconds: float, *, redis_url: str | None = None, servers: int = 1
) -> Evidence:
    """Let four tenants ask for each other's objects; return what they received, and the logs.

    Args:
        folder: Folder of the database and the logs.
        seconds: Duration.
        redis_url: The Redis that several servers share.
    """
    with ExitStack() as stack:
        url, arrived = stack.enter_context(webhooks())
        config = json.loads((GRAPHS / "langgraph.auth.json").read_text())
        config["graphs"] = {
            name: f"{GRAPHS}/{name}.py:graph" for name in ("echo", "steps", "sleeper", "failing")
        }
        config["auth"]["path"] = f"{GRAPHS}/tenants.py:auth"
        config["sql"] = {"tenant_key": "owner"}
        config["webhooks"] = {"url": {"allowed_domains": ["localhost"]}}
        path = folder / "tenants.json"
        path.write_text(json.dumps(config))
        started: list[Running] = [
            stack.enter_context(
                served(folder, path, redis_url, ALLOW_PRIVATE_WEBHOOKS="true", LOG_LEVEL="DEBUG")
            )
            for _ in range(servers)
        ]
        async with httpx.AsyncClient(timeout=PATIENCE) as http:
            fuzzer = Fuzzer([each.url for each in started], url, http, seed)
            until = time.monotonic() + seconds
            async with asyncio.TaskGroup() as group:
                for tenant in fuzzer.tenants:
                    for _ in range(3):
                        group.create_task(fuzzer.work(tenant, until))
        logs = [Received("", str(each.log.name), each.log.read_text(), 0) for each in started]
    return Evidence(
        received=[*fuzzer.received, *arrived, *logs],
        canaries={each.name: each.canary for each in fuzzer.tenants},
    )
