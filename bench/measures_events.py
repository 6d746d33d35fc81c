"""The rows about the event log: what storing costs, opens, kills, other processes, followers."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from statistics import median, quantiles
from typing import Any

from bench import load, servers
from bench.backends import valkey
from bench.client import HTTPFailure
from bench.measures import BEFORE, STOCK
from bench.report import Line
from bench.servers import Server
from bench.sse import Events, stream
from bench.stage import Stage

UNLOGGED = "not stored"
ENDED_RUNS = 1000
TOGETHER = 100
# Long enough that a pause of the collector does not decide.
LONG = 20_000
FOLLOWERS = 1000
IDLE_SECONDS = 20.0
LEASE_SECONDS = 15.0
# A killed run must show its next event at most this much after its lease has ended.
TAKEOVER_SECONDS = 2.0
CHANNELS = ["values", "messages", "lifecycle", "input"]
# A process that executes no runs.
FOLLOWS_ONLY = {"N_JOBS_PER_WORKER": "0"}


async def streams(stage: Stage) -> list[Line]:
    """Compare streams whose events are stored with streams whose events are not.

    On SQLite, the events of a run that is not resumable are never stored.
    """
    _, ours = await stage.pair()
    peers = {(UNLOGGED, True): (ours, False)}
    if older := await stage.older():
        peers |= {(BEFORE, True): (older, True), (BEFORE, False): (older, False)}
    lines = []
    for (peer_name, stored), (peer, peer_stored) in peers.items():
        limit = 0.9 if peer_name == BEFORE else None
        rates: dict[str, list[float]] = {"one": [], "many": [], "peer one": [], "peer many": []}
        for _ in range(3 * stage.scale.streams):
            for prefix, server, stores in (("", ours, stored), ("peer ", peer, peer_stored)):
                one, many = await _rates(server, LONG, stores)
                rates[f"{prefix}one"].append(one)
                rates[f"{prefix}many"].append(many)
        kind = "stored" if stored else "live"
        lines += [
            Line(
                name,
                median(rates[key]),
                "events/s",
                median(rates[f"peer {key}"]),
                peer_name,
                limit,
                "higher",
            )
            for key, name in (
                ("one", f"events a second in one {kind} stream of {LONG:,} tokens"),
                ("many", f"events a second in {TOGETHER} {kind} streams at once"),
            )
        ]
    return lines


async def _rates(server: Server, tokens: int, stored: bool) -> tuple[float, float]:
    """Return the events a second in one stream, and in many at once."""
    async with server.client() as client:
        one = await load.events_of_request(client, tokens, stored)
    return one, await _together(server, stored, tokens // 50)


async def _together(server: Server, stored: bool, tokens: int) -> float:
    """Return the events a second of streams that run at once."""
    clients = [server.client() for _ in range(TOGETHER)]
    begun = time.perf_counter()
    try:
        await asyncio.gather(*(load.events_of_request(each, tokens, stored) for each in clients))
    finally:
        for client in clients:
            client.close()
    return TOGETHER * tokens / (time.perf_counter() - begun)


async def opens(stage: Stage) -> list[Line]:
    """Open the stream of a thread with many runs that are over, and an open question."""
    lines = []
    async with AsyncExitStack() as stack:
        peers = {"": await stack.enter_async_context(servers.ours(stage.scratch, name="opens"))}
        url = stage.postgres().create("opens")
        peers[" on Postgres"] = await stack.enter_async_context(
            servers.ours(stage.scratch, url, "opens on Postgres")
        )
        for where, server in peers.items():
            async with server.client() as client:
                thread = await load.new_thread(client)
                for _ in range(ENDED_RUNS):
                    await load.command(client, thread, "sleep", {"seconds": 0.0})
                await load.command(client, thread, "interrupt", {"question": "go on?"})
            times, replayed = [], []
            for _ in range(4 * stage.scale.samples):
                first, count = await _open(server, thread)
                times.append(first * 1e3)
                replayed.append(count)
            name = f"open of a thread's stream after {ENDED_RUNS:,} runs{where}"
            lines += [
                Line(f"{name}, p95 to the first event", _p(times, 95), "ms", limit=30.0),
                Line(f"{name}, events replayed", max(replayed), "events", limit=50.0),
            ]
    return lines


async def _open(server: Server, thread: str) -> tuple[float, int]:
    """Return the time to the first event, and the number of events until it is quiet."""
    path, count = f"/threads/{thread}/stream/events", 0
    begun = time.perf_counter()
    async with stream(server.port, "POST", path, {"channels": CHANNELS}) as events:
        found = events.__aiter__()
        await anext(found)
        first = time.perf_counter() - begun
        while True:
            count += 1
            try:
                await asyncio.wait_for(anext(found), 0.2)
            except TimeoutError:
                return first, count


async def kill(stage: Stage) -> list[Line]:
    """Kill the process of a run in the middle of its events; time until the next event."""
    limit = LEASE_SECONDS + TAKEOVER_SECONDS
    name = "kill -9 in mid-stream until the next event"
    lines = [Line(f"{name}, restarted on SQLite", await _restarted(stage), "s", limit=limit)]
    for redis, what in ((False, "Postgres alone"), (True, "Postgres and Valkey")):
        with _wire(stage, redis) as flags:
            seconds = await _taken_over(stage, flags, f"kill_{redis}")
        lines.append(Line(f"{name}, another process on {what}", seconds, "s", limit=limit))
    return lines


async def _restarted(stage: Stage) -> float:
    url, port = f"sqlite:///{stage.scratch / 'killed.db'}", servers.free_port()
    async with servers.ours(stage.scratch, url, "killed", port=port) as server:
        run, cursor = await _begun(server)
        killed = await _kill(server)
    async with (
        servers.ours(stage.scratch, url, "restarted", port=port) as server,
        stream(server.port, "GET", run, cursor=cursor) as events,
    ):
        return await _next(events, killed)


async def _taken_over(stage: Stage, flags: list[str], database: str) -> float:
    url = stage.postgres().create(database)
    async with servers.ours(stage.scratch, url, "first", flags=flags) as first:
        run, cursor = await _begun(first)
        # Started after the run, so that the first process is the one that executes it.
        async with servers.ours(stage.scratch, url, "second", flags=flags) as second:
            following = asyncio.ensure_future(_next_after(second, run, cursor, first))
            return await following


async def _next_after(server: Server, run: str, cursor: str, dying: Server) -> float:
    """Follow a run in one process, kill the other, and return the time to the next event."""
    async with stream(server.port, "GET", run, cursor=cursor) as events:
        await events.next("custom")
        return await _next(events, await _kill(dying))


async def _next(events: Events, killed: float) -> float:
    """Return the time from the kill to the first event of the next attempt, in seconds."""
    async for event in events:
        # What was sent before the kill may arrive after it.
        if event.name == "custom" and event.data["sent"] / 1e9 > killed:
            return event.received / 1e9 - killed
    raise HTTPFailure("the stream ended without an event of the next attempt")


async def _begun(server: Server) -> tuple[str, str]:
    """Start a run and read some events. Return the path of its stream, and a cursor."""
    async with server.client() as client:
        thread = await load.new_thread(client)
    body = _stamps(count=100_000, interval=0.02)
    path = f"/threads/{thread}/runs/stream"
    async with stream(server.port, "POST", path, body) as events:
        run = (await events.next("metadata")).data["run_id"]
        for _ in range(20):
            event = await events.next("custom")
    return f"/threads/{thread}/runs/{run}/stream", event.id


def _stamps(count: int, interval: float) -> dict[str, Any]:
    return {
        "assistant_id": "stamps",
        "input": {"count": count, "interval": interval},
        "stream_mode": ["custom"],
        "stream_resumable": True,
        "on_disconnect": "continue",
    }


async def _kill(server: Server) -> float:
    """Kill a server, and return the time at which it was dead."""
    server.process.kill()
    await server.process.wait()
    return time.time()


async def across(stage: Stage) -> list[Line]:
    """Time an event from the process that executes its run to a client of another process."""
    lines = []
    owed = {False: ("Postgres alone", 60.0, 150.0), True: ("Valkey", 5.0, 20.0)}
    for redis, (what, p50, p99) in owed.items():
        with _wire(stage, redis) as flags:
            times = await _latencies(stage, flags, f"across_{redis}")
        name = f"an event in another process through {what}"
        lines += [
            Line(f"{name}, p50", median(times), "ms", limit=p50),
            Line(f"{name}, p99", _p(times, 99), "ms", limit=p99),
        ]
    return lines


async def _latencies(stage: Stage, flags: list[str], database: str) -> list[float]:
    """Return the times of events in ms."""
    url, count = stage.postgres().create(database), 60 * stage.scale.samples
    async with (
        servers.ours(stage.scratch, url, "executes", flags=flags) as executes,
        servers.ours(stage.scratch, url, "follows", flags=flags, **FOLLOWS_ONLY) as follows,
    ):
        async with executes.client() as client:
            thread = await load.new_thread(client)
            body = _stamps(count, 0.01)
            run = await client.json("POST", f"/threads/{thread}/runs", body)
        path, times = f"/threads/{thread}/runs/{run['run_id']}/stream", []
        async with stream(follows.port, "GET", path) as events:
            async for event in events:
                if event.name == "custom":
                    times.append((event.received - event.data["sent"]) / 1e6)
    # The first events wait in the log for the client.
    return times[len(times) // 5 :]


async def followers(stage: Stage) -> list[Line]:
    """Open streams of idle threads; compare memory and CPU with stock."""
    costs = {}
    for key, started in (("stock", servers.stock), ("ours", servers.ours)):
        async with started(stage.scratch) as server, server.client() as client:
            await load.warm_up(server)
            threads = [await load.new_thread(client) for _ in range(FOLLOWERS)]
            before = server.rss_megabytes()
            async with AsyncExitStack() as stack:
                for thread in threads:
                    await stack.enter_async_context(_follower(server, thread))
                await asyncio.sleep(5.0)
                cpu, memory = server.cpu_seconds(), server.rss_megabytes() - before
                await asyncio.sleep(IDLE_SECONDS)
                used = (server.cpu_seconds() - cpu) / IDLE_SECONDS * 100
            costs[key] = memory, used
    (memory, used), (theirs, their_use) = costs["ours"], costs["stock"]
    name = f"{FOLLOWERS:,} idle followers"
    return [
        Line(f"{name}, memory", memory, "MB", theirs, STOCK),
        Line(f"{name}, CPU of one core", used, "%", their_use, STOCK),
    ]


@asynccontextmanager
async def _follower(server: Server, thread: str) -> AsyncIterator[Events]:
    async with stream(server.port, "GET", f"/threads/{thread}/stream") as events:
        yield events


@contextmanager
def _wire(stage: Stage, redis: bool) -> Iterator[list[str]]:
    """Give the flags of servers that share a Valkey, or none."""
    with ExitStack() as stack:
        yield ["--redis-url", stack.enter_context(valkey(stage.scratch))] if redis else []


def _p(times: list[float], percent: int) -> float:
    return quantiles(times, n=100)[percent - 1]
