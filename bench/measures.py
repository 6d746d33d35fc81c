"""The rows of the table. Each measure alternates between the servers, so that noise affects all
equally.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from statistics import median, quantiles

from pydantic import SecretStr

from bench import companies, load, servers
from bench.bare import Bare, bare
from bench.client import Client
from bench.fill import Owner, metadata_of
from bench.report import Line
from bench.servers import Server
from bench.stage import CLIENTS, THREADS, Stage
from threadhold.auth import IdentitySettings
from threadhold.auth.tokens import sign

STOCK = "langgraph dev"
BARE = "bare graph"
BEFORE = "before"
# Searches that are not counted, after the server and its database are new.
WARM_UP = 50
Action = Callable[[Client], Awaitable[float]]


async def startup(stage: Stage) -> list[Line]:
    times: dict[str, list[float]] = {"stock": [], "ours": []}
    for _ in range(stage.scale.starts):
        async with servers.stock(stage.scratch) as server:
            times["stock"].append(server.started_in)
        async with servers.ours(stage.scratch) as server:
            times["ours"].append(server.started_in)
    ours, stock = median(times["ours"]), median(times["stock"])
    return [Line("start-up to the first 200 on /ok", ours, "s", stock, STOCK, 1.0)]


async def idle(stage: Stage) -> list[Line]:
    _, ours = await stage.pair()
    async with bare(str(stage.scratch / "bare.db")) as graph:
        return await idle_runs(stage, ours, graph, 1.5)


async def idle_runs(
    stage: Stage, ours: Server, graph: Bare, floors: float, where: str = ""
) -> list[Line]:
    """Time single runs on our server, on stock and without a server.

    Args:
        stage: state shared by the measures.
        ours: our server.
        graph: the bare graph on the same database.
        floors: bound for our time, as a multiple of the bare graph's.
        where: suffix of the row's name, such as the database.
    """
    stock, _ = await stage.pair()
    lines = []
    for label, action in (("thread", load.echo_on_thread), ("stateless", load.echo)):
        slow, fast, floor = [], [], []
        async with stock.client() as theirs, ours.client() as mine:
            for _ in range(stage.scale.samples):
                await _random_pause()
                slow.append(await action(theirs))
                await _random_pause()
                fast.append(await action(mine))
                floor += await graph.seconds(1)
        name, own = f"run on an idle server{where}, {label}, p50", median(fast) * 1e3
        lines += [
            Line(name, own, "ms", median(slow) * 1e3, STOCK, 1 / 25),
            Line(name, own, "ms", median(floor) * 1e3, BARE, floors),
        ]
    return lines


async def first_token(stage: Stage) -> list[Line]:
    ours, stock = await _alternating(stage, load.first_token, stage.scale.samples)
    name = "first token of a streamed run, p50"
    lines = [Line(name, ours * 1e3, "ms", stock * 1e3, STOCK, 1 / 25)]
    if older := await stage.older():
        _, current = await stage.pair()
        now, then = await alternating((current, older), load.first_token, 4 * stage.scale.samples)
        lines.append(Line(name, median(now) * 1e3, "ms", median(then) * 1e3, BEFORE, 1.05))
    return lines


async def stream(stage: Stage) -> list[Line]:
    count = stage.scale.tokens
    ours, stock = await _alternating(
        stage, lambda client: load.events_a_second(client, count), stage.scale.streams
    )
    name = f"events a second in one stream of {count:,} tokens"
    return [Line(name, ours, "events/s", stock, STOCK, 2.0, "higher")]


async def other_runs(stage: Stage) -> list[Line]:
    samples = max(3, stage.scale.samples // 3)
    ours, stock = await _alternating(stage, lambda client: load.steps(client, 50), samples)
    lines = [Line("a run of 50 steps, p50", ours * 1e3, "ms", stock * 1e3, STOCK)]
    ours, stock = await _alternating(stage, load.resume, samples)
    return [*lines, Line("resume after an interrupt, p50", ours * 1e3, "ms", stock * 1e3, STOCK)]


async def _alternating(stage: Stage, action: Action, samples: int) -> tuple[float, float]:
    """Return the medians of `action` on our server and on stock."""
    stock, ours = await stage.pair()
    slow, fast = await alternating((stock, ours), action, samples)
    return median(fast), median(slow)


async def alternating(
    pair: tuple[Server, Server], action: Action, samples: int
) -> tuple[list[float], list[float]]:
    """Return what `action` measured on each of two servers, in turns."""
    found: tuple[list[float], list[float]] = [], []
    async with pair[0].client() as first, pair[1].client() as second:
        for _ in range(samples):
            for client, values in zip((first, second), found, strict=True):
                await _random_pause()
                values.append(await action(client))
    return found


async def _random_pause() -> None:
    """Wait for a random time, so that requests do not synchronize with a server's polling."""
    await asyncio.sleep(random.uniform(0, 0.25))


