"""The rows about abuse: what other tenants notice while one does its worst."""

import asyncio
import itertools
import math
import random
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from pydantic import SecretStr

from bench import load, servers
from bench.client import Client
from bench.report import Line
from bench.servers import ROOT, Server
from bench.stage import Stage
from threadhold.auth import IdentitySettings
from threadhold.auth.tokens import sign

Sign = Callable[[str], str]
Action = Callable[[], Awaitable[None]]

REQUEST_LIMIT, RUN_LIMIT = 250.0, 1000.0
# The other tenants' requests begin this often, however long the earlier ones take.
REQUEST_SECONDS, RUN_SECONDS = 0.05, 0.25
# A request that takes longer counts with this time.
TIMEOUT_SECONDS = 30.0
PREPARE_SECONDS = 120.0
WHAT = {
    "searches": "40 searches for lists",
    "bombs": "4 uploads of PDF bombs",
    "queue": "5,000 queued runs",
    "streams": "1,500 v2 streams of a thread",
    "history": "10 readers of a long history",
    "versions": "8 writers of assistants' versions",
}


async def _abuse(kind: str, stage: Stage) -> list[Line]:
    lines = []
    for where in ("", " on Postgres"):
        url = stage.postgres().create(f"abuse_{kind}") if where else None
        secret = random.Random(3).randbytes(32).hex()
        env = {"APP_ENV": "production", "JWT_SECRET": secret}
        env |= {"JWT_ALLOW_ANY_AUDIENCE": "true", "JWT_ALLOW_ANY_ISSUER": "true"}
        settings = IdentitySettings(app_env="production", jwt_secret=SecretStr(secret))

        def token(tenant: str, settings: IdentitySettings = settings) -> str:
            return sign(settings, tenant, "user", (), ttl=600)

        name = f"abuse {kind}{where}"
        async with servers.ours(stage.scratch, url, name, "abuse.json", **env) as server:
            lines += await _beside(server, kind, token, stage.scale.abuse_seconds, where)
    return lines


async def _beside(server: Server, kind: str, token: Sign, seconds: float, where: str) -> list[Line]:
    """Measure other tenants' requests and first runs beside one abuse."""
    async with Client(server.port, token("other")) as client:
        thread = (await client.json("POST", "/threads", {"metadata": {"of": "other"}}))["thread_id"]
        await load.echo(client)
    requests = _Requests(server, token("other"), thread)
    runs = (partial(_first_run, server, token(f"idle-{number}")) for number in itertools.count())
    async with _abuser(server, kind, token("abuser")):
        trivial, first = await asyncio.gather(
            _every(REQUEST_SECONDS, requests, seconds), _every(RUN_SECONDS, runs, seconds)
        )
    beside = f"beside {WHAT[kind]}{where}, p99"
    return [
        Line(f"another tenant's request {beside}", _p99(trivial), "ms", limit=REQUEST_LIMIT),
        Line(f"an idle tenant's first run {beside}", _p99(first), "ms", limit=RUN_LIMIT),
    ]


class _Requests(Iterator[Action]):
    """Requests of one tenant, without end: a read, a search and a write of threads, in turn."""

    def __init__(self, server: Server, token: str, thread: str) -> None:
        self._server, self._token = server, token
        self._free: list[Client] = []
        mine = {"metadata": {"of": "other"}, "limit": 10}
        self._kinds = itertools.cycle(
            [
                ("GET", f"/threads/{thread}", None),
                ("POST", "/threads/search", mine),
                ("POST", "/threads", {}),
            ]
        )

    def __next__(self) -> Action:
        return partial(self._send, *next(self._kinds))

    async def _send(self, method: str, path: str, body: Any) -> None:
        client = self._free.pop() if self._free else Client(self._server.port, self._token)
        try:
            await client.json(method, path, body)
        except BaseException:
            # Its answer may still arrive.
            client.close()
            raise
        self._free.append(client)


async def _first_run(server: Server, token: str) -> None:
    async with Client(server.port, token) as client:
        await load.echo(client)


async def _every(interval: float, actions: Iterator[Action], seconds: float) -> list[float]:
    """Begin an action at each interval, and return the times that they take, in seconds."""

    async def timed(action: Action) -> float:
        begun = time.perf_counter()
        with suppress(TimeoutError):
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await action()
        return time.perf_counter() - begun

    tasks, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        tasks.append(asyncio.create_task(timed(next(actions))))
        await asyncio.sleep(interval * random.uniform(0.5, 1.5))
    return await asyncio.gather(*tasks)


@asynccontextmanager
async def _abuser(server: Server, kind: str, token: str) -> AsyncIterator[None]:
    """Abuse the server from another process in the block, and print what it was answered."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.abuser", kind, str(server.port)),
        cwd=ROOT,
        stdin=pipe,
        stdout=pipe,
    )
    try:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(f"{token}\n".encode())
        async with asyncio.timeout(PREPARE_SECONDS):
            if await process.stdout.readline() != b"ready\n":
                raise RuntimeError(f"The abuse {kind!r} did not begin")
        yield
        if process.returncode is not None:
            raise RuntimeError(f"The abuse {kind!r} ended early")
        process.stdin.close()
        told = (await process.stdout.read()).decode().strip()
        print(f"abuse {kind}: answers by status: {told}", file=sys.stderr)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _p99(times: list[float]) -> float:
    return sorted(times)[math.ceil(0.99 * len(times)) - 1] * 1e3


ROWS = {f"abuse-{kind}": partial(_abuse, kind) for kind in WHAT}
