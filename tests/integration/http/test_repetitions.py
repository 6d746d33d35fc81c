"""Every route that takes a body: what a repetition with `Idempotency-Key` does, as documented.

The table in `docs/how-to/once.md` names each route. A route without a place there fails.
"""

import re
import secrets
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.integration.http.test_matrix import (
    ACCEPT,
    ROWS,
    RUN,
    World,
    filled,
    furnished,
    settled,
)
from tests.support.issuer import bearer, token
from tests.support.processes import ROOT
from threadhold.host import NO_IDEMPOTENCY_KEY

pytestmark = pytest.mark.usefixtures("each_database")

HEADING = "## Routes and their repetitions"
ONCE, REFUSED, SAME, READS = "first", "refused", "same", "reads"
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
OPERATOR = bearer(token(sub="op", tenant_id="ops", roles=["operator"]))


def documented() -> dict[str, str]:
    """Return what the documentation says about each route."""
    page = (ROOT / "docs/how-to/once.md").read_text()
    table = page.partition(HEADING)[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("|")][2:]
    return {
        route: kind
        for kind, row in zip((ONCE, REFUSED, SAME, READS), rows, strict=True)
        for route in re.findall(r"`([A-Z]+ /[^`]*)`", row)
    }


def of_kind(kind: str) -> list[str]:
    return [route for route, each in documented().items() if each == kind]


@dataclass(frozen=True)
class Sender:
    """Sends requests with a key, as Ada.

    Attributes:
        world: The server, and Ada's objects there.
        ids: More ids of her objects.
    """

    world: World
    http: httpx.Client
    ids: dict[str, str]

    def send(self, route: str, body: Any, key: str | None = None) -> httpx.Response:
        method, path = route.split(" ")
        own = {"tutor": "lesson_id", "icp_finder": "hunt_id", "diagnosis": "incident_id"}
        kind = own.get(path.split("/")[1], "thread_id")
        if path == "/threads/{thread_id}/resume":
            kind = "hunt_id"
        ids = {**self.world.ids, **self.ids, "thread_id": self.world.ids[kind]}
        headers = {"idempotency-key": key or secrets.token_hex(8)}
        if path.startswith("/revocations"):
            headers |= OPERATOR
        url, body = filled(path, ids), filled(body, ids)
        with self.http.stream(method, url, json=body, headers=headers) as answer:
            # The stream of a thread does not end.
            if not path.endswith("/stream/events"):
                answer.read()
            return answer

    def sizes(self) -> Counter[str]:
        """Return the number of rows of each table, when nothing runs any more."""
        counts = Counter(row[0] for row in settled(self.world))
        # The audit log has an entry for each request.
        return Counter({name: count for name, count in counts.items() if "audit" not in name})


@pytest.fixture(scope="module")
def ada(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sender]:
    headers = {**ACCEPT, **bearer(token())}
    with (
        furnished(tmp_path_factory.mktemp("keys"), JWT_OPERATOR_TENANTS="ops") as world,
        httpx.Client(base_url=world.url, headers=headers, timeout=60) as http,
    ):
        mistake = http.get("/tutor/exercises").json()["exercises"][0]["id"]
        # The one that waits for tomorrow.
        path = f"/threads/{world.ids['thread_id']}/runs"
        [run] = http.get(path, params={"status": "pending"}).json()
        more = {"mistake_id": mistake, "run_id": run["run_id"], "name": "notes.md"}
        yield Sender(world, http, more)


def test_every_route_that_takes_a_body_is_in_the_documented_table(ada: Sender) -> None:
    page = (ROOT / "docs/how-to/once.md").read_text().partition(HEADING)[2]
    writing = {f"{m} {p}" for m, p in ada.world.routes if m in ("POST", "PUT", "PATCH", "DELETE")}
    assert set(documented()) == writing
    assert [route for route in writing if page.count(f"`{route}`") != 1] == []


def test_keys_of_reads_and_of_routes_that_would_act_again_change_nothing(ada: Sender) -> None:
    before = ada.sizes()
    for route, kind in documented().items():
        for ask in ROWS[route] if kind in (REFUSED, READS) else ():
            answer = ada.send(route, ask.body)
            refused = answer.status_code == 422 and answer.json() == {"detail": NO_IDEMPOTENCY_KEY}
            assert refused == (kind == REFUSED), (route, answer.status_code)
    assert ada.sizes() == before


