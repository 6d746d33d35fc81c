"""Runs the app under uvicorn."""

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from langgraph_runtime_sql.errors import RuntimeSqlError
from langgraph_runtime_sql.queue import queue
from threadhold.config_file import read_config
from threadhold.hosts import is_loopback
from threadhold.program import Program
from threadhold.serving import banner, logs, supervisor
from threadhold.serving.listen import bind
from threadhold.serving.shutdown import MARGIN_SECONDS, Ending
from threadhold.settings import Settings

logger = logging.getLogger(__name__)

# Longer than clients and load balancers keep a connection that nobody uses: else it is closed
# just when they send something.
KEEP_ALIVE_SECONDS = 75


class Exposed(RuntimeSqlError):
    """A server without authentication would listen where others reach it."""


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

    Another signal ends it at once.

    Args:
        program: Whose app is served.
        settings: The server's settings.
        host: Address to listen on.
        port: Port to listen on.
        studio: Let LangGraph Studio reach the server from a browser.
        inherited: Listen on its socket instead, with other processes.

    Raises:
        RuntimeSqlError: the project cannot be served.
    """
    logs.configure(settings.log_level)
    refuse_exposure(settings, host)
    # First, so that a busy port leaves neither a file nor a folder.
    sockets = bind(host, port) if inherited is None else [inherited.socket]
    try:
        app = program.create_app(settings, studio=studio)
        logger.info("Starting http://%s:%s (process %s)", host, port, os.getpid())
        server = _Server(config(app, settings, host, port), Ending(patience(settings)), inherited)
        # A supervisor shows it for all, and `dev` before the first start.
        if inherited is None and not studio:
            server.once_started(
                lambda: banner.show(settings, app.state.platform.config, host, port)
            )
        # uvicorn raises the signal that ended it once more, after everything has been closed.
        with suppress(KeyboardInterrupt):
            server.run(sockets)
    finally:
        for each in sockets:
            each.close()
    if not server.started:
        raise SystemExit(3)


def patience(settings: Settings) -> float:
    """Seconds in which a server must have ended: requests have their time, and then runs."""
    return 2 * max(1.0, settings.shutdown_grace_seconds) + MARGIN_SECONDS


class _Server(uvicorn.Server):
    """Leaves runs to other processes from the moment it is told to end.

    Requests in flight still have their time then, and only after them the app is stopped.
    """

    def __init__(
        self, config: uvicorn.Config, ending: Ending, inherited: supervisor.Inherited | None
    ) -> None:
        super().__init__(config)
        self._ending = ending
        self._inherited = inherited
        self._started: Callable[[], None] = lambda: None

    def once_started(self, call: Callable[[], None]) -> None:
        """Call `call` when requests are answered."""
        self._started = call

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.started:
            return
        self._started()
        if self._inherited is not None:
            self._inherited.served()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._ending.told(sig)
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
    """Serve with several processes on one port; the code to exit with.

    Args:
        program: Whose app is served.
        settings: The server's settings.
        host: Address to listen on.
        port: Port to listen on.
        count: How many processes.
        arguments: Of the program, for each of them.

    Raises:
        RuntimeSqlError: the project cannot be served, or not by more than one process.
    """
    logs.configure(settings.log_level)
    supervisor.refuse_alone(settings, f"--workers {count}")
    refuse_exposure(settings, host)
    project = read_config(settings.langgraph_json)
    crew = supervisor.Supervisor(program.command(*arguments), host, port, count, patience(settings))
    # Once, before they would all do it.
    program.migrate(settings.database_url)
    logger.info("Starting %s processes on http://%s:%s", count, host, port)
    banner.show(settings, project, host, port, count)
    return crew.run()


def develop(program: Program, settings: Settings, host: str, port: int) -> None:
    """Serve with LangGraph Studio let in; what cannot be served waits for the next change."""
    try:
        serve(program, settings, host, port, studio=True)
    except program.expected as error:
        logger.error("%s", error)


def config(app: Starlette, settings: Settings, host: str, port: int) -> uvicorn.Config:
    """How uvicorn runs `app`: uvloop and httptools where they exist, no log lines of its own."""
    return uvicorn.Config(
        Polite(app),
        host=host,
        port=port,
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        ws_max_size=settings.max_body_bytes,
        timeout_graceful_shutdown=max(1, round(settings.shutdown_grace_seconds)),
    )


class Polite:
    """Says in plain words what uvicorn would say with a traceback, or not at all.

    That the app cannot start, and that a request's time is over because the server is stopping.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await self._app(
                scope, receive, _in_words(send) if scope["type"] == "lifespan" else send
            )

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def note(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, note)
        except asyncio.CancelledError:
            if begun:
                raise
            refusal = {"detail": "The server is stopping, and had no answer in time: ask again"}
            await JSONResponse(refusal, 503, {"Retry-After": "1"})(scope, receive, send)


def _in_words(send: Send) -> Send:
    """Sends the message of an expected failure to start, without its traceback."""

    async def plain(message: Message) -> None:
        error = sys.exception()
        if message["type"] == "lifespan.startup.failed" and isinstance(error, RuntimeSqlError):
            message = {**message, "message": str(error)}
        await send(message)

    return plain


def refuse_exposure(settings: Settings, host: str) -> None:
    """Keep what is for one's own machine on it.

    Raises:
        Exposed: others could reach `host`, and in `local_dev` nobody needs a token.
    """
    if settings.is_local and not is_loopback(host):
        raise Exposed(
            f"{host} can be reached from other machines, and APP_ENV=local_dev lets whoever "
            "reaches it read and change everything. Listen on 127.0.0.1, or set "
            "APP_ENV=production and a key to verify tokens with, such as JWT_SECRET."
        )
