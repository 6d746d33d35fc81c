"""The rows about the cost of one run: its first token beside a floor, and runs a CPU-second."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

import psycopg

from bench import load, servers
from bench.measures import BEFORE, STOCK, alternating
from bench.report import Line
from bench.servers import Server
from bench.stage import CLIENTS, Stage

FLOOR = "floor"
_TICKS = os.sysconf("SC_CLK_TCK")
CpuSeconds = Callable[[], float]


async def first_token(stage: Stage) -> list[Line]:
    """Compare with an ASGI app that stores a row and streams the bare graph (`bench.floor`)."""
    _, ours = await stage.pair()
    async with servers.floor(stage.scratch) as floor:
        for server in (floor, ours):
            async with server.client() as client:
                await load.first_token(client)
        mine, theirs = await alternating((ours, floor), load.first_token, 4 * stage.scale.samples)
    name = "first token of a streamed run, p50"
    return [Line(name, median(mine) * 1e3, "ms", median(theirs) * 1e3, FLOOR, 2.5)]


async def cpu(stage: Stage) -> list[Line]:
    """Count the runs for each second of CPU that server and database take together."""
    postgres = stage.postgres()
    owner = postgres.as_owner("postgres")
    lines = []
    for where in ("", " on Postgres"):
        rates: dict[str, list[float]] = {"ours": [], STOCK: []}
        if stage.before is not None:
            rates[BEFORE] = []
        for turn in range(stage.scale.bursts):
            for peer, found in rates.items():
                url = None
                if where and peer != STOCK:
                    url = postgres.create(f"cpu_{turn}_{peer}")
                async with _started(stage, peer, url) as server:
                    database = (lambda: _of_postgres(owner)) if url else (lambda: 0.0)
                    found.append(await _runs_a_second(stage, server, database))
        mine = median(rates.pop("ours"))
        name = f"runs a CPU-second of server and database{where}"
        lines += [
            Line(
                name,
                mine,
                "runs/s",
                median(found),
                peer,
                1.25 if peer == BEFORE else None,
                "higher",
            )
            for peer, found in rates.items()
        ]
    return lines


@asynccontextmanager
async def _started(stage: Stage, peer: str, url: str | None) -> AsyncIterator[Server]:
    if peer == STOCK:
        started = servers.stock(stage.scratch)
    elif peer == BEFORE and stage.before is not None:
        started = servers.ours(stage.scratch, url, "before", code=stage.before)
    else:
        started = servers.ours(stage.scratch, url, "cpu")
    async with started as server:
        await load.warm_up(server)
        yield server


async def _runs_a_second(stage: Stage, server: Server, database: CpuSeconds) -> float:
    before = database()
    burst = await load.hammer(server, CLIENTS, stage.scale.burst_seconds)
    return burst.runs / (burst.cpu_seconds + database() - before)


def _of_postgres(owner: str) -> float:
    """Return the CPU time of a Postgres server so far, in seconds."""
    with psycopg.connect(owner) as raw:
        parent = _stat(raw.info.backend_pid)[1]
    own = _stat(parent)
    total = sum(own[11:15])
    for folder in Path("/proc").iterdir():
        # A process may end meanwhile. Its parent then counts its time.
        if folder.name.isdigit() and (found := _stat(int(folder.name))) and found[1] == parent:
            total += sum(found[11:13])
    return total / _TICKS


def _stat(pid: int) -> list[int]:
    """Return the fields of /proc/PID/stat after the name, with 0 for the state; empty if gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return [0, *map(int, text.rpartition(")")[2].split()[1:])]