async def sleep(stage: Stage) -> list[Line]:
    stock, ours = await stage.pair()
    fast = [await load.sleepers(ours, 100) for _ in range(stage.scale.streams)]
    slow = await load.sleepers(stock, 100)
    name = "100 runs that sleep 1 s, together"
    return [
        Line(name, median(fast), "s", limit=1.5),
        Line(name, median(fast), "s", slow, STOCK),
    ]


async def throughput(stage: Stage) -> list[Line]:
    """Measure with new servers for each burst, because "empty" is part of the measurement."""
    filled = (await stage.filled()).url
    bursts: dict[str, list[load.Burst]] = {"stock": [], "ours": [], "filled": []}
    memory: dict[str, float] = {}
    for _ in range(stage.scale.bursts):
        async with AsyncExitStack() as stack:
            peers = {
                "stock": await stack.enter_async_context(servers.stock(stage.scratch)),
                "ours": await stack.enter_async_context(servers.ours(stage.scratch)),
                "filled": await stack.enter_async_context(servers.ours(stage.scratch, filled)),
            }
            for key, server in peers.items():
                await load.warm_up(server)
                bursts[key].append(await load.hammer(server, CLIENTS, stage.scale.burst_seconds))
                memory[key] = server.rss_megabytes()
    rate = {key: median(burst.rate for burst in all_) for key, all_ in bursts.items()}
    cpu = {key: median(burst.cpu_a_run for burst in all_) * 1e3 for key, all_ in bursts.items()}
    runs = f"runs a second, {CLIENTS} clients, new threads"
    return [
        Line(f"{runs}, empty", rate["ours"], "runs/s", rate["stock"], STOCK, 1.6, "higher"),
        Line(
            f"{runs}, {THREADS:,} threads stored",
            rate["filled"],
            "runs/s",
            rate["ours"],
            "ours, empty",
            0.9,
            "higher",
        ),
        Line("CPU of a thread and a run", cpu["ours"], "ms", cpu["stock"], STOCK),
        Line("memory after the burst", memory["ours"], "MB", memory["stock"], STOCK, 1.0),
    ]


async def search(stage: Stage) -> list[Line]:
    filled = await stage.filled()
    async with servers.ours(stage.scratch, filled.url) as server:
        return await searches(stage, server, filled.owners, f"at {THREADS:,} threads")


async def searches(stage: Stage, server: Server, threads: Counter[Owner], at: str) -> list[Line]:
    """Search the first pages of users' lists by metadata.

    Args:
        stage: state shared by the measures.
        server: our server.
        threads: number of threads of each owner.
        at: total number of threads, in words.
    """
    times = []
    async with server.client() as client:
        for owner in _drawn(threads, stage.scale.searches + WARM_UP, seed=1):
            times.append(await load.search(client, metadata_of(owner), min(10, threads[owner])))
    return _percentiles(f"/threads/search by tenant, user, agent {at}", times[WARM_UP:])


