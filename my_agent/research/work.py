"""Work: bound the operations of a worker by the user's flags, the clock and the budgets.

Every operation that may take long goes through `Work.guarded`. While it waits it sends heartbeats,
looks at the flag of the project, and gives up when the time is over.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer

from my_agent.research import files, progress, projects
from my_agent.research.budgets import Budget, Budgets, totals
from my_agent.research.model import ProjectSnapshot
from my_agent.research.projects import Flag, Key, Project
from my_agent.research.settings import ResearchSettings
from my_agent.research.state import State
from my_agent.user import caller

T = TypeVar("T")
Json = dict[str, Any]

logger = logging.getLogger(__name__)

# Seconds between two looks at the flag; a new operation looks at a flag that is at most this old.
TICK = 0.25
# Seconds that a running operation has after a cancellation. What it brings is kept.
GRACE = 1.0
_GATHERING = ("planning", "searching", "extracting")


class Stopped(Exception):
    """The user wants the project to stop; nothing new may start.

    Attributes:
        flag: what the user wants.
    """

    def __init__(self, flag: Flag) -> None:
        super().__init__(flag)
        self.flag = flag


@dataclass
class _Live:
    """What this process knows about a project that it works on."""

    project: Project | None = None
    looked_at: float = 0.0
    beat_at: float = 0.0
    backed_up_at: float = field(default_factory=time.monotonic)
    snapshot: ProjectSnapshot | None = None


_live: dict[Key, _Live] = {}


@dataclass
class Work:
    """The surroundings of one worker.

    Attributes:
        key: the project.
        stage: the stage of the worker.
        settings: the settings.
        budget: what is left.
        run_id: the run.
        config: config of the run.
    """

    key: Key
    stage: str
    settings: ResearchSettings
    budget: Budget
    run_id: str | None
    _writer: Callable[[Any], None]
    config: RunnableConfig = field(default_factory=RunnableConfig)

    @classmethod
    def of(cls, config: RunnableConfig, state: State, stage: str = "") -> "Work":
        """Return the surroundings of a node.

        Args:
            config: config of the run; the project is its thread.
            state: the state; a parallel worker has none.
            stage: the stage; by default that of the state.
        """
        settings = ResearchSettings.from_environment()
        thread_id = str((config.get("configurable") or {}).get("thread_id") or "local")
        run_id = (config.get("metadata") or {}).get("run_id")
        return cls(
            key=Key(caller(config).tenant_id, thread_id),
            stage=stage or state.get("stage", "planning"),
            settings=settings,
            budget=Budget(
                Budgets.of(settings, state.get("limits")),
                state.get("usage") or {},
                settings.research_stage_share,
                settings.research_report_reserve,
            ),
            run_id=None if run_id is None else str(run_id),
            _writer=get_stream_writer(),
            config=config,
        )

    # --- flags

    async def flag(self, *, fresh: bool = False) -> Flag:
        """Return what the user wants; the answer is at most `TICK` seconds old.

        A project that was stopped by force counts as cancelled.
        """
        live = _live.setdefault(self.key, _Live())
        if fresh or live.project is None or time.monotonic() - live.looked_at > TICK:
            live.project = await projects.find(self.key)
            live.looked_at = time.monotonic()
        if live.project is None:
            # The project was deleted.
            return "cancel"
        return live.project.flag if live.project.status in projects.ACTIVE else "cancel"

    def forbids(self, flag: Flag) -> bool:
        """Return whether a flag forbids new operations in this stage."""
        return flag in ("cancel", "pause") or (flag == "finish" and self.stage in _GATHERING)

    async def check(self) -> None:
        """Raise `Stopped` if nothing new may start."""
        flag = await self.flag()
        if self.forbids(flag):
            raise Stopped(flag)

    async def guarded(self, operation: Callable[[], Awaitable[T]], seconds: float) -> T:
        """Run an operation with heartbeats.

        A paused project lets it end; a cancelled one, or one that shall finish, gives it `GRACE`.

        Args:
            operation: called once.
            seconds: the time that it has.

        Raises:
            Stopped: the user has stopped the project.
            TimeoutError: the time is over.
        """
        await self.check()
        clock = asyncio.get_running_loop().time
        deadline, stop_at = clock() + seconds, None
        task = asyncio.ensure_future(operation())
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=min(TICK, max(0.0, deadline - clock())))
                if task.done():
                    break
                if clock() >= deadline:
                    raise TimeoutError(f"no answer within {seconds:g} seconds")
                flag = await self.flag()
                if flag != "pause" and self.forbids(flag):
                    stop_at = stop_at or clock() + GRACE
                    if clock() >= stop_at:
                        raise Stopped(flag)
                await self.beat()
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                # An operation that does not let itself be cancelled must not hold up the rest.
                await asyncio.wait({task}, timeout=1.0)

    # --- progress

    async def beat(self) -> None:
        """Send a heartbeat and save a backup, if the last ones are old enough."""
        live = _live.setdefault(self.key, _Live())
        moment = time.monotonic()
        if moment - live.beat_at >= self.settings.research_heartbeat_seconds:
            live.beat_at = moment
            found = await self._change(lambda found: found)
            if found is None:
                # The project was deleted: nothing of it is written any more.
                live.snapshot = None
            self._emit(found)
        if live.snapshot and moment - live.backed_up_at >= files.BACKUP_SECONDS:
            live.backed_up_at = moment
            await files.back_up(self.settings, self.key, live.snapshot, latest=False)

    async def began(self, item: str) -> None:
        """Note and publish that an item has begun."""
        self._emit(await self._change(lambda found: progress.item(found, self.stage, item)))

    async def ended(self, item: str) -> None:
        """Note and publish that an item has ended."""
        self._emit(await self._change(lambda found: progress.item(found, self.stage, item, done=1)))

    async def publish(self, change: Callable[[Json], Json]) -> None:
        """Change the progress and publish it."""
        self._emit(await self._change(change))

    def keep(self, snapshot: ProjectSnapshot) -> None:
        """Keep a snapshot for the next backup."""
        _live.setdefault(self.key, _Live()).snapshot = snapshot

    def leave(self) -> None:
        """Forget what this process knows about the project."""
        _live.pop(self.key, None)

    async def _change(self, change: Callable[[Json], Json]) -> Project | None:
        # The row is that of this run, unless the project was stopped by force meanwhile.
        return await projects.change(
            self.key,
            lambda found: {"progress": change(found.progress), "beat_at": projects.now()},
        )

    def _emit(self, project: Project | None) -> None:
        if project is not None:
            _live.setdefault(self.key, _Live()).beat_at = time.monotonic()
            self._writer({"type": "progress", **progress.view(project)})

    # --- budgets

    def spent(self) -> dict[str, float]:
        """Return what the project has spent, by budget."""
        return totals(self.budget.usage)
