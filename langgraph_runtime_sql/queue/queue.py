"""Queue: claims runs as soon as they are committed and hands them to the API's worker.

Nothing polls on the way of a run: committing one wakes the queue. The slow
sweep only finds what a lost worker left behind.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import structlog
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import request_context, runtime
from langgraph_runtime_sql.claim import Claim
from langgraph_runtime_sql.clock import elapsed
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.errors import GraphExited, NotStarted, SupersededAttempt
from langgraph_runtime_sql.events import bus
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.metrics import workers
from langgraph_runtime_sql.ops.runs import claim as run_claim
from langgraph_runtime_sql.ops.runs import end as run_end
from langgraph_runtime_sql.ops.runs import leases, recovery
from langgraph_runtime_sql.queue import node_threads, system_exit
from langgraph_runtime_sql.queue.isolated_loops import IsolatedLoops
from langgraph_runtime_sql.queue.stuck_runs import StuckRuns
from langgraph_runtime_sql.runtime import Runtime
from langgraph_runtime_sql.tenancy import scope

logger = structlog.stdlib.get_logger(__name__)

SWEEP_SECONDS = run_claim.LEASE_SECONDS / 3
# After an error of the database: long enough not to be hot, short enough not to be noticed.
PAUSE_SECONDS = 0.5
# A worker that ignores its cancellation this long is left behind.
ABANDON_SECONDS = 10.0
# And this long, what then is to be handed back waits for the database.
HAND_BACK_SECONDS = 5.0


@dataclass(slots=True)
class _Active:
    run: Row
    attempt: int
    task: asyncio.Task[Any]
    began: float
    # Whether it was told to stop.
    asked_to_stop: bool = False


def drain() -> None:
    """Claim nothing more, where another process can: this one is about to stop.

    From any thread, and from a signal's handler. Does nothing where no queue works.
    """
    try:
        here = runtime.current()
    except NotStarted:
        return
    if here.queue is not None and not here.database.alone:
        here.queue.draining = True


class Queue:
    """Starts runs, at most `slots` at once, until it is cancelled.

    Args:
        here: The runtime whose database has the runs. While the queue works it is its `queue`.
        slots: How many runs may run in this process at once.
        isolated: Give each slot an event loop in a thread of its own.
    """

    def __init__(self, here: Runtime, slots: int, *, isolated: bool = False) -> None:
        self._here = here
        self.slots = slots
        # By run and attempt: one attempt may still be packing up when the next begins.
        self.active: dict[tuple[str, int], _Active] = {}
        self.draining = False
        self.stopping = False
        self.renewal = leases.Renewal()
        self._turns = run_claim.Turns()
        self._loops = IsolatedLoops(slots) if isolated else None
        self._wake = asyncio.Event()
        # Those of `active` that were no longer ours at the last renewal.
        self._gone: set[tuple[str, int]] = set()
        self._webhooks: set[asyncio.Task[None]] = set()
        self._stuck_runs = StuckRuns()
        # A run that is claimed but not yet in `active` would look lost to a sweep.
        self._claiming = asyncio.Lock()
        # Whether runs may be due that wait for another to end; else an end frees none.
        self._waiting = False

    async def run(self) -> None:
        """Work until cancelled; then let runs finish within the grace period, or hand them back."""
        self._here.queue = self
        workers.max = self.slots
        loop = asyncio.get_running_loop()

        def wake() -> None:
            loop.call_soon_threadsafe(self._wake.set)

        leave = self._here.bus.on_queued(wake)
        unguard = system_exit.keep_in(loop)
        # Two, because a sweep may find much to do, and leases end meanwhile.
        keepers = [
            asyncio.create_task(self._renew_forever(), name="queue-renewal"),
            asyncio.create_task(self._sweep_forever(), name="queue-sweep"),
        ]
        try:
            await self._work()
        finally:
            leave()
            await self._stop()
            for keeper in keepers:
                keeper.cancel()
            unguard()
            workers.max = workers.active = 0
            if self._here.queue is self:
                self._here.queue = None

    async def _work(self) -> None:
        while True:
            self._wake.clear()
            free = self.slots - len(self.active)
            delay: float | None = SWEEP_SECONDS
            if free > 0 and not self.draining:
                try:
                    delay = await self._start_due(free)
                except Exception:
                    logger.exception("Cannot claim runs", action="claim_failed")
                    delay = PAUSE_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._wake.wait()

    async def _start_due(self, free: int) -> float:
        """Start what is due; returns the seconds after which to look again unless woken."""
        async with self._claiming:
            began = elapsed()
            claimed = await self._here.database.write(
                lambda conn: run_claim.claim(conn, free, self._turns), urgent=True
            )
            # With all slots taken nobody looks at what comes, or becomes due, until one is free.
            self._waiting = claimed.waiting or len(claimed.runs) == free
            for run, attempt in claimed.runs:
                self._start(run, attempt, began)
        if len(claimed.runs) == free or claimed.due_in is None:
            return SWEEP_SECONDS
        return min(SWEEP_SECONDS, claimed.due_in)

    def _start(self, run: Row, attempt: int, since: float) -> None:
        key = str(run["run_id"]), attempt
        tenant = run.pop("tenant")
        # What a run does is its tenant's, whoever else this process works for. A run without a
        # tenant is the platform's own work.
        whose = scope.EVERYTHING if tenant is None else scope.TenantScope(tenant)
        with scope.within(whose):
            task = asyncio.create_task(self._attempt(run, attempt, since), name=f"run-{key[0]}")
        self.active[key] = _Active(run, attempt, task, elapsed())
        workers.active = len(self.active)
        task.add_done_callback(lambda _: self._finished(key))

    def _finished(self, key: tuple[str, int]) -> None:
        self.active.pop(key, None)
        workers.active = len(self.active)
        # While a claim is under way, what it will say of those that wait is outdated.
        if self._waiting or self._claiming.locked():
            self._wake.set()

    async def _attempt(self, run: Row, attempt: int, since: float) -> None:
        """One attempt at a run, whatever comes of it; its lease is one of `since`."""
        from langgraph_api.config import BG_JOB_MAX_RETRIES
        from langgraph_api.worker import worker

        run_id = run["run_id"]
        temporary = str(run["thread_id"]) if run["kwargs"].get("temporary") else None
        # The fence: everything written in this task's context is checked against it.
        request_context.claim.set(Claim(str(run_id), attempt, temporary, since, run_claim.OWNER))
        main_loop = asyncio.get_running_loop()
        try:
            if attempt > 1:
                await self._here.bus.catch_up(StreamKey.here(run["thread_id"]))
            result = await self._on_its_loop(run, worker(run, attempt, main_loop))
        except asyncio.CancelledError:
            await self._hand_back(run, attempt)
            raise
        except SupersededAttempt:
            _note_lost(str(run_id), attempt)
        except Exception as error:  # noqa: BLE001  # said by `_note_failed`
            _note_failed(str(run_id), error)
            if attempt > BG_JOB_MAX_RETRIES:
                await self._give_up(run, attempt, error)
            else:
                await self._hand_back(run, attempt)
        else:
            if result and result["webhook"]:
                self._call_webhook(result)

    async def _on_its_loop(self, run: Row, work: Coroutine[Any, Any, Any]) -> Any:
        from langgraph_api.graph import is_js_graph

        configurable = (run["kwargs"].get("config") or {}).get("configurable") or {}
        graph_id = configurable.get("graph_id")
        if self._loops is None or (graph_id and is_js_graph(graph_id)):
            try:
                return await work
            except SystemExit as error:
                # From Python 3.12 on the API's worker runs the graph in this task.
                raise GraphExited(error.code) from error
        return await self._loops.run(work)

    async def _hand_back(self, run: Row, attempt: int) -> None:
        """Free the run if its worker left it running."""
        try:
            # The next attempt's events come after this one's.
            await self._here.bus.flush()
            await self._here.database.write(
                lambda conn: run_claim.release(
                    conn,
                    run["run_id"],
                    attempt,
                    counted=not self.stopping,
                    owner=run_claim.OWNER,
                )
            )
        except Exception:
            # The sweep will find it.
            logger.exception("Cannot hand back a run", action="hand_back_failed")

    async def _give_up(self, run: Row, attempt: int, error: Exception) -> None:
        """End a run that even the worker's own way of failing it fails for."""
        try:
            await self._here.database.write(
                lambda conn: run_end.give_up(conn, run["run_id"], attempt, error, run_claim.OWNER)
            )
        except Exception:
            # The sweep will find it.
            logger.exception("Cannot end a run", action="give_up_failed")

    def _call_webhook(self, result: Any) -> None:
        from langgraph_api.webhook import call_webhook

        task = asyncio.create_task(call_webhook(result), name=f"webhook-{result['run']['run_id']}")
        self._webhooks.add(task)
        task.add_done_callback(self._webhooks.discard)

    async def _renew_forever(self) -> None:
        """Renew our leases."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                if self.active:
                    await self._renew()
            except Exception:
                logger.exception("Cannot renew leases", action="renewal_failed")

    async def _sweep_forever(self) -> None:
        """Free what lost its worker."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                await self.sweep()
                async with self._claiming:
                    self._here.bus.leave_all_but(self.working())
                self._here.bus.expire()
                self._look_for_stuck_runs()
            except Exception:
                logger.exception("The sweep failed", action="sweep_failed")

    def _look_for_stuck_runs(self) -> None:
        from langgraph_api.config import BG_JOB_TIMEOUT_SECS

        too_early = elapsed() - BG_JOB_TIMEOUT_SECS
        self._stuck_runs.look(
            slots=[
                k for k, each in self.active.items() if each.asked_to_stop or each.began < too_early
            ],
            threads=[k for k in node_threads.at_work() if k not in self.active],
        )

    async def _renew(self) -> None:
        """Renew our leases; where there are other processes, hear what was not heard from them."""
        if self._here.database.alone:
            await self._here.database.write(run_claim.renew, urgent=True)
            return
        active, began = set(self.active), elapsed()
        held = await self._here.database.write(run_claim.renew_held, urgent=True)
        kept = frozenset((str(row["run_id"]), row["attempt"]) for row in held)
        self.renewal = leases.Renewal(began, kept)
        for row in held:
            if row["cancel_action"]:
                control = bus.Control(row["cancel_action"], row["cancel_reason"])
                self._here.bus.send_control(str(row["run_id"]), control)
        gone = active - kept
        # Twice, because one that has just ended is still packing up.
        for key in gone & self._gone:
            if (lost := self.active.get(key)) is not None:
                _note_lost(*key)
                lost.asked_to_stop = True
                lost.task.cancel("Another process has taken the run over")
        self._gone = gone

    async def sweep(self) -> None:
        """Free the runs that lost their worker, our own and those of processes that are gone."""
        database = self._here.database
        if database.alone:
            await self._sweep("all")
            return
        # Only Postgres is shared; whoever serves a file need not wait for its driver.
        from langgraph_runtime_sql.database.postgres import stuck_transactions

        if ended := await database.write(stuck_transactions.end, urgent=True):
            logger.warning("Ended transactions that got stuck", action="unstuck", count=ended)
        await self._sweep("ended")

    async def _sweep(self, include: run_claim.Include, *, counted: bool = True) -> None:
        freed: list[str] = []
        after: int | None = 0
        while after is not None:
            # Not all the time, so that claims go on beside a backlog.
            async with self._claiming:
                some, after = await recovery.free_some(
                    self.working(), include, after, counted=counted
                )
            freed += some
        if freed:
            logger.warning("Freed lost runs", action="runs_recovered", run_ids=freed)

    def working(self) -> set[str]:
        """The ids of the runs that it works on."""
        return {run_id for run_id, _ in self.active}

    def note_stop_request(self, run_id: str) -> None:
        """A run that it works on was told to stop. From any thread."""
        for key, active in list(self.active.items()):
            if key[0] == run_id:
                active.asked_to_stop = True

    async def _hand_back_rest(self) -> None:
        """Free what was claimed, or started, too late to hand itself back."""
        try:
            async with asyncio.timeout(HAND_BACK_SECONDS):
                # A claim that nobody waits for any more may still be on its way.
                await self._here.database.settled()
                # What others have lost is for those who go on.
                include: run_claim.Include = "all" if self._here.database.alone else "own"
                await self._sweep(include, counted=False)
        except Exception:
            # The next start will find them.
            logger.exception("Cannot hand back runs", action="hand_back_failed")

    async def _stop(self) -> None:
        self.stopping = True
        tasks = [each.task for each in self.active.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=self._here.options.grace_seconds)
            for task in tasks:
                task.cancel("The server is stopping")
            await asyncio.wait(tasks, timeout=ABANDON_SECONDS)
        await self._hand_back_rest()
        if self._webhooks:
            await asyncio.wait(self._webhooks, timeout=ABANDON_SECONDS)
        if self._loops is not None:
            self._loops.close()


def _note_failed(run_id: str, error: Exception) -> None:
    if isinstance(error, HTTPException) and error.status_code == HTTPStatus.NOT_FOUND:
        # Somebody has deleted it meanwhile.
        logger.info("A run is gone that was worked on", run_id=run_id, why=error.detail)
    else:
        logger.error("A worker failed", action="worker_failed", run_id=run_id, exc_info=error)


def _note_lost(run_id: str, attempt: int) -> None:
    logger.warning("Lost a run to another process", run_id=run_id, attempt=attempt)
