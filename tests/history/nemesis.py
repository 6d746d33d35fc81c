"""The nemesis: injects faults into a cluster, drawn from a seed."""

import asyncio
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable, Sequence

from tests.history.cluster import Cluster, Server
from tests.history.recorder import Recorder

FAULTS = (
    "kill",
    "terminate",
    "freeze",
    "restart postgres",
    "end listeners",
    "restart redis",
    "flush redis",
    "pause redis",
)
# The faults that can happen to servers on Postgres alone.
WITHOUT_REDIS = tuple(each for each in FAULTS if not each.endswith("redis"))
# Seconds: an outage of Redis, and the pauses between faults.
PAUSE_SECONDS = 8.0
REST_SECONDS = (1.0, 4.0)
SHORT_REST_SECONDS = (0.5, 1.5)
# Probability that two faults happen at once.
TOGETHER = 0.3


class Nemesis:
    """Injects faults.

    Args:
        rng: Draws the faults, their times and their servers.
        kinds: The names of the faults to inject.
    """

    def __init__(
        self,
        cluster: Cluster,
        recorder: Recorder,
        rng: random.Random,
        kinds: Sequence[str],
    ) -> None:
        self._kinds = kinds
        self._cluster = cluster
        self._recorder = recorder
        self._rng = rng
        # A server has one fault at a time, and so have Postgres and Redis.
        self._locks: dict[object, asyncio.Lock] = {}
        self._faults: dict[str, Callable[[], Awaitable[None]]] = {
            "kill": self.kill,
            "terminate": self.terminate,
            "freeze": self.freeze,
            "restart postgres": self.restart_postgres,
            "end listeners": self.end_listeners,
            "restart redis": self.restart_redis,
            "flush redis": self.flush_redis,
            "pause redis": self.pause_redis,
        }

    async def each_once(self) -> None:
        """Inject every kind of fault once, in random order."""
        for kind in self._rng.sample(self._kinds, len(self._kinds)):
            await asyncio.sleep(self._rng.uniform(*SHORT_REST_SECONDS))
            await self._faults[kind]()

    async def for_(self, seconds: float) -> None:
        """Inject faults one after the other, sometimes two at once, for at least `seconds`."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            await asyncio.sleep(self._rng.uniform(*REST_SECONDS))
            count = 2 if len(self._kinds) > 1 and self._rng.random() < TOGETHER else 1
            kinds = self._rng.sample(self._kinds, count)
            await asyncio.gather(*(self._faults[kind]() for kind in kinds))

    def _server(self) -> Server:
        return self._rng.choice(self._cluster.servers)

    def _lock(self, what: object) -> asyncio.Lock:
        return self._locks.setdefault(what, asyncio.Lock())

    async def _end(self, what: str, how: signal.Signals) -> None:
        server, pause = self._server(), self._rng.uniform(0, 2)
        async with self._lock(server):
            with self._recorder.operation("fault", 0, server.number, what=what) as pending:
                await self._cluster.end(server, how)
                await asyncio.sleep(pause)
                # A server that finds no Postgres at its start says so and ends, which is no death.
                async with self._lock("postgres"):
                    await self._cluster.begin(server)
                    await self._cluster.serves(server)
                pending.ok()

    async def kill(self) -> None:
        """Kill a server and start it again."""
        await self._end("kill", signal.SIGKILL)

    async def terminate(self) -> None:
        """Terminate a server with SIGTERM and start it again."""
        await self._end("terminate", signal.SIGTERM)

    async def freeze(self) -> None:
        """Stop a server past its lease, and let it continue."""
        server = self._server()
        seconds = self._cluster.lease * self._rng.uniform(1.5, 2.5)
        async with self._lock(server):
            with self._recorder.operation("fault", 0, server.number, what="freeze") as pending:
                if not server.pid:
                    return
                os.kill(server.pid, signal.SIGSTOP)
                try:
                    await asyncio.sleep(seconds)
                finally:
                    os.kill(server.pid, signal.SIGCONT)
                pending.ok(seconds=seconds)

    async def restart_postgres(self) -> None:
        """Restart Postgres, whatever it is doing."""
        async with self._lock("postgres"):
            with self._recorder.operation("fault", what="restart postgres") as pending:
                await asyncio.to_thread(self._cluster.restart_postgres)
                pending.ok()

    async def end_listeners(self) -> None:
        """End the connections over which Postgres notifies the servers."""
        async with self._lock("postgres"):
            with self._recorder.operation("fault", what="end listeners") as pending:
                pending.ok(count=await asyncio.to_thread(self._cluster.end_listeners))

    async def restart_redis(self) -> None:
        """Stop Redis for a while and start it without its data."""
        seconds = self._rng.uniform(0, 3)
        async with self._lock("redis"):
            with self._recorder.operation("fault", what="restart redis") as pending:
                await asyncio.to_thread(self._cluster.valkey.stop)
                await asyncio.sleep(seconds)
                await asyncio.to_thread(self._cluster.valkey.start)
                pending.ok()

    async def flush_redis(self) -> None:
        """Delete everything in Redis."""
        async with self._lock("redis"):
            with self._recorder.operation("fault", what="flush redis") as pending:
                await asyncio.to_thread(self._cluster.valkey.flush)
                pending.ok()

    async def pause_redis(self) -> None:
        """Let Redis answer nothing, without closing a connection."""
        async with self._lock("redis"):
            with self._recorder.operation("fault", what="pause redis") as pending:
                with self._cluster.valkey.paused():
                    await asyncio.sleep(PAUSE_SECONDS)
                pending.ok()
