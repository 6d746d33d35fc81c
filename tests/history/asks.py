"""Asks: random requests of every route, with ids of any tenant and the canary of the sender."""

import json
import random
import re
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from tests.history.canaries import Tenant, marked
from tests.integration.http.test_matrix import ACCEPT, MARK, ROWS, filled

# A document's name that all tenants use; the name of no other tenant's document may be sent.
SHARED = "shared.md"
MAKES = ("POST", "PUT", "PATCH")

# The objects that the routes of a product serve, as threads.
_PLACES = {"/tutor/": "lesson_id", "/icp_finder/": "hunt_id", "/diagnosis/": "incident_id"}
_RESOLVE = ("/threads/resolve", "/threads/{thread_id}/resume")
_PRODUCTS = ("/api/", "/tutor/", "/icp_finder/", "/diagnosis/", "/research", "/export/", *_RESOLVE)
_OPERATORS = ("/audit", "/metrics", "/revocations")
# The first kind whose pattern matches a route's path.
_KINDS = {
    "MCP": "/mcp",
    "A2A": "/a2a|/.well-known",
    "product routes": "|".join(map(re.escape, _PRODUCTS)),
    "operator routes": "|".join(_OPERATORS),
    "crons": ".*/crons",
    "store": "/store",
    "batch": ".*/batch$",
    "v2 commands": ".*/commands$",
    "v2 streams": ".*/stream/events$",
    "streams and waits": ".*/(stream|join|wait)$",
    "runs": ".*/runs",
    "assistants": "/assistants",
    "threads": "/threads",
}


@dataclass(frozen=True)
class Request:
    """A request.

    Attributes:
        row: Method and path of the route, with names in braces.
        path: The path with its query.
        body: As JSON.
        content: The body if it is no JSON.
    """

    row: str
    path: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    content: str | None = None

    @property
    def method(self) -> str:
        return self.row.partition(" ")[0]

    @property
    def kind(self) -> str:
        """The part of the API, for the summary."""
        path = self.row.partition(" ")[2]
        return next((kind for kind, like in _KINDS.items() if re.match(like, path)), "other")


def request(row: str, body: Any = None, **ids: str) -> Request:
    """Make a request of a route whose path names some ids."""
    return Request(row, filled(row.partition(" ")[2], ids), body)


def any_request(rng: random.Random, of: Tenant, tenants: list[Tenant]) -> Request:
    """Make a request of a random route with ids of a random tenant."""
    row = rng.choice(list(ROWS))
    ask, victim = rng.choice(ROWS[row]), rng.choice(tenants)
    ids = any_ids(rng, victim, tenants)
    path = row.partition(" ")[2]
    place = next((name for start, name in _PLACES.items() if path.startswith(start)), "thread_id")
    ids["thread_id"] = ids[place]
    ids |= {"name": rng.choice((SHARED, f"{of.canary}.md")), "mistake_id": str(rng.randint(1, 40))}
    path, query, body = (
        # The table asks for what belongs to the tenant acme.
        json.loads(
            json.dumps(filled(each, ids)).replace("acme", victim.name).replace(MARK, of.canary)
        )
        for each in (path, ask.query, ask.body)
    )
    accept = ACCEPT if row.endswith(("/mcp", "/a2a/{assistant_id}")) else rng.choice(({}, ACCEPT))
    made = Request(row, f"{path}?{query}" if query else path, headers=dict(accept))
    if made.method == "PUT" and "/documents/" in path:
        return replace(made, content=document(of))
    if made.method in ("GET", "HEAD"):
        return made
    return replace(made, body=run_of(of, marked(body, of.canary)))


def any_ids(rng: random.Random, victim: Tenant, tenants: list[Tenant]) -> dict[str, str]:
    """Choose an id of each kind, most of them of one tenant; some objects were never made."""
    names = ["thread_id", "assistant_id", "cron_id", "checkpoint_id", "document_id", "interrupt_id"]
    names += ["lesson_id", "hunt_id", "incident_id", "project_id"]
    found = {"namespace": "echo", "run_id": str(uuid4())}
    for name in names:
        owner = victim if rng.random() < 0.8 else rng.choice(tenants)
        found[name] = rng.choice(owner.ids[name] or [str(uuid4())])
    if victim.runs:
        thread, found["run_id"] = rng.choice(victim.runs)
        # A run under its own thread, or under another one.
        if rng.random() < 0.7:
            found["thread_id"] = thread
    return found


def run_of(of: Tenant, body: Any) -> Any:
    """Let the webhooks of new runs go to the sender."""
    if isinstance(body, list):
        return [run_of(of, each) for each in body]
    if isinstance(body, dict) and {"assistant_id", "input"} <= body.keys():
        return {**body, "webhook": of.webhook}
    return body


def document(of: Tenant) -> str:
    """Return a text document with the canary in its title and text."""
    return f"# About {of.canary}\n\nThe lighthouse has the secret name {of.canary}.\n"
