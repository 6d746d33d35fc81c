"""Worker: execute runs without serving requests (`threadhold worker`)."""

import asyncio
import logging
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import uvloop

from langgraph_runtime_sql.errors import RuntimeSqlError
from langgraph_runtime_sql.queue import queue
from threadhold.hosts import is_loopback
from threadhold.http import metrics_text
from threadhold.http.metrics_access import MetricsAccess
from threadhold.program import Program
from threadhold.serving import descriptors, logs
from threadhold.serving.heartbeat import Heartbeat
from threadhold.serving.listen import CannotListen
from threadhold.serving.shutdown import MARGIN_SECONDS, ShutdownTimer
from threadhold.serving.supervisor import require_shared_database
from threadhold.settings import Settings

logger = logging.getLogger(__name__)


class ExposedMetrics(RuntimeSqlError):
    """The metrics of a worker would be readable from other machines without a token."""


class NothingToDo(RuntimeSqlError):
    """A worker is configured to execute no runs."""


def work(
    program: Program,
    settings: Settings,
    heartbeat: Path | None = None,
    metrics: tuple[str, int] | None = None,
) -> None:
    """Execute runs until SIGINT or SIGTERM, then let them finish for the grace period.

    A second signal ends the process at once.

    Args:
        program: The program whose app runs, without its port.
        settings: The worker's settings.
        heartbeat: File to touch every few seconds once the worker takes runs.
        metrics: Address and port of `/metrics`.

    Raises:
        RuntimeSqlError: the project cannot be served, or only by one process.
    """
    require_shared_database(settings, "worker")
    if settings.n_jobs == 0:
        raise NothingToDo("worker: N_JOBS_PER_WORKER=0 allows no runs; set it to 1 or more")
    if metrics is not None:
        _refuse_exposure(settings, metrics[0])
    heart = Heartbeat(heartbeat) if heartbeat is not None else None
    logs.configure(settings.log_level, error_messages=settings.log_error_messages)
    descriptors.raise_limit()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_work(program, settings, heart, metrics))


def _access(settings: Settings) -> MetricsAccess:
    """Return who may read the metrics at the port: without a token, the machines that reach it."""
    public = settings.public_metrics or settings.metrics_token is None
    return MetricsAccess(token=settings.metrics_token, public=public)


def _refuse_exposure(settings: Settings, host: str) -> None:
    """Refuse to show figures of all tenants to other machines, unless the settings allow it.

    Raises:
        ExposedMetrics: `host` is not a loopback address, and there is no token.
    """
    if settings.metrics_token is None and not (settings.public_metrics or is_loopback(host)):
        raise ExposedMetrics(
            f"--metrics-host {host} can be reached from other machines. Set METRICS_TOKEN, which "
            "scrapers then send as `Authorization: Bearer ...`, or PUBLIC_METRICS=true."
        )


async def _work(
    program: Program,
    settings: Settings,
    heart: Heartbeat | None,
    metrics: tuple[str, int] | None,
) -> None:
    app = program.create_app(settings)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    timer = ShutdownTimer(settings.grace_seconds + MARGIN_SECONDS)

    def handle_signal(number: int) -> None:
        timer.signalled(number)
        queue.drain()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, handle_signal, number)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(app.router.lifespan_context(app))
        if metrics is not None:
            try:
                await stack.enter_async_context(metrics_text.served(*metrics, _access(settings)))
            except OSError as error:
                raise CannotListen(*metrics, error) from error
        if heart is not None:
            heart.start()
        logger.info("Working on runs (process %s)", os.getpid())
        await stop.wait()
        logger.info("Stopping")
