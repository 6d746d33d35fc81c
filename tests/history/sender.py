"""The sender: requests of tenants to random servers, and what they receive."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import httpx

from tests.history import asks
from tests.history.asks import Request, request
from tests.history.canaries import Tenant, excerpts, marked
from tests.history.evidence import Received

# Seconds for which an answer is waited for.
PATIENCE = 10.0
THREAD, RUNS = "POST /threads", "POST /threads/{thread_id}/runs"

Answer = tuple[int, Any]
Action = Callable[[Tenant], Awaitable[Any]]


class Sender:
    """Requests of the tenants.

    Args:
        urls: URLs of the servers.

    Attributes:
        received: What tenants received: of each answer the excerpts with canaries.
        keyed: Requests with a key, and who sent them first.
    """

    def __init__(
        self, tenants: list[Tenant], urls: list[str], http: httpx.AsyncClient, seed: int
    ) -> None:
        self.tenants = tenants
        self.received: list[Received] = []
        self.keyed: list[tuple[Tenant, Request]] = []
        self.urls, self._http = urls, http
        self.rng = random.Random(seed)

    def any(self, tenants: list[Tenant]) -> Tenant:
        return self.rng.choice(tenants)

    def ids(self, of: Tenant) -> dict[str, str]:
        """Choose ids, half of the time of the tenant itself."""
        victim = of if self.rng.random() < 0.5 else self.any(self.tenants)
        return asks.any_ids(self.rng, victim, self.tenants)

    def run_of(self, of: Tenant, assistant_id: str, **asked: Any) -> dict[str, Any]:
        """Return the body of a run whose input has the canary."""
        schedule = {name: asked.pop(name) for name in ("schedule",) if name in asked}
        body = {"assistant_id": assistant_id, "input": asked.pop("input", asked), **schedule}
        if not schedule:
            body["multitask_strategy"] = "enqueue"
        return dict(asks.run_of(of, marked(body, of.canary)))

    async def send(
        self,
        of: Tenant,
        made: Request,
        *,
        seconds: float = PATIENCE,
        kind: str = "",
        operator: bool = False,
    ) -> Answer:
        """Send a request to any server; return the status and the answer's document, if any."""
        url = self.rng.choice(self.urls) + made.path
        headers = {**of.headers(operator=operator), **made.headers}
        kind = kind or ("idempotency keys" if "idempotency-key" in headers else made.kind)
        body = {"content": made.content} if made.content is not None else {"json": made.body}
        status, text = 0, ""
        try:
            async with (
                asyncio.timeout(seconds),
                self._http.stream(made.method, url, headers=headers, **body) as answer,
            ):
                status = answer.status_code
                text = "\n".join(f"{name}: {each}" for name, each in answer.headers.items()) + "\n"
                begin = len(text)
                async for part in answer.aiter_text():
                    text += part
        finally:
            self.note(of, f"{made.method} {made.path}", text, status, kind)
        if not answer.is_success or "json" not in answer.headers.get("content-type", ""):
            return status, None
        found = json.loads(text[begin:] or "null")
        of.learn(found)
        return status, found

    def note(self, of: Tenant, what: str, text: str, status: int, kind: str) -> None:
        self.received.append(Received(of.name, what, excerpts(text), status, kind))

    async def new_thread(self, of: Tenant) -> str:
        thread = str(uuid4())
        # An id of a deleted thread may be taken again, by any tenant.
        if self.rng.random() < 0.2 and (gone := self.any(self.tenants).ids["thread_id"]):
            thread = self.rng.choice(gone)
        await self.send(
            of, request(THREAD, marked({"thread_id": thread, "metadata": {}}, of.canary))
        )
        return thread

    async def own_thread(self, of: Tenant, run: Any) -> dict[str, str]:
        """Make a thread and run to its end or its question; return ids for more requests."""
        thread = str(uuid4())
        body = run | {"if_not_exists": "create", "stream_resumable": True}
        await self.send(of, request(f"{RUNS}/wait", body, thread_id=thread))
        return asks.any_ids(self.rng, of, [of]) | {"thread_id": thread}