KEPT = {**RUN, "on_completion": "keep", "multitask_strategy": "enqueue"}
STARTS: dict[str, Any] = {
    "POST /threads": {},
    "POST /threads/{thread_id}/copy": None,
    "POST /threads/resolve": {"agent": "icp_finder", "website": "first.example"},
    "POST /threads/{thread_id}/resume": {},
    **{
        f"POST {at}/runs{end}": KEPT
        for at in ("", "/threads/{thread_id}")
        for end in ("", "/wait", "/stream")
    },
    "POST /api/ask": {"question": "Who are you?"},
    "POST /tutor/chat": {"message": "I has a dog."},
    "POST /diagnosis/{thread_id}/branch": {"at_seq": 1},
    "POST /research": {"question": "What does Skarra cost?", "limits": {"fetches": 0}},
}


def test_one_key_creates_one_thing_on_all_routes_together(ada: Sender) -> None:
    """A key that a client has used, or a thief has seen, gives no other route's answer."""
    key, routes = secrets.token_hex(8), of_kind(ONCE)
    first, *others = routes
    made = ada.send(first, STARTS[first], key)
    assert made.is_success, made.text
    before = ada.sizes()
    for route in others:
        refused = ada.send(route, STARTS[route], key)
        # Ada's hunt is open: it is answered as it is, and nothing is created.
        if route != "POST /threads/{thread_id}/resume":
            assert (refused.status_code, "Idempotency-Key" in refused.text) == (422, True), route
        # Nor does it show what the key has created.
        assert not set(_ID.findall(made.text)) & set(_ID.findall(refused.text)), route
    assert ada.sizes() == before


def test_repetition_of_a_creation_is_answered_with_the_first(ada: Sender) -> None:
    asked = {route: (STARTS[route], secrets.token_hex(8)) for route in of_kind(ONCE)}
    # The answer of the policy's routes also names what happened to other threads.
    first = {route: ada.send(route, *asked[route]) for route in asked}
    assert {route: a.text for route, a in first.items() if not a.is_success} == {}
    made = ada.sizes()
    again = {route: ada.send(route, *asked[route]) for route in asked}
    assert {route: a.text for route, a in again.items() if not a.is_success} == {}
    assert ada.sizes() == made
    for route in asked:
        assert about(again[route]) == about(first[route]), route


def about(answer: httpx.Response) -> str:
    """Return the id of the run that an answer is about, or of the first thread that it names."""
    if location := answer.headers.get("content-location"):
        return _ID.findall(location)[-1]
    named = answer.text.partition('_id":')[2]
    return _ID.findall(named)[0]


SETS: dict[str, Any] = {
    "POST /assistants/{assistant_id}/latest": {"version": 1},
    "POST /threads/prune": {"thread_ids": ["{thread_id}"], "strategy": "keep_latest"},
    "POST /revocations": {"tenant": "acme", "user": "eve"},
    "POST /revocations/lift": {"tenant": "acme", "user": "eve"},
    "PUT /store/items": {"namespace": ["notes"], "key": "k", "value": {"a": 1}},
    "PUT /diagnosis/{thread_id}/sources/{name}": {"text": "Skarra fails."},
    "PUT /api/documents/{name}": {"text": "Skarra costs 5 EUR."},
    "DELETE /store/items": {"namespace": ["notes"], "key": "k"},
}


REFUSE_TOO = ("/cancel", "/finish", "/pause", "/resume", "/feedback")


def test_repetition_of_a_change_adds_nothing(ada: Sender) -> None:
    # Deletions come last, and threads after their runs.
    routes = sorted(
        of_kind(SAME), key=lambda each: each.startswith("DELETE") and 9 - each.count("/")
    )
    for route in routes:
        body, key = SETS.get(route, ROWS[route][0].body), secrets.token_hex(8)
        first = ada.send(route, body, key)
        made = ada.sizes()
        again = ada.send(route, body, key)
        assert ada.sizes() == made, route
        if "/mcp" in route or "/a2a/" in route:
            continue
        # The project has ended, and the search has found nothing. What is deleted is not found again.
        assert first.is_success or route.endswith(REFUSE_TOO), (route, first.text)
        # What was created exists.
        assert again.status_code in (first.status_code, 200, 404), (route, again.text)
