"""The platform mounted in Starlette and FastAPI hosts, at the root and at a prefix.

Each host is a process of its own, because langgraph_api holds one configuration per process.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest
from langgraph_sdk import get_client

from tests.support import databases
from tests.support.processes import GRAPHS, ROOT, environment, free_port, running

# Every two of framework, prefix and database meet once: mounting does not depend on the database.
HOSTS = [
    ("starlette", "", "sqlite"),
    ("starlette", "/langgraph", "postgresql"),
    ("fastapi", "", "postgresql"),
    ("fastapi", "/langgraph", "sqlite"),
]


@dataclass(frozen=True)
class Host:
    """A running host: its URL, and the prefix of the platform."""

    url: str
    prefix: str

    @property
    def platform(self) -> str:
        return self.url + self.prefix


@pytest.fixture(scope="module", params=HOSTS, ids=lambda host: f"{host[0]}{host[1]}-{host[2]}")
def host(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Host]:
    framework, prefix, database = request.param
    folder = tmp_path_factory.mktemp("host")
    config = folder / "langgraph.json"
    graphs = {name: f"{GRAPHS}/{name}.py:graph" for name in ("echo", "loopback", "tokens")}
    config.write_text(json.dumps({"graphs": graphs}))
    port = free_port()
    command = [sys.executable, str(ROOT / "tests/support/host.py")]
    with databases.on(database):
        url = databases.url(folder / "host.db")
    command += [framework, prefix, str(config), url, str(port)]
    with running(command, port, folder, environment(), ready=f"{prefix}/ok") as server:
        yield Host(server.url, prefix)


async def test_mounted_platform_runs_and_streams_a_thread(host: Host) -> None:
    async with get_client(url=host.platform) as client:
        thread = await client.threads.create(metadata={"topic": "x"})
        result = await client.runs.wait(thread["thread_id"], "echo", input={"value": "a"})
        assert result["value"] == "a"
        stream = client.runs.stream(
            thread["thread_id"], "tokens", input={"n": 3}, stream_mode="values"
        )
        events = [part.event async for part in stream]
        assert events[0] == "metadata"
        assert "error" not in events
        [found] = await client.threads.search(metadata={"topic": "x"})
        assert found["thread_id"] == thread["thread_id"]


async def test_stream_is_joined_again_at_its_location(host: Host) -> None:
    """The SDK resolves the answer's `Location` against the address it was given, prefix included."""
    async with get_client(url=host.platform) as client:
        thread = await client.threads.create()
        run = await client.runs.create(
            thread["thread_id"], "tokens", input={"n": 3}, stream_resumable=True
        )
        joined = client.runs.join_stream(thread["thread_id"], run["run_id"], last_event_id="-1")
        events = [part.event async for part in joined]
        assert events[0] == "metadata"


async def test_sdk_client_without_url_works_in_routes_of_the_host(host: Host) -> None:
    async with httpx.AsyncClient(base_url=host.url) as client:
        answer = await client.get("/loopback", timeout=60)
    assert answer.status_code == 200
    assert answer.json()["value"] == "from the host"


async def test_sdk_client_without_url_works_inside_graphs(host: Host) -> None:
    async with get_client(url=host.platform) as client:
        result = await client.runs.wait(None, "loopback", input={"value": "from a graph"})
    assert result["answer"]["value"] == "from a graph"


def test_middleware_handlers_and_state_of_the_host_still_work(host: Host) -> None:
    assert httpx.get(f"{host.platform}/ok").headers["x-host"] == "yes"
    assert httpx.get(f"{host.url}/state").json() == {"state": "hello"}
    brewed = httpx.get(f"{host.url}/brew")
    assert (brewed.status_code, brewed.json()) == (418, {"host": "teapot"})


def test_openapi_description_and_docs_name_the_mount(host: Host) -> None:
    # FastAPI answers these paths itself at the root; its host decides.
    if host.prefix:
        spec = httpx.get(f"{host.platform}/openapi.json").json()
        assert spec["servers"] == [{"url": host.prefix}]
        assert f'"url":"{host.prefix}"' in httpx.get(f"{host.platform}/docs").text
    else:
        spec = httpx.get(f"{host.platform}/openapi.json").json()
        assert "servers" not in spec


def test_mcp_and_the_agent_card_work_at_the_mount(host: Host) -> None:
    headers = {"accept": "application/json, text/event-stream"}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    listed = httpx.post(f"{host.platform}/mcp", json=message, headers=headers)
    tools = [tool["name"] for tool in listed.json()["result"]["tools"]]
    assert "echo" in tools
    assistants = httpx.post(f"{host.platform}/assistants/search", json={"graph_id": "echo"}).json()
    query = {"assistant_id": assistants[0]["assistant_id"]}
    card = httpx.get(f"{host.platform}/.well-known/agent-card.json", params=query).json()
    assert card["url"].startswith(f"{host.platform}/a2a/")


async def test_host_passes_concurrent_requests(host: Host) -> None:
    async with get_client(url=host.platform) as client:
        made = await asyncio.gather(*(client.threads.create() for _ in range(20)))
    assert len({thread["thread_id"] for thread in made}) == 20
