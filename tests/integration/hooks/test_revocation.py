"""Streams, WebSockets and crons end with their token, and when token or user are revoked."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.support import databases
from tests.support.issuer import SECRET, bearer, token
from tests.support.processes import GRAPHS, Running, environment, ran, threadhold
from tests.support.served import PATIENCE, Api, client, served

ENV = {
    "APP_ENV": "production",
    "JWT_SECRET": SECRET,
    "JWT_OPERATOR_TENANTS": "ops",
    "CRON_SCHEDULER_SLEEP_TIME": "1",
}
OPERATOR = bearer(token(sub="op", tenant_id="ops", roles=["operator"]))
WAITING = {"assistant_id": "sleeper", "input": {"seconds": 120}}
REFUSED = {"detail": "A valid bearer token is needed"}


@pytest.fixture(scope="module")
def folder(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("revocation")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    config = {
        "graphs": {name: f"{GRAPHS}/{name}.py:graph" for name in ("echo", "sleeper")},
        "auth": {"path": "hooks.auth:auth"},
        "sql": {"tenant_key": "tenant_id"},
    }
    (folder / "langgraph.json").write_text(json.dumps(config))
    with served(folder, folder / "langgraph.json", None, **ENV) as started:
        yield started


@pytest.fixture
def user() -> str:
    """A user of its own for each test, because revocations stay."""
    return f"user-{uuid4().hex[:8]}"


@pytest.fixture
async def api(server: Running, user: str) -> AsyncIterator[Api]:
    async with client(server, **bearer(token(sub=user, jti=user))) as made:
        yield made


async def revoke(server: Running, path: str = "/revocations", **body: Any) -> Any:
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE) as http:
        answer = await http.post(path, json=body, headers=OPERATOR)
        assert answer.status_code == 200, answer.text
        return answer.json()


async def rest_of(api: Api, begun: asyncio.Event | None = None) -> str:
    """Return the text of a stream up to its end. Set `begun` when its answer begins."""
    async with (
        asyncio.timeout(PATIENCE),
        api.http.stream("POST", "/runs/stream", json=WAITING) as answer,
    ):
        if begun is not None:
            begun.set()
        return (await answer.aread()).decode()


# Seconds for which a token counts. The longer ones are for a machine that is too busy for the others.
LIFETIMES = (3, 15, 45)


async def test_stream_ends_with_its_token(server: Running, user: str) -> None:
    for seconds in LIFETIMES:
        expires = int(time.time()) + seconds
        async with client(server, **bearer(token(sub=user, exp=expires))) as api:
            text = await rest_of(api)
            if "event: metadata" in text:
                break
    # The token's time has whole seconds.
    assert time.time() > expires - 1
    assert '{"error":"SessionEnded","message":"The token has expired"}' in text
    async with client(server, **bearer(token(sub=user, exp=expires))) as api:
        assert (await api.http.post("/threads", json={})).status_code == 401


async def test_other_answers_end_with_their_token(server: Running, user: str) -> None:
    short = bearer(token(sub=user, exp=int(time.time()) + 3))
    async with client(server, **short) as api:
        try:
            answer = await api.http.post("/runs/wait", json=WAITING)
        except httpx.RemoteProtocolError:
            return  # The answer had begun, and stays incomplete.
        assert answer.status_code == 401, answer.text


def socket_of(server: Running, thread: str, sent: str) -> Any:
    url = f"ws{server.url[4:]}/threads/{thread}/stream/events"
    return connect(url, additional_headers=bearer(sent))


async def test_websocket_closes_with_its_token(server: Running, api: Api, user: str) -> None:
    thread = await api.thread()
    for seconds in LIFETIMES:
        short = token(sub=user, exp=int(time.time()) + seconds)
        with suppress(InvalidStatus):
            async with socket_of(server, thread, short) as socket, asyncio.timeout(PATIENCE):
                with pytest.raises(ConnectionClosed) as closed:
                    await socket.recv()
            break
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, "The token has expired")


@pytest.mark.parametrize("what", ["user", "token"])
async def test_revocation_ends_requests_streams_and_websockets(
    server: Running, api: Api, user: str, what: str
) -> None:
    other = bearer(token(sub=user, jti=f"{user}-2"))
    assert (await api.http.post("/threads", json={})).status_code == 200
    target = {"tenant": "acme", "user": user} if what == "user" else {"token_id": user}
    thread = await api.thread()
    async with socket_of(server, thread, token(sub=user, jti=user)) as socket:
        begun = asyncio.Event()
        stream = asyncio.create_task(rest_of(api, begun))
        await begun.wait()
        await revoke(server, **target, reason="test")
        assert "The token is revoked" in await stream
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(ConnectionClosed, match="The token is revoked"):
                await socket.send(json.dumps({"id": 1, "method": "state.get", "params": {}}))
                await socket.recv()
    refused = await api.http.post("/threads", json={})
    assert (refused.status_code, refused.json()) == (401, REFUSED)
    # A revoked token is one token, and a revoked user all tokens of that name in one tenant.
    expected = 401 if what == "user" else 200
    async with client(server, **other) as again:
        assert (await again.http.post("/threads", json={})).status_code == expected
    async with client(server, **bearer(token(sub=user, tenant_id="acm", jti="y"))) as namesake:
        assert (await namesake.http.post("/threads", json={})).status_code == 200
    await revoke(server, "/revocations/lift", **target)
    assert (await api.http.post("/threads", json={})).status_code == 200


@pytest.mark.parametrize("what", ["user", "token"])
async def test_crons_of_a_revoked_user_or_token_stop(
    server: Running, api: Api, user: str, what: str
) -> None:
    """A stolen token leaves no cron behind that acts as its user."""
    target = {"tenant": "acme", "user": user} if what == "user" else {"token_id": user}
    async with client(server, **bearer(token(sub=user, jti=f"{user}-2"))) as other:
        kept = await other.post("/runs/crons", {"assistant_id": "echo", "schedule": "0 0 1 1 *"})
    thread = await api.thread()
    cron = {"assistant_id": "echo", "schedule": "* * * * * *", "input": {"value": 1}}
    made = (await api.post(f"/threads/{thread}/runs/crons", cron))["cron_id"]
    async with asyncio.timeout(PATIENCE):
        while not await api.get(f"/threads/{thread}/runs"):
            await asyncio.sleep(0.1)
    # The owner may neither take the cron from the token nor give it to another one.
    moved = await api.http.patch(f"/runs/crons/{made}", json={"metadata": {"token_id": "x"}})
    assert (moved.status_code, "reserved" in moved.text) == (422, True), moved.text
    assert (await revoke(server, **target))["crons_disabled"] == (2 if what == "user" else 1)
    admin = bearer(token(sub="root", roles=["tenant_admin"]))
    async with client(server, **admin) as root:
        assert (await root.get(f"/runs/crons/{made}"))["enabled"] is False
        left = (await root.get(f"/runs/crons/{kept['cron_id']}"))["enabled"]
        assert left == (what == "token")
        # If an administrator enables it again, its runs are refused: it acts as revoked.
        before = await count(root, thread)
        enabled = await root.http.patch(f"/runs/crons/{made}", json={"enabled": True})
        assert enabled.status_code == 200, enabled.text
        await asyncio.sleep(3)
        assert await count(root, thread) == before
        await root.http.delete(f"/runs/crons/{made}")


async def count(api: Api, thread: str) -> int:
    return len(await api.get(f"/threads/{thread}/runs?limit=1000"))


async def test_command_revokes_beside_the_server(
    server: Running, folder: Path, api: Api, user: str
) -> None:
    begun = asyncio.Event()
    stream = asyncio.create_task(rest_of(api, begun))
    await begun.wait()
    url = databases.url(folder / "data.db")

    def command(*more: str) -> str:
        line = threadhold("revoke", "--database-url", url, "--tenant", "acme", "--user", user)
        done = ran([*line, *more], folder, environment(**ENV))
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert command("--for", "1h") == "revoked, 0 crons disabled\n"
    assert "The token is revoked" in await stream
    assert (await api.http.post("/threads", json={})).status_code == 401
    async with httpx.AsyncClient(base_url=server.url, headers=OPERATOR) as http:
        [shown] = [
            each for each in (await http.get("/revocations")).json() if each.get("user") == user
        ]
    assert shown["tenant"] == "acme"
    assert command("--lift") == "lifted\n"
    assert command("--lift") == "there is no such revocation\n"
    entered = databases.execute(
        folder / "data.db",
        "SELECT action, method FROM audit_entries WHERE object_kind = 'revocation'"
        f" AND detail LIKE '%{user}%' ORDER BY seq",
    )
    assert entered == [("create", "COMMAND"), ("lift", "COMMAND")]


async def test_websocket_of_a_revoked_user_is_refused(server: Running, api: Api, user: str) -> None:
    socket = socket_of(server, await api.thread(), token(sub=user))
    await revoke(server, tenant="acme", user=user)
    with pytest.raises(InvalidStatus, match=r"40[13]"):
        async with socket:
            pass


@pytest.mark.parametrize(
    "body", [{}, {"tenant": "acme"}, {"user": "a"}, {"token_id": "a", "user": "b"}], ids=str
)
async def test_incomplete_revocation_is_refused(server: Running, body: dict[str, str]) -> None:
    async with httpx.AsyncClient(base_url=server.url, headers=OPERATOR) as http:
        assert (await http.post("/revocations", json=body)).status_code == 422
