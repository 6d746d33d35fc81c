"""Look-ups of names: those of one tenant delay neither another tenant nor a node."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from langgraph_runtime_sql import process
from langgraph_runtime_sql.options import Options
from langgraph_runtime_sql.queue import name_lookups
from langgraph_runtime_sql.queue.name_lookups import NameLookups
from langgraph_runtime_sql.queue.node_threads import NodeThreads
from langgraph_runtime_sql.tenancy import scope

# Seconds; far more than any step needs.
PATIENCE = 30.0
# Of a look-up that shall fail.
SECONDS = 0.5
DEAD = "dead.example"


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
def dead_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the look-up of `DEAD` wait until the end of the test, in few and busy threads."""
    ended = threading.Event()

    def resolve(host: str, *args: Any, **options: Any) -> Any:
        if host == DEAD:
            ended.wait(PATIENCE)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("203.0.113.1", 443))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    limit_lookups(monkeypatch, PATIENCE)
    configuration = process.Configuration(options=Options(tenant_key="org"))
    monkeypatch.setattr(process.process, "configuration", configuration)
    yield
    ended.set()


def limit_lookups(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Give each look-up this time."""
    monkeypatch.setattr(name_lookups, "_lookups", NameLookups(threads=6, each=4, seconds=seconds))


async def resolve(host: str, tenant: str) -> Any:
    with scope.within(scope.TenantScope(tenant)):
        return await asyncio.get_running_loop().getaddrinfo(host, 443)


async def resolve_in_thread(host: str, tenant: str) -> Any:
    """Resolve a name as the webhooks of langgraph_api do."""
    with scope.within(scope.TenantScope(tenant)):
        return await asyncio.to_thread(socket.getaddrinfo, host, 443, type=socket.SOCK_STREAM)


@pytest.mark.parametrize("look_up", [resolve, resolve_in_thread])
async def test_300_lookups_at_a_dead_server_delay_no_other_tenant_and_no_node(
    dead_server: None, look_up: Any
) -> None:
    NodeThreads(max_workers=2).equip(asyncio.get_running_loop())
    stuck = [asyncio.create_task(look_up(DEAD, "bad")) for _ in range(300)]
    await asyncio.sleep(0)
    for _ in range(20):
        assert (await look_up("fine.example", "good"))[0][4] == ("203.0.113.1", 443)
    with scope.within(scope.TenantScope("bad")):
        assert await asyncio.to_thread(lambda: "node") == "node"
    assert not any(each.done() for each in stuck)
    for each in stuck:
        each.cancel()
    await asyncio.wait(stuck)


@pytest.mark.parametrize("look_up", [resolve, resolve_in_thread])
async def test_300_lookups_at_a_dead_server_fail_in_time(
    dead_server: None, monkeypatch: pytest.MonkeyPatch, look_up: Any
) -> None:
    limit_lookups(monkeypatch, SECONDS)
    NodeThreads(max_workers=2).equip(asyncio.get_running_loop())
    stuck = [look_up(DEAD, "bad") for _ in range(300)]
    errors = await asyncio.wait_for(asyncio.gather(*stuck, return_exceptions=True), PATIENCE)
    assert {type(each) for each in errors} == {socket.gaierror}


async def test_lookups_beyond_a_tenants_share_follow_when_others_end(
    dead_server: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    NodeThreads(max_workers=2).equip(asyncio.get_running_loop())
    found = await asyncio.gather(*(resolve("fine.example", "good") for _ in range(100)))
    assert len(found) == 100
    limit_lookups(monkeypatch, SECONDS)
    with pytest.raises(socket.gaierror):
        await resolve(DEAD, "good")


async def test_error_and_cancellation_reach_the_caller(
    dead_server: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    NodeThreads(max_workers=2).equip(asyncio.get_running_loop())
    waiting = asyncio.create_task(resolve(DEAD, "good"))
    await asyncio.sleep(0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    def fail(*args: Any, **options: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(socket.gaierror, match="unknown"):
        await resolve("nowhere.example", "good")
