"""Play scenarios on all servers at once, many at a time, in one event loop thread."""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .normalise import Normaliser
from .receiver import Receiver
from .registry import Scenario
from .servers import Server
from .world import World, open_transport

REFERENCE = "stock"
AT_ONCE = 8
SCENARIO_SECONDS = 120.0


@dataclass(frozen=True)
class Outcome:
    """The normalised answer of one server, or the traceback if the scenario failed."""

    server: str
    seen: Any = None
    broke: str | None = None


Outcomes = dict[str, Outcome]


class Runner:
    """Plays scenarios in a background thread; :meth:`outcomes` waits for one of them.

    :param servers: the servers by name, with the reference, for scenarios with and without owners.
    :param graphs: names of the graphs that all servers serve.
    """

    def __init__(self, servers: dict[bool, dict[str, Server]], graphs: list[str]) -> None:
        self._servers = servers
        self._graphs = graphs
        self._futures: dict[str, Future[Outcomes]] = {}
        self._thread: threading.Thread | None = None

    def start(self, scenarios: Iterable[Scenario]) -> None:
        """Start to play: first the scenarios that may run together, then the others one by one."""
        chosen = list(scenarios)
        self._futures = {scenario.name: Future() for scenario in chosen}
        self._thread = threading.Thread(target=self._run, args=[chosen])
        self._thread.start()

    def _run(self, scenarios: list[Scenario]) -> None:
        try:
            asyncio.run(self._play_all(scenarios))
        except BaseException as error:
            # Without this, callers would wait for ever for the remaining futures.
            for future in self._futures.values():
                if not future.done():
                    future.set_exception(error)
            raise

    def outcomes(self, name: str) -> Outcomes:
        """Wait until the scenario has been played and return the answer of each server."""
        return self._futures[name].result()

    @property
    def names(self) -> set[str]:
        """The names of the scenarios that are played."""
        return set(self._futures)

    def join(self) -> None:
        """Wait until everything has been played."""
        if self._thread is not None:
            self._thread.join()

    async def _play_all(self, scenarios: list[Scenario]) -> None:
        gate = asyncio.Semaphore(AT_ONCE)
        async with _receiving() as receiver, AsyncExitStack() as stack:
            scratch = Path(stack.enter_context(TemporaryDirectory()))
            transport = await stack.enter_async_context(open_transport())

            async def play(scenario: Scenario) -> None:
                async with gate:
                    servers = self._servers[scenario.owners]
                    outcomes = await asyncio.gather(
                        *(
                            self._observe(scenario, s, World(s.url, receiver, transport, scratch))
                            for s in servers.values()
                        )
                    )
                    found = dict(zip(servers, outcomes, strict=True))
                    self._futures[scenario.name].set_result(found)

            await asyncio.gather(*(play(s) for s in scenarios if not s.alone))
            for scenario in scenarios:
                if scenario.alone:
                    await play(scenario)

    async def _observe(self, scenario: Scenario, server: Server, world: World) -> Outcome:
        try:
            async with asyncio.timeout(SCENARIO_SECONDS):
                seen = await scenario.play(world)
            return Outcome(server.name, Normaliser(server.url, self._graphs)(seen))
        except Exception:  # noqa: BLE001 - any failure is this server's outcome, and reported
            return Outcome(server.name, broke=traceback.format_exc())


@asynccontextmanager
async def _receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    serving = asyncio.create_task(receiver.serve())
    try:
        yield receiver
    finally:
        receiver.stop()
        await serving
