"""Server: run the app under uvicorn, in one process or several."""

import logging
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette

from langgraph_runtime_sql.errors import RuntimeSqlError
from langgraph_runtime_sql.queue import queue
from threadhold.config_file import read_config
from threadhold.hosts import is_loopback
from threadhold.program import Program
from threadhold.serving import banner, connections, descriptors, logs, stop_lines, supervisor
from threadhold.serving.listen import bind
from threadhold.serving.shutdown import MARGIN_SECONDS, ShutdownTimer
from threadhold.serving.sockets import Socket
from threadhold.settings import Settings

logger = logging.getLogger(__name__)

# Longer than clients and load balancers keep idle connections. Otherwise the server could close
# a connection while a request is on its way.
KEEP_ALIVE_SECONDS = 75
# For the last events of the streams, which end after the grace period.
LAST_EVENT_SECONDS = 3


class Exposed(RuntimeSqlError):
    """A server without authentication would be reachable from other machines."""


def serve(
    program: Program,
    settings: Settings,
    host: str,
    port: int,
    *,
    studio: bool = False,
    inherited: supervisor.Inherited | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM, then let requests and runs finish for the grace period.

    A second signal ends the process at once.

    Args:
        program: The program whose app is served.
        settings: The server's settings.
        host: Address to listen on.
        port: Port to listen on.
        studio: Let LangGraph Studio reach the server from a browser.
        inherited: Listen on the supervisor's socket instead.

    Raises:
        RuntimeSqlError: the project cannot be served.
    """
    logs.configure(settings.log_level, error_messages=settings.log_error_messages)
    refuse_exposure(settings, host)
    allowed = descriptors.connections(
        settings.max_connections, descriptors.raise_limit(), connections.RESERVE
    )
    # Before the app creates files, so that a busy port leaves none behind.
    sockets = bind(host, port) if inherited is None else [inherited.socket]
    try:
        app = program.create_app(settings, studio=studio)
        logger.info("Starting http://%s:%s (process %s)", host, port, os.getpid())

        def on_started() -> None:
            if inherited is not None:
                inherited.report_ready()
            # `dev` prints its addresses before the first start.
            elif not studio:
                banner.show(settings, app.state.platform.config, host, port)

        timer = ShutdownTimer(stop_seconds(settings))
        guard = connections.Guard(
            allowed,
            health_paths(app.state.platform.config.mount_prefix),
            settings.head_timeout_seconds,
            # Longer than the limit of the platform, whose answer is better.
            settings.body_timeout_seconds + connections.LINGER_SECONDS,
        )
        server = _Server(config(app, settings, host, port, guard), timer, on_started)
        filtered = stop_lines.StopLines(lambda: server.should_exit)
        logging.getLogger(stop_lines.LOGGER).addFilter(filtered)
        # uvicorn raises the signal again after it has stopped.
        with suppress(KeyboardInterrupt):
            server.run(sockets)
    finally:
        for each in sockets:
            each.close()
    if not server.started:
        raise SystemExit(3)


def stop_seconds(settings: Settings) -> float:
    """Return the time limit of a shutdown: a grace period for requests, then one for runs."""
    return 2 * max(1.0, settings.grace_seconds) + MARGIN_SECONDS


class _Server(uvicorn.Server):
    """Stop claiming runs at the first signal, before uvicorn waits for requests in flight."""

    def __init__(
        self, config: uvicorn.Config, timer: ShutdownTimer, on_started: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._timer = timer
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._timer.signalled(sig)
        queue.drain()
        super().handle_exit(sig, frame)


def serve_together(
    program: Program,
    settings: Settings,
    host: str,
    port: int,
    count: int,
    arguments: Sequence[str],
) -> int:
    """Serve with several processes on one port, and return the exit code.

    Args:
        program: The program whose app is served.
        settings: The server's settings.
        host: Address to listen on.
        port: Port to listen on.
        count: Number of processes.
        arguments: Command-line arguments of each process.

    Raises:
        RuntimeSqlError: the project cannot be served, or only by one process.
    """
    logs.configure(settings.log_level, error_messages=settings.log_error_messages)
    supervisor.require_shared_database(settings, f"--workers {count}")
    refuse_exposure(settings, host)
    project = read_config(settings.langgraph_json)
    command = program.command(*arguments)
    processes = supervisor.Supervisor(command, host, port, count, stop_seconds(settings))
    # Here, so that the processes do not all migrate at once.
    program.migrate(settings.database_url)
    logger.info("Starting %s processes on http://%s:%s", count, host, port)
    banner.show(settings, project, host, port, count)
    return processes.run()


def develop(program: Program, settings: Settings, host: str, port: int) -> None:
    """Serve for `dev`: let LangGraph Studio in, and log errors until the next file change."""
    try:
        serve(program, settings, host, port, studio=True)
    except program.expected as error:
        logger.error("%s", error)


def health_paths(mounted: str) -> tuple[str, ...]:
    """Return the paths of health checks, of a platform that is mounted at the prefix `mounted`."""
    return ("/health", "/ok", f"{mounted}/ok", f"{mounted}/metrics")


def config(
    app: Starlette, settings: Settings, host: str, port: int, guard: connections.Guard
) -> uvicorn.Config:
    """Make uvicorn's configuration, without its own log lines and `Server` header."""
    protocol: Any = guard.make
    socket_protocol: Any = Socket
    return uvicorn.Config(
        app,
        http=protocol,
        ws=socket_protocol,
        host=host,
        port=port,
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        ws_max_size=settings.max_body_bytes,
        timeout_graceful_shutdown=max(1, round(settings.grace_seconds)) + LAST_EVENT_SECONDS,
    )


def refuse_exposure(settings: Settings, host: str) -> None:
    """Refuse to listen for other machines in `local_dev`, where no token is needed.

    Raises:
        Exposed: `host` is not a loopback address.
    """
    if settings.is_local and not is_loopback(host):
        raise Exposed(
            f"{host} can be reached from other machines, and APP_ENV=local_dev gives every caller "
            "full access. Listen on 127.0.0.1, or set APP_ENV=production and a key to verify "
            "tokens with, such as JWT_SECRET."
        )
