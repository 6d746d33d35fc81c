"""Postgres gives too few connections: some make a server slow, none at all is an outage like any other."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import databases
from tests.support.processes import Running
from tests.support.served import Api, client, served

pytestmark = [pytest.mark.usefixtures("each_database"), pytest.mark.only("postgresql")]

# One connection owns the database, and two carry messages between processes.
OURS = 3
STEPS = 6
WAITS = 12


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with served(tmp_path, LOG_LEVEL="INFO") as started:
        yield started


@pytest.fixture
async def api(server: Running) -> AsyncIterator[Api]:
    async with client(server) as made:
        yield made


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    made = tmp_path / "gate"
    made.write_text("2")
    return made


def asked(gate: Path) -> dict[str, Any]:
    """Return the body of a run that takes two steps, and the others when the gate lets it."""
    body = {"assistant_id": "steps", "input": {"count": STEPS, "gate": str(gate)}}
    return {**body, "stream_mode": ["values"], "stream_resumable": True}


async def has_steps(api: Api, thread: str, count: int) -> None:
    """Wait until the state of a thread has steps."""
    while True:
        values = (await api.get(f"/threads/{thread}/state"))["values"]
        if len(values.get("done", [])) >= count:
            return
        await asyncio.sleep(0.05)


def outages(server: Running) -> list[dict[str, Any]]:
    """Return the lines of the log about outages."""
    found = [json.loads(line) for line in server.log.read_text().splitlines()]
    return [each for each in found if str(each.get("action")).startswith("database_outage")]


async def test_a_server_with_few_connections_goes_on(
    tmp_path: Path, server: Running, api: Api, gate: Path
) -> None:
    threads = [await api.thread() for _ in range(WAITS)]
    async with asyncio.TaskGroup() as group:
        waits = [
            group.create_task(api.post(f"/threads/{each}/runs/wait", asked(gate)))
            for each in threads
        ]
        for each in threads:
            await has_steps(api, each, 1)
        with databases.server().limited(tmp_path / "data.db", OURS + 2):
            gate.write_text(str(STEPS))
            answers = await asyncio.gather(*waits)
            assert (await api.http.get("/health")).is_success
    assert [each.get("done") for each in answers] == [[*range(STEPS)]] * WAITS, answers
    assert outages(server) == []
