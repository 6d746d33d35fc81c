"""State shared by the measures: the scale, and servers that are started on first use."""

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from bench import fill, servers
from bench.backends import Postgres, postgres
from bench.load import warm_up
from bench.servers import Server


@dataclass(frozen=True)
class Scale:
    """Number and duration of samples. The quick scale has too few for a reliable verdict."""

    starts: int = 9
    samples: int = 15
    streams: int = 3
    tokens: int = 3000
    bursts: int = 3
    burst_seconds: float = 8.0
    searches: int = 500
    abuse_seconds: float = 20.0


QUICK = Scale(1, samples=5, streams=1, bursts=1, burst_seconds=4.0, searches=200, abuse_seconds=8.0)
CLIENTS = 30
THREADS = 100_000
MANY_THREADS = 1_000_000


@dataclass
class Stage:
    scratch: Path
    scale: Scale
    stack: AsyncExitStack
    before: Path | None = None
    """A checkout of an older state of this project, to compare with; None: no comparison."""
    _postgres: Postgres | None = None
    _pair: tuple[Server, Server] | None = None
    _filled: fill.Filled | None = None
    _older: Server | None = None

    async def older(self) -> Server | None:
        """Return a server of the older state, warmed up; None without one."""
        if self._older is None and self.before is not None:
            self._older = await self.stack.enter_async_context(
                servers.ours(self.scratch, name="before", code=self.before)
            )
            await warm_up(self._older)
        return self._older

    async def pair(self) -> tuple[Server, Server]:
        """Return stock and our server, both warmed up and nearly empty; started once."""
        if self._pair is None:
            stock = await self.stack.enter_async_context(servers.stock(self.scratch))
            ours = await self.stack.enter_async_context(servers.ours(self.scratch))
            await warm_up(stock)
            await warm_up(ours)
            self._pair = stock, ours
        return self._pair

    def postgres(self) -> Postgres:
        """Return a Postgres server; started once."""
        if self._postgres is None:
            self._postgres = self.stack.enter_context(postgres(self.scratch))
        return self._postgres

    async def filled(self) -> fill.Filled:
        """Return a database of the server with THREADS threads; created once."""
        if self._filled is None:
            file = self.scratch / "filled.db"
            async with servers.ours(self.scratch, f"sqlite:///{file}", "seed") as server:
                await fill.seed(server)
            self._filled = fill.multiply(file, THREADS)
        return self._filled
