"""`kill -9` at random moments under load: nothing acknowledged is lost, nothing is stuck."""

import asyncio
import random
import time

import pytest

from tests.chaos.ledger import DEEDS, Ledger, exhausted, load, losses
from tests.chaos.victim import PATIENCE, Victim

pytestmark = pytest.mark.usefixtures("each_database")

ROUNDS = 5
CLIENTS = 12


async def acknowledged(ledger: Ledger, clients: asyncio.Task[None]) -> None:
    """Return once each kind of thing was, or something that should not have been answered."""
    async with asyncio.timeout(PATIENCE):
        while len(ledger.acknowledged) < len(DEEDS) and not clients.done():
            await asyncio.sleep(0.05)


@pytest.mark.timeout(900)
async def test_nothing_acknowledged_is_lost_and_nothing_is_stuck(
    victim: Victim, rng: random.Random
) -> None:
    ledger = Ledger()
    for number in range(ROUNDS):
        await asyncio.to_thread(victim.start)
        clients = asyncio.create_task(load(victim, ledger, CLIENTS, rng))
        if number == ROUNDS - 1:
            # However busy the machine is: what was not asked for, this test says nothing about.
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
    # Runs that nobody was told about have come to an end like the others.
    ends = dict(victim.sql("SELECT run_id, status FROM runs"))
    assert {run for run, status in ends.items() if status == "error"} <= exhausted(victim)
    assert set(ends.values()) <= {"success", "interrupted", "error"}
    assert victim.findings() == []


def test_a_server_killed_while_it_starts_starts_the_next_time(
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
    # Some of these starts may have begun an attempt at the run; it has three.
    victim.start()
    assert victim.ended(thread, run) in ("success", "error")
    assert victim.get(f"/threads/{thread}")["metadata"]["kept"] is True
    assert victim.findings() == []
