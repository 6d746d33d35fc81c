"""The fuzzer: tenants store their canaries, and ask for each other's objects by every route."""

import contextlib
import time
from functools import partial
from typing import Any

import httpx

from tests.history import asks
from tests.history.asks import Request, request
from tests.history.canaries import Tenant
from tests.history.keys import REPEATABLE, Keys
from tests.history.sender import Action
from tests.history.stores import Stores
from tests.history.talks import Talks
from tests.integration.http.test_matrix import CRON


class Fuzzer(Stores, Keys, Talks):
    """Random actions of the tenants. The arguments are those of `Sender`."""

    def __init__(
        self, tenants: list[Tenant], urls: list[str], http: httpx.AsyncClient, seed: int
    ) -> None:
        super().__init__(tenants, urls, http, seed)
        self._actions: dict[Action, float] = {
            self._ask: 10,
            self._make: 2,
            self._keyed_run: 1,
            self._repeat: 3,
            self._recreate: 1,
            self._command: 2,
            self._protocols: 1,
            self._stream: 2,
            self._socket: 2,
            self._store_document: 0.5,
            self._use_products: 0.3,
            self._operate: 0.3,
        }

    async def begin(self, of: Tenant) -> None:
        """Do every action of a tenant once, so that each has something that others may look for."""
        cron: dict[str, Any] = {**CRON, "schedule": "* * * * *", "input": {"value": 1}}
        await self.send(of, request("POST /runs/crons", self.run_of(of, **cron)))
        for action in self._actions:
            await self._do(action, of)
        # Without these, it is left to chance whether a short history shows what belongs to a tenant.
        ids = await self.own_thread(of, self.run_of(of, "echo", value=1))
        await self._do(partial(self._read, made=self.v2_stream(of, ids)), of)
        await self._do(partial(self._talk, ids=ids), of)

    async def work(self, of: Tenant, until: float) -> None:
        """Do random actions of a tenant until a time of the monotonic clock."""
        actions, weights = list(self._actions), list(self._actions.values())
        while time.monotonic() < until:
            [action] = self.rng.choices(actions, weights)
            await self._do(action, of)

    async def _do(self, action: Action, of: Tenant) -> None:
        # A stream that is read for a limited time, or that the server ends, is no failure.
        with contextlib.suppress(httpx.TransportError, TimeoutError):
            await action(of)

    async def _ask(self, of: Tenant) -> None:
        """Send a request of any route with ids of any tenant, sometimes with a new key."""
        made = asks.any_request(self.rng, of, self.tenants)
        if made.method in asks.MAKES and self.rng.random() < 0.1:
            made = self.with_key(made)
            self.keyed = [*self.keyed[-REPEATABLE + 1 :], (of, made)]
        await self.send(of, made)

    async def _operate(self, of: Tenant) -> None:
        """Read the audit log and the figures as the operator of the tenant."""
        for path in ("/audit?limit=200", "/revocations", "/metrics"):
            made = Request(f"GET {path.partition('?')[0]}", path)
            await self.send(of, made, operator=True)
