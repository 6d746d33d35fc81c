"""Queue: claim runs when they are committed and pass them to the API's worker.

A commit wakes the queue. A slow sweep only finds runs that lost their worker.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import structlog
from langgraph.errors import GraphDrained
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import alive, json_codec, request_context, runtime, stopping
from langgraph_runtime_sql.claim import Claim
from langgraph_runtime_sql.clock import elapsed
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.errors import GraphExited, NotStarted, SupersededAttempt
from langgraph_runtime_sql.events.wire import Control
from langgraph_runtime_sql.metrics import workers
from langgraph_runtime_sql.ops.runs import claim as run_claim
from langgraph_runtime_sql.ops.runs import end as run_end
from langgraph_runtime_sql.ops.runs import leases, recovery, run_metrics
from langgraph_runtime_sql.ops.runs.turns import TenantRotation
from langgraph_runtime_sql.periodic import periodic
from langgraph_runtime_sql.queue import node_threads, run_controls, system_exit
from langgraph_runtime_sql.queue.isolated_loops import IsolatedLoops
from langgraph_runtime_sql.queue.stuck_runs import StuckRuns
from langgraph_runtime_sql.runtime import Runtime
from langgraph_runtime_sql.statuses import RunStatus
from langgraph_runtime_sql.tenancy import scope
from langgraph_runtime_sql.webhooks import outbox

logger = structlog.stdlib.get_logger(__name__)

SWEEP_SECONDS = run_claim.LEASE_SECONDS / 3
# The least time between two sweeps. A lost run is found this long after the end of its lease.
LEAST_SWEEP_SECONDS = 0.5
# The delay after a database error.
PAUSE_SECONDS = 0.5
# A worker that ignores its cancellation for this long is abandoned.
ABANDON_SECONDS = 10.0
# How long a stop waits for the database to hand back the remaining runs.
HAND_BACK_SECONDS = 5.0


@dataclass(slots=True)
class _Active:
    task: asyncio.Task[Any]
    began: float
    # By which it can be asked to stop at the end of a step.
    control: Any | None
    asked_to_stop: bool = False


def drain() -> None:
    """Begin to stop: the grace period begins, and other processes get the runs that are queued.

    Runs that can go on elsewhere, or after a restart, stop at the end of their steps.

    Call it from any thread or signal handler. It does nothing without a runtime.
    """
    try:
        current = runtime.current()
    except NotStarted:
        return
    if current.stopping is not None:
        current.stopping.begin()
    if current.queue is not None:
        current.queue.drain()


class Queue:
    """Execute runs, at most `slots` at once, until cancelled.

    Args:
        opened: The runtime. Its `queue` is this one while it works.
        slots: How many runs the process executes at once.
        isolated: Whether each slot gets its own event loop in a thread.
    """

    def __init__(self, opened: Runtime, slots: int, *, isolated: bool = False) -> None:
        self._runtime = opened
        self.slots = slots
        # The previous attempt at a run may still clean up when the next one starts.
        self.active: dict[tuple[str, int], _Active] = {}
        self.draining = False
        self.stopping = False
        self.renewal = leases.Renewal()
        self._rotation = TenantRotation()
        self._reserved = opened.options.limits.reserved_slots(slots)
        self._loops = IsolatedLoops(slots) if isolated else None
        self._wake = asyncio.Event()
        # Attempts in `active` that had lost their lease at the last renewal.
        self._gone: set[tuple[str, int]] = set()
        self._stuck_runs = StuckRuns()
        # Held while claiming: a sweep would take a claimed run that is not in `active` for lost.
        self._claiming = asyncio.Lock()
        # Whether runs may wait for another run's end. Otherwise an end need not wake the queue.
        self._waiting = False

    async def run(self) -> None:
        """Work until cancelled. Then give runs the grace period, and hand back the rest."""
        self._runtime.queue = self
        if not self._runtime.database.alone:
            alive.hold(run_claim.OWNER)
        workers.max = self.slots
        loop = asyncio.get_running_loop()

        def wake() -> None:
            loop.call_soon_threadsafe(self._wake.set)

        unsubscribe = self._runtime.bus.controls.on_queued(wake)
        unguard = system_exit.guard(loop)
        # Separate tasks, because leases must be renewed during a long sweep.
        upkeep = [
            asyncio.create_task(
                periodic(self._renew, SWEEP_SECONDS, "Lease renewal failed", "renewal_failed"),
                name="queue-renewal",
            ),
            asyncio.create_task(
                periodic(self._sweep_all, self._until_sweep, "Sweep failed", "sweep_failed"),
                name="queue-sweep",
            ),
        ]
        try:
            await self._work()
        finally:
            unsubscribe()
            await self._stop()
            for task in upkeep:
                task.cancel()
            unguard()
            workers.max = workers.active = 0
            if self._runtime.queue is self:
                self._runtime.queue = None

    async def _work(self) -> None:
        while True:
            self._wake.clear()
            free = self.slots - len(self.active)
            delay: float | None = SWEEP_SECONDS
            if free > 0 and not self.draining:
                try:
                    delay = await self._start_due(free)
                except Exception:
                    logger.exception("Claim failed", action="claim_failed")
                    delay = PAUSE_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._wake.wait()

    async def _start_due(self, free: int) -> float:
        """Start due runs. Return the seconds until the next look, unless woken."""
        async with self._claiming:
            began = elapsed()
            claimed = await self._runtime.database.write(
                lambda conn: run_claim.claim(conn, free, self._rotation, reserved=self._reserved),
                urgent=True,
            )
            # With all slots taken, waiting and delayed runs are only looked at when a slot is free.
            self._waiting = claimed.waiting or len(claimed.runs) == free
            for run, attempt in claimed.runs:
                self._start(run, attempt, began)
        if len(claimed.runs) == free or claimed.due_in is None:
            return SWEEP_SECONDS
        return min(SWEEP_SECONDS, claimed.due_in)

    def _start(self, run: Row, attempt: int, since: float) -> None:
        key = str(run["run_id"]), attempt
        tenant = run.pop("tenant")
        watch, control = run_metrics.Attempt(run, attempt, tenant), run_controls.new()
        # A run acts for its tenant. A run without a tenant belongs to the platform.
        with scope.within(scope.EVERYTHING if tenant is None else scope.TenantScope(tenant)):
            task = asyncio.create_task(
                self._attempt(run, attempt, since, watch, control), name=f"run-{key[0]}"
            )
        self.active[key] = _Active(task, elapsed(), control)
        if self.draining and control is not None:
            # Its claim was under way.
            control.request_drain(stopping.REASON)
        workers.active = len(self.active)
        task.add_done_callback(lambda _: self._finished(key))

    def drain(self) -> None:
        """Claim no more runs if others execute them, and ask those here to stop. Call it from any thread."""
        controls = [each.control for each in list(self.active.values()) if each.control is not None]
        # On SQLite others are the next process. It waits for the runs here anyway, unless these can be asked.
        if controls or not self._runtime.database.alone:
            self.draining = True
        for control in controls:
            control.request_drain(stopping.REASON)

    def _finished(self, key: tuple[str, int]) -> None:
        self.active.pop(key, None)
        workers.active = len(self.active)
        # A claim under way does not see that this run has ended.
        if self._waiting or self._claiming.locked():
            self._wake.set()

    async def _attempt(
        self, run: Row, attempt: int, since: float, watch: run_metrics.Attempt, control: Any
    ) -> None:
        """Execute one attempt at a run. `since` is when its claim began."""
        from langgraph_api.config import BG_JOB_MAX_RETRIES
        from langgraph_api.worker import worker

        run_id = run["run_id"]
        temporary = str(run["thread_id"]) if run["kwargs"].get("temporary") else None
        # Fencing: every write in this task's context checks the claim.
        request_context.claim.set(Claim(str(run_id), attempt, temporary, since, run_claim.OWNER))
        watch.begin()
        loop, more = asyncio.get_running_loop(), run_controls.arguments(control)
        try:
            result = await self._run_worker(run, worker(run, attempt, loop, **more))
        except asyncio.CancelledError:
            watch.returned()
            await self._hand_back(run, attempt)
            if self.stopping:
                logger.info("Run returned to the queue", run_id=str(run_id), attempt=attempt)
            raise
        except GraphDrained as drained:
            # The worker has returned it to the queue.
            watch.returned()
            why = drained.reason
            logger.info("Run stopped at the end of a step", run_id=str(run_id), why=why)
        except SupersededAttempt as error:
            watch.returned(error)
            _log_lost(str(run_id), attempt)
        except Exception as error:  # noqa: BLE001  # logged by `_log_failed`
            _log_failed(str(run_id), error)
            if attempt > BG_JOB_MAX_RETRIES:
                await self._give_up(run, attempt, error)
                watch.ended(RunStatus.ERROR, error)
            else:
                await self._hand_back(run, attempt)
                watch.returned(error)
        else:
            if result:
                watch.ended(result["status"] or "unknown", result["exception"])
            if temporary and result and result["webhook"]:
                await self._complete_webhook(run["run_id"], result)

    async def _run_worker(self, run: Row, work: Coroutine[Any, Any, Any]) -> Any:
        from langgraph_api.graph import is_js_graph

        configurable = (run["kwargs"].get("config") or {}).get("configurable") or {}
        graph_id = configurable.get("graph_id")
        if self._loops is None or (graph_id and is_js_graph(graph_id)):
            try:
                return await work
            except SystemExit as error:
                # Since Python 3.12 the API's worker runs the graph in this task.
                raise GraphExited(error.code) from error
        return await self._loops.run(work)

    async def _hand_back(self, run: Row, attempt: int) -> None:
        """Free the run if its worker left it running."""
        try:
            # This attempt's events must precede those of the next one.
            await self._runtime.bus.publisher.flush()
            await self._runtime.database.write(
                lambda conn: run_claim.release(
                    conn,
                    run["run_id"],
                    attempt,
                    counted=not self.stopping,
                    owner=run_claim.OWNER,
                )
            )
        except Exception:
            # The sweep finds the run.
            logger.exception("Hand-back failed", action="hand_back_failed")

    async def _give_up(self, run: Row, attempt: int, error: Exception) -> None:
        """End a run that the worker could not even mark as failed."""
        try:
            await self._runtime.database.write(
                lambda conn: run_end.give_up(conn, run["run_id"], attempt, error, run_claim.OWNER)
            )
        except Exception:
            # The sweep finds the run.
            logger.exception("Ending a run failed", action="give_up_failed")

    async def _complete_webhook(self, run_id: Any, result: Any) -> None:
        """Add the final status of a stateless run, of which no row is left, to its webhook."""
        outcome = {"status": result["status"]}
        if result["checkpoint"] is not None:
            outcome["values"] = result["checkpoint"]["values"]
        if (error := result["exception"]) is not None:
            outcome["error"] = json_codec.plain(error)
        try:
            await self._runtime.database.write(lambda conn: outbox.complete(conn, run_id, outcome))
        except Exception:
            # It is sent without them.
            logger.exception("Completing a webhook failed", action="webhooks_failed")

    async def _until_sweep(self) -> float:
        """Return the seconds until the next sweep, which comes when the lease of a run ends."""
        if self._runtime.database.alone:
            return SWEEP_SECONDS
        try:
            ends = await recovery.next_lease_end()
        except Exception:
            logger.exception("Looking for the end of a lease failed", action="sweep_failed")
            ends = None
        if ends is None:
            return SWEEP_SECONDS
        return min(SWEEP_SECONDS, max(LEAST_SWEEP_SECONDS, ends))

    async def _sweep_all(self) -> None:
        database = self._runtime.database
        if not database.alone and database.outage.ended_within(2 * SWEEP_SECONDS):
            # No process could renew its leases. Each does so before its runs count as lost.
            return
        await self.sweep()
        async with self._claiming:
            self._runtime.bus.writers.release_others(self.working())
        self._look_for_stuck_runs()

    def _look_for_stuck_runs(self) -> None:
        from langgraph_api.config import BG_JOB_TIMEOUT_SECS

        timed_out = elapsed() - BG_JOB_TIMEOUT_SECS
        self._stuck_runs.look(
            slots=[
                key
                for key, each in self.active.items()
                if each.asked_to_stop or each.began < timed_out
            ],
            threads=[key for key in node_threads.at_work() if key not in self.active],
        )

    async def _renew(self) -> None:
        """Renew the leases. With other processes, also apply cancellations and lost leases."""
        if not self.active:
            return
        if self._runtime.database.alone:
            await self._runtime.database.write(run_claim.renew, urgent=True)
            return
        active, began = set(self.active), elapsed()
        held = await self._runtime.database.write(run_claim.renew_held, urgent=True)
        renewed = frozenset((str(row["run_id"]), row["attempt"]) for row in held)
        self.renewal = leases.Renewal(began, renewed)
        for row in held:
            if row["cancel_action"]:
                control = Control(row["cancel_action"], row["cancel_reason"])
                self._runtime.bus.controls.send(str(row["run_id"]), control)
        gone = active - renewed
        # Only after the second renewal: an attempt that has just ended may still clean up.
        for key in gone & self._gone:
            if (lost := self.active.get(key)) is not None:
                _log_lost(*key)
                lost.asked_to_stop = True
                lost.task.cancel("Another process has taken over the run")
        self._gone = gone

    async def sweep(self) -> None:
        """Free runs that lost their worker, in this process or in one that is gone."""
        database = self._runtime.database
        if database.alone:
            await self._sweep("all")
            return
        # Imported late: a process on SQLite does not need the Postgres driver.
        from langgraph_runtime_sql.database.postgres import stuck_transactions

        if ended := await database.write(stuck_transactions.end, urgent=True):
            logger.warning("Ended stuck transactions", action="unstuck", count=ended)
        await recovery.end_leases_of_the_dead()
        await self._sweep("ended")

    async def _sweep(self, include: run_claim.Include, *, counted: bool = True) -> None:
        freed: list[str] = []
        after: int | None = 0
        while after is not None:
            # Released between pages, so that claims go on during a long sweep.
            async with self._claiming:
                some, after = await recovery.free_some(
                    self.working(), include, after, counted=counted
                )
            freed += some
        if freed:
            logger.warning("Recovered lost runs", action="runs_recovered", run_ids=freed)

    def working(self) -> set[str]:
        """Return the ids of the runs that this process executes."""
        return {run_id for run_id, _ in self.active}

    def note_stop_request(self, run_id: str) -> None:
        """Note that an executed run should stop. Call it from any thread."""
        for key, active in list(self.active.items()):
            if key[0] == run_id:
                active.asked_to_stop = True

    async def _hand_back_rest(self) -> None:
        """Free runs that were claimed or started too late to hand themselves back."""
        try:
            async with asyncio.timeout(HAND_BACK_SECONDS):
                # A cancelled claim may still commit.
                await self._runtime.database.wait_for_writes()
                # Lost runs of other processes are left to those that stay.
                include: run_claim.Include = "all" if self._runtime.database.alone else "own"
                await self._sweep(include, counted=False)
        except Exception:
            # The next start finds the runs.
            logger.exception("Hand-back failed", action="hand_back_failed")

    async def hand_back_all(self) -> None:
        """Claim no more runs, and return those of this process to the queue."""
        self.stopping = self.draining = True
        self._runtime.database.outage.stop_waiting()
        # A claim under way adds its runs first.
        async with self._claiming:
            tasks = [each.task for each in self.active.values()]
        for task in tasks:
            task.cancel("The server is stopping")
        if tasks:
            await asyncio.wait(tasks, timeout=ABANDON_SECONDS)

    async def _stop(self) -> None:
        self.stopping = True
        self.drain()
        end = self._runtime.stopping
        grace = self._runtime.options.grace_seconds
        if tasks := [each.task for each in self.active.values()]:
            # The grace period began with the signal, while requests were still answered.
            left = grace if end is None else end.seconds_left
            await asyncio.wait(tasks, timeout=left)
        await self.hand_back_all()
        await self._hand_back_rest()
        if self._loops is not None:
            self._loops.close()


def _log_failed(run_id: str, error: Exception) -> None:
    if isinstance(error, HTTPException) and error.status_code == HTTPStatus.NOT_FOUND:
        # A client has deleted the run.
        logger.info("Run was deleted during its execution", run_id=run_id, why=error.detail)
    else:
        logger.error("Worker failed", action="worker_failed", run_id=run_id, exc_info=error)


def _log_lost(run_id: str, attempt: int) -> None:
    logger.warning("Lost run to another process", run_id=run_id, attempt=attempt)
