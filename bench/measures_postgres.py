"""The rows about Postgres: one process, two processes, and a database with a million threads."""

import random
from statistics import median

from bench import fill, fill_postgres, load, servers
from bench.backends import valkey
from bench.bare import bare
from bench.measures import STOCK, idle_runs, searches, user_searches
from bench.report import Line
from bench.stage import CLIENTS, MANY_THREADS, Stage

ON_POSTGRES = " on Postgres"
PROCESSES = (1, 2)


async def idle(stage: Stage) -> list[Line]:
    postgres = stage.postgres()
    async with (
        servers.ours(stage.scratch, postgres.create("idle"), "postgres") as ours,
        bare(postgres.create("bare")) as graph,
    ):
        await load.warm_up(ours)
        # Each writer thread opens a connection on its first write.
        await load.hammer(ours, CLIENTS, 1.0)
        return await idle_runs(stage, ours, graph, 2.5, ON_POSTGRES)


async def throughput(stage: Stage) -> list[Line]:
    """Alternate between new servers; each burst has a database of its own."""
    postgres = stage.postgres()
    rates: dict[int, list[float]] = {count: [] for count in (0, *PROCESSES)}
    with valkey(stage.scratch) as redis:
        for turn in range(stage.scale.bursts):
            async with servers.stock(stage.scratch) as stock:
                await load.warm_up(stock)
                burst = await load.hammer(stock, CLIENTS, stage.scale.burst_seconds)
                rates[0].append(burst.rate)
            for count in PROCESSES:
                url = postgres.create(f"throughput_{turn}_{count}")
                flags = ("--redis-url", redis, "--workers", str(count))
                async with servers.ours(
                    stage.scratch, url, f"{count} processes", flags=flags
                ) as ours:
                    for _ in range(count):
                        await load.warm_up(ours)
                    burst = await load.hammer(ours, CLIENTS, stage.scale.burst_seconds)
                    rates[count].append(burst.rate)
    stock_rate, one, two = (median(each) for each in rates.values())
    runs = f"runs a second, {CLIENTS} clients, new threads{ON_POSTGRES} and Valkey"
    return [
        Line(f"{runs}, 1 process", one, "runs/s", stock_rate, STOCK, better="higher"),
        Line(f"{runs}, 2 processes", two, "runs/s", one, "1 process", 1.1, "higher"),
    ]


async def search(stage: Stage) -> list[Line]:
    postgres = stage.postgres()
    url, secret = postgres.create("search"), random.Random(3).randbytes(32).hex()
    async with servers.ours(stage.scratch, url, "seed") as server:
        await fill.seed(server)
    owners = fill_postgres.multiply(postgres.as_owner("search"), MANY_THREADS)
    at = f"at {MANY_THREADS:,} threads{ON_POSTGRES}"
    env = {"APP_ENV": "production", "JWT_SECRET": secret}
    env |= {"JWT_ALLOW_ANY_AUDIENCE": "true", "JWT_ALLOW_ANY_ISSUER": "true"}
    async with servers.ours(stage.scratch, url, "search") as server:
        found = await searches(stage, server, owners, at)
    async with servers.ours(stage.scratch, url, "users", "users.json", **env) as server:
        return [*found, *await user_searches(stage, server, owners, at, secret)]
