"""Keys: creations with `Idempotency-Key`, repeated by their sender and by other tenants."""

import json
from dataclasses import replace
from uuid import uuid4

from tests.history.asks import Request, request
from tests.history.canaries import Tenant, marked
from tests.history.sender import RUNS, THREAD, Sender

# Number of requests that may be repeated.
REPEATABLE = 40


class Keys(Sender):
    """Tenants create with keys, and repeat their own creations and those of others."""

    async def _keyed_run(self, of: Tenant) -> None:
        """Create a thread and a run with keys, and bodies that name no tenant half of the time."""
        thread = str(uuid4())
        create = self.with_key(request(THREAD, {"thread_id": thread, "metadata": {}}))
        end = self.rng.choice(("", "/wait", "/stream"))
        where, value = self.rng.choice((THREAD, "")), self.rng.choice(("same", of.canary))
        run = {"assistant_id": "echo", "input": {"value": value}, "stream_resumable": True}
        row = f"{RUNS if where else 'POST /runs'}{end}"
        for each in (create, self.with_key(request(row, run, thread_id=thread))):
            self.keyed = [*self.keyed[-REPEATABLE + 1 :], (of, each)]
            await self.send(of, each)
        note = {"metadata": {"note": of.canary}}
        await self.send(of, request("PATCH /threads/{thread_id}", note, thread_id=thread))
        filled_in = request(f"{RUNS}/wait", self.run_of(of, "echo", value=1), thread_id=thread)
        await self.send(of, filled_in)

    def with_key(self, made: Request) -> Request:
        return replace(made, headers={**made.headers, "idempotency-key": str(uuid4())})

    async def _repeat(self, of: Tenant) -> None:
        """Repeat a request with its key: one's own, or that of another tenant."""
        if self.keyed:
            first, made = self.rng.choice(self.keyed)
            await self.send(of, _as_own(made, first, of))

    async def _recreate(self, of: Tenant) -> None:
        """Let another tenant take the ids of deleted objects, and repeat their creation."""
        other = self.any([each for each in self.tenants if each is not of])
        thread, end = str(uuid4()), self.rng.choice(("", "/wait", "/stream"))
        create = self.with_key(request(THREAD, {"thread_id": thread, "metadata": {}}))
        run = {"assistant_id": "echo", "input": {"value": of.canary}, "stream_resumable": True}
        start = self.with_key(request(f"{RUNS}{end}", run, thread_id=thread))
        delete = request("DELETE /threads/{thread_id}", thread_id=thread)
        for each in (create, start, delete):
            await self.send(of, each)
        taken = marked({"thread_id": thread, "metadata": {}}, other.canary)
        await self.send(other, request(THREAD, taken))
        used = request(f"{RUNS}/wait", self.run_of(other, "echo", value=1), thread_id=thread)
        await self.send(other, used)
        for who in (of, other):
            for each in (create, start):
                await self.send(who, _as_own(each, of, who))


def _as_own(made: Request, first: Tenant, of: Tenant) -> Request:
    """Return a request of another tenant with the canary of the sender. The key stays."""
    change = (first.canary, of.canary)
    content = None if made.content is None else made.content.replace(*change)
    body = json.loads(json.dumps(made.body).replace(*change).replace(first.webhook, of.webhook))
    return replace(made, path=made.path.replace(*change), body=body, content=content)
