"""Stores: what tenants store, with their canaries."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

from tests.history import asks
from tests.history.asks import request
from tests.history.canaries import Tenant
from tests.history.sender import RUNS, Sender
from tests.integration.http.test_matrix import ACCEPT, CRON

# Inputs of the products' graphs, and the name of their threads in paths.
PRODUCTS: dict[str, tuple[str, Any]] = {
    "lesson_id": ("tutor", {"messages": [{"role": "user", "content": "I has a"}]}),
    "project_id": ("research", {"question": "What costs", "limits": {"fetches": 0}}),
    "incident_id": (
        "diagnosis",
        {
            "messages": [
                {"role": "user", "content": "2026-03-02 09:40:00 ERROR [pay] no space left on"}
            ]
        },
    ),
    "hunt_id": ("icp_finder", {"messages": [{"role": "user", "content": "Our customer is"}]}),
}


class Stores(Sender):
    """Tenants store objects of every kind, and delete some."""

    async def _make(self, of: Tenant) -> None:
        """Store something with the canary, and perhaps delete an older object."""
        thread = await self.new_thread(of)
        messages = [{"role": "user", "content": "hello"}]
        echo = self.run_of(of, "echo", messages=messages, value=1)
        echo |= {"stream_mode": ["values", "messages", "updates"], "stream_resumable": True}
        runs = [
            echo,
            self.run_of(of, "sleeper", messages=messages, seconds=1.0),
            # Its error quotes the input, and the server logs the error.
            self.run_of(of, "failing", message="failed"),
            self.run_of(of, "interrupt", questions=[of.canary]),
        ]
        for run in self.rng.sample(runs, 3):
            await self.send(of, request(RUNS, run, thread_id=thread))
        await self.send(of, request("POST /runs/batch", runs[:2]))
        assistant = {
            "graph_id": "echo",
            "name": self.rng.choice((of.canary, "shared")),
            "description": of.canary,
            "metadata": {"note": of.canary},
        }
        await self.send(of, request("POST /assistants", assistant))
        await self.send(
            of, request("POST /runs/crons", self.run_of(of, **CRON, input={"value": 1}))
        )
        item = {"namespace": ["notes"], "key": "note", "value": {"mark": of.canary}}
        await self.send(of, request("PUT /store/items", item))
        await self.send(of, request("POST /store/items/search", {"namespace_prefix": []}))
        if self.rng.random() < 0.5:
            row = self.rng.choice(
                (
                    "DELETE /threads/{thread_id}",
                    "DELETE /threads/{thread_id}/runs/{run_id}",
                    "DELETE /assistants/{assistant_id}",
                    "DELETE /runs/crons/{cron_id}",
                )
            )
            await self.send(of, request(row, **asks.any_ids(self.rng, of, [of])))

    async def _use_products(self, of: Tenant) -> None:
        """Run the products' graphs, each on a thread of its own."""
        site = {"agent": "icp_finder", "website": f"{of.canary}.example"}
        _, hunt = await self.send(of, request("POST /threads/resolve", site))
        for name, (graph, asked) in PRODUCTS.items():
            thread = str(uuid4())
            if name == "hunt_id" and isinstance(hunt, dict) and "thread_id" in hunt:
                thread = hunt["thread_id"]
            run = self.run_of(of, graph, **asked) | {"if_not_exists": "create"}
            of.note(name, thread)
            await self.send(of, request(f"{RUNS}/wait", run, thread_id=thread), seconds=30)

    async def _store_document(self, of: Tenant) -> None:
        """Store a document, with a name that other tenants use too or not, and ask about it."""
        name = self.rng.choice((asks.SHARED, f"{of.canary}.md"))
        put = request("PUT /api/documents/{name}", name=name)
        await self.send(of, replace(put, content=asks.document(of)), seconds=30)
        await self.send(of, request("GET /api/documents"))
        body = {"question": "What is the secret name of the lighthouse?"}
        answer = replace(request("POST /api/ask", body), headers=self.rng.choice(({}, ACCEPT)))
        await self.send(of, answer, seconds=30)