async def user_search(stage: Stage) -> list[Line]:
    filled = await stage.filled()
    secret = random.Random(3).randbytes(32).hex()
    env = {"APP_ENV": "production", "JWT_SECRET": secret}
    env |= {"JWT_ALLOW_ANY_AUDIENCE": "true", "JWT_ALLOW_ANY_ISSUER": "true"}
    async with servers.ours(stage.scratch, filled.url, "users", "users.json", **env) as server:
        return await user_searches(stage, server, filled.owners, f"at {THREADS:,} threads", secret)


async def user_searches(
    stage: Stage, server: Server, threads: Counter[Owner], at: str, secret: str
) -> list[Line]:
    """Search with users' tokens: they determine tenant and user, and exclude archived threads."""
    settings = IdentitySettings(app_env="production", jwt_secret=SecretStr(secret))
    times = []
    for owner in _drawn(threads, stage.scale.searches + WARM_UP, seed=3):
        tenant, user, agent = owner
        async with Client(server.port, sign(settings, tenant, user, (), ttl=600)) as client:
            # Connect before the time is taken.
            await client.request("GET", "/ok", None, lambda data: None)
            expected = min(10, threads[owner])
            times.append(
                await load.search(client, metadata_of(owner), expected, {"agent_id": agent})
            )
    return _percentiles(f"/threads/search by a user's token and agent {at}", times[WARM_UP:])


def _drawn(threads: Counter[Owner], count: int, seed: int) -> list[Owner]:
    """Draw owners with a probability proportional to their number of threads."""
    return random.Random(seed).choices(list(threads), list(threads.values()), k=count)


def _percentiles(name: str, times: list[float]) -> list[Line]:
    cuts = quantiles([each * 1e3 for each in times], n=100)
    return [Line(f"{name}, p95", cuts[94], "ms", limit=15.0), Line(f"{name}, p50", cuts[49], "ms")]


async def policy(stage: Stage) -> list[Line]:
    """Measure what the thread policy adds to a run: finding its thread, and the check of its
    status.
    """
    filled = await stage.filled()
    dice = random.Random(2)
    added: dict[str, list[float]] = {"found": [], "made": []}
    async with (
        servers.ours(
            stage.scratch, filled.url, "policy", "policy.json", THREAD_POLICY_AGENTS="echo"
        ) as server,
        server.client() as client,
    ):
        for number in range(4 * stage.scale.samples):
            (owner,) = dice.choices(list(filled.owners), list(filled.owners.values()))
            tenant, user, _ = owner
            metadata = {"tenant_id": tenant, "user_id": user, "website": f"company-{number}.com"}
            thread = await load.new_thread(client)
            plain = await load.echo(client, f"/threads/{thread}", "plain")
            made = await load.echo(client, **metadata)
            found = await load.echo(client, **metadata)
            if number:  # the first ones compile their statements
                added["made"].append((made - plain) * 1e3)
                added["found"].append((found - plain) * 1e3)
    at = f"at {THREADS:,} threads"
    return [
        Line(f"thread policy, added to a run {what}, {at}, p95", _p95(times), "ms", limit=150.0)
        for what, times in (
            ("that goes on with its thread", added["found"]),
            ("that makes its thread", added["made"]),
        )
    ]


async def return_user(stage: Stage) -> list[Line]:
    """Measure what loading, deciding and asking add to a run of a returning user."""
    filled = await stage.filled()
    samples = 4 * stage.scale.samples
    await companies.save(filled.file, samples)
    added: list[float] = []
    async with (
        servers.ours(
            stage.scratch, filled.url, "icp", "policy.json", THREAD_POLICY_AGENTS="icp_finder"
        ) as server,
        server.client() as client,
    ):
        for number in range(samples):
            plain = await load.echo_on_thread(client)
            returning = await load.returning(client, companies.website(number))
            if number:  # the first one opens the database
                added.append((returning - plain) * 1e3)
    name = f"return-user probe and gate, added to a run, at {THREADS:,} threads, p95"
    return [Line(name, _p95(added), "ms", limit=150.0)]


def _p95(times: list[float]) -> float:
    return quantiles(times, n=20)[18]
