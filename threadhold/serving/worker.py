"""Works the queue, and answers no requests: `threadhold worker`."""

import asyncio
import logging
import os
import signal
from pathlib import Path

from langgraph_runtime_sql.errors import RuntimeSqlError
from threadhold.program import Program
from threadhold.serving import logs
from threadhold.serving.heartbeat import Heartbeat
from threadhold.serving.shutdown import MARGIN_SECONDS, Ending
from threadhold.serving.supervisor import refuse_alone
from threadhold.settings import Settings

logger = logging.getLogger(__name__)


class NothingToDo(RuntimeSqlError):
    """A worker that may work on no run."""


def work(program: Program, settings: Settings, heartbeat: Path | None = None) -> None:
    """Work on runs until SIGINT or SIGTERM, then let them finish for the grace period.

    Another signal ends it at once.

    Args:
        program: Whose app it is, without its port.
        settings: The worker's settings.
        heartbeat: A file to touch every few seconds from when it works on.

    Raises:
        RuntimeSqlError: the project cannot be served, or not by more than one process.
    """
    refuse_alone(settings, "worker")
    if settings.n_jobs_per_worker == 0:
        raise NothingToDo("worker: N_JOBS_PER_WORKER=0 leaves it nothing to do")
    heart = Heartbeat(heartbeat) if heartbeat is not None else None
    logs.configure(settings.log_level)
    if os.name == "nt":
        asyncio.run(_work(program, settings, heart))
        return
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_work(program, settings, heart))


async def _work(program: Program, settings: Settings, heart: Heartbeat | None) -> None:
    app = program.create_app(settings)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    ending = Ending(settings.shutdown_grace_seconds + MARGIN_SECONDS)

    def told(number: int) -> None:
        ending.told(number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told, number)
    async with app.router.lifespan_context(app):
        if heart is not None:
            heart.begin()
        logger.info("Working on runs (process %s)", os.getpid())
        await stop.wait()
        logger.info("Stopping")
