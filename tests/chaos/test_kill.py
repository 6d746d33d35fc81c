"""`kill -9` at random times under load: nothing acknowledged is lost, no run is stuck."""

import asyncio
import random
import time

import pytest

from tests.chaos.ledger import ACTIONS, Ledger, exhausted, load, losses
from tests.chaos.victim import PATIENCE, Victim

pytestmark = pytest.mark.usefixtures("each_database")

ROUNDS = 5
CLIENTS = 12


async def acknowledged(ledger: Ledger, clients: asyncio.Task[None]) -> None:
    """Wait until every kind of request was acknowledged, or a client failed."""
    async with asyncio.timeout(PATIENCE):
        while len(ledger.acknowledged) < len(ACTIONS) and not clients.done():
            await asyncio.sleep(0.05)


@pytest.mark.timeout(900)
async def test_kills_under_load_lose_nothing_and_leave_nothing_stuck(
    victim: Victim, rng: random.Random
) -> None:
    ledger = Ledger()
    for number in range(ROUNDS):
        await asyncio.to_thread(victim.start)
        clients = asyncio.create_task(load(victim, ledger, CLIENTS, rng))
        if number == ROUNDS - 1:
            # The last round must cover every kind of request, even on a slow machine.
            await acknowledged(ledger, clients)
        await asyncio.sleep(rng.uniform(0.3, 2.0))
        await asyncio.to_thread(victim.kill)
        await clients
    victim.start()
    in_flight = "SELECT count(*) FROM runs WHERE status IN ('pending', 'running')"
    victim.await_(lambda: victim.sql(in_flight) == [(0,)])
    lost = losses(victim, ledger, ROUNDS)
    assert lost == [], "\n".join(lost)
    assert victim.sql("SELECT thread_id, status FROM threads WHERE status = 'busy'") == []
    # Runs without an acknowledgement have also ended.
    ends = dict(victim.sql("SELECT run_id, status FROM runs"))
    assert {run for run, status in ends.items() if status == "error"} <= exhausted(victim)
    assert set(ends.values()) <= {"success", "interrupted", "error"}
    assert victim.findings() == []


def test_server_killed_during_its_start_starts_the_next_time(
    victim: Victim, rng: random.Random
) -> None:
    victim.start()
    thread = victim.thread(metadata={"kept": True})
    run = victim.run(thread, "steps", {"count": 30, "delay": 0.05})
    victim.kill()
    for _ in range(5):
        victim.begin()
        time.sleep(rng.uniform(0, 0.6))
        victim.kill()
    # Each of these starts may have used one of the run's three attempts.
    victim.start()
    assert victim.ended(thread, run) in ("success", "error")
    assert victim.get(f"/threads/{thread}")["metadata"]["kept"] is True
    assert victim.findings() == []
