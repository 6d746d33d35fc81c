"""Play a whole history, from the first request to the evidence."""

import asyncio
import logging
import random
import time
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.history import evidence
from tests.history.clients import Client, World
from tests.history.cluster import ATTEMPTS, Cluster
from tests.history.evidence import Evidence
from tests.history.exchange import PATIENCE
from tests.history.nemesis import FAULTS, Nemesis
from tests.history.recorder import Recorder, read

# Seconds without any change after which a run counts as stuck.
STILL_SECONDS = 60.0


@dataclass(frozen=True)
class Plan:
    """The parameters of a history.

    Attributes:
        seconds: How long faults happen; None: until each has happened once.
        lease: Length of a claim in seconds.
        with_redis: Whether the servers use Redis, or Postgres alone.
    """

    seed: int
    seconds: float | None = None
    processes: int = 3
    clients: int = 20
    lease: float = 4.0
    faults: tuple[str, ...] = FAULTS
    with_redis: bool = True


async def play(plan: Plan, folder: Path) -> Evidence:
    """Play the plan; `folder` gets the logs of the servers and the history of the clients."""
    # A log line for each client request would hide everything else.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    rng = random.Random(plan.seed)
    cluster = Cluster(folder, plan.processes, plan.lease, with_redis=plan.with_redis)
    recorder = Recorder(folder / "history.jsonl")
    try:
        await cluster.start()
        await _live(plan, cluster, recorder, rng)
        recorder.close()
        deaths = [f"server {number} died by itself at {at:.3f}" for number, at in cluster.deaths]
        return await evidence.gather(
            cluster.dsn,
            cluster.servers[0].url,
            read(folder / "history.jsonl"),
            folder / "record",
            deaths=deaths,
            limit=ATTEMPTS,
            epoch=time.time() - time.monotonic(),
        )
    finally:
        await cluster.stop()


async def _live(plan: Plan, cluster: Cluster, recorder: Recorder, rng: random.Random) -> None:
    """Run clients while faults happen; then end all faults, and wait until all runs have ended."""
    urls = [server.url for server in cluster.servers]
    world = World(urls, recorder, str(cluster.folder / "record"))
    nemesis = Nemesis(cluster, recorder, random.Random(rng.random()), plan.faults)
    limits = httpx.Limits(max_connections=plan.clients * 4, max_keepalive_connections=plan.clients)
    async with httpx.AsyncClient(timeout=PATIENCE, limits=limits) as http:
        clients = [
            Client(number, world, http, random.Random(rng.random()))
            for number in range(1, plan.clients + 1)
        ]
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(client.work())
            await (nemesis.each_once() if plan.seconds is None else nemesis.for_(plan.seconds))
            # No fault is active any more, and the clients still work.
            await cluster.answer()
            world.over.set()
        await _quiet(cluster)
        await _read_again(world, clients, cluster)


async def _quiet(cluster: Cluster) -> None:
    """Wait until every run has ended, as long as there are changes."""
    before, since = -1, 0.0
    while since < STILL_SECONDS:
        left, changes = await asyncio.to_thread(evidence.in_flight, cluster.dsn)
        if not left:
            return
        since = since + 0.2 if changes == before else 0.0
        before = changes
        await asyncio.sleep(0.2)


async def _read_again(world: World, clients: list[Client], cluster: Cluster) -> None:
    """Read every followed stream, and those of runs that were taken over, whole at every server."""
    runs, _ = await asyncio.to_thread(evidence.stored, cluster.dsn)
    taken_over = {name for name, run in runs.items() if run.attempt > 1}
    reads = [
        (thread, run, process)
        for run, thread in world.resumable.items()
        if run in world.streamed | taken_over
        for process in range(len(world.urls))
    ]

    async def work(client: Client) -> None:
        while reads:
            await client.read_whole(*reads.pop())

    async with asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(work(client))
