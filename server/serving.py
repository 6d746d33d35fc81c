"""Runs the app under uvicorn."""

import ipaddress
import logging
import os

import uvicorn
from starlette.applications import Starlette

from server import logs
from server.app import create_app
from server.settings import Settings

logger = logging.getLogger(__name__)


def serve(settings: Settings, host: str, port: int, *, studio: bool = False) -> None:
    """Serve until SIGINT or SIGTERM, then let requests and runs finish for the grace period.

    Args:
        settings: The server's settings.
        host: Address to listen on.
        port: Port to listen on.
        studio: Let LangGraph Studio reach the server from a browser.

    Raises:
        RuntimeSqlError: the project cannot be served.
    """
    logs.configure(settings.log_level)
    app = create_app(settings, studio=studio)
    server = uvicorn.Server(config(app, settings, host, port))
    if not is_loopback(host) and not app.state.platform.config.sections["auth"]:
        logger.warning(
            "%s can be reached from other machines and %s has no 'auth': anybody who reaches it "
            "can read and change everything",
            host,
            app.state.platform.config.source,
        )
    logger.info("Starting http://%s:%s (process %s)", host, port, os.getpid())
    server.run()
    if not server.started:
        raise SystemExit(3)


def config(app: Starlette, settings: Settings, host: str, port: int) -> uvicorn.Config:
    """How uvicorn runs `app`: uvloop and httptools where they exist, no log lines of its own."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        ws_max_size=settings.max_body_bytes,
        timeout_graceful_shutdown=max(1, round(settings.shutdown_grace_seconds)),
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
