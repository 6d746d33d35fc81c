"""Logs: readable on a terminal, JSON otherwise, and one line a request."""

import logging
import sys
import time
from datetime import UTC, datetime
from typing import Any, TextIO
from urllib.parse import quote

import orjson
import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.typing import EventDict, Processor

_access = logging.getLogger("threadhold.access")

# Below DEBUG these say several things about every request and every run. Their
# access line is replaced by ours, which covers the host's own routes as well.
QUIET = {
    "langgraph_api": logging.WARNING,
    "langgraph_api.server": logging.CRITICAL,
    "langgraph_runtime": logging.WARNING,
    "langgraph_license": logging.WARNING,
    "alembic": logging.WARNING,
    "httpx": logging.WARNING,
    "py.warnings": logging.ERROR,
    "uvicorn": logging.WARNING,
    "watchfiles": logging.WARNING,
}

# Asked every few seconds by whoever watches the server.
PROBES = ("/health", "/ok", "/metrics")


def configure(level: str, stream: TextIO | None = None) -> None:
    """Send everything the process logs to `stream` (by default stderr) in one format.

    Call it before langgraph_api is imported, which otherwise brings its own.

    Args:
        level: `DEBUG`, `INFO`, `WARNING` or `ERROR`.
        stream: Where to; JSON unless it is a terminal.
    """
    stream = sys.stderr if stream is None else stream
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.stdlib.ExtraAdder(),
        add_run,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.UnicodeDecoder(),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(stream.isatty()),
            ],
            foreign_pre_chain=shared,
        )
    )
    access = logging.StreamHandler(stream)
    access.setFormatter(AccessLine(terminal=stream.isatty()))
    _access.handlers, _access.propagate = [access], False
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name, quiet in QUIET.items():
        logging.getLogger(name).setLevel(logging.NOTSET if level == "DEBUG" else quiet)


def _renderers(terminal: bool) -> list[Processor]:
    if terminal:
        # The default one prints local variables too, which may hold secrets.
        plain = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(exception_formatter=plain)]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]


def add_run(_: Any, __: str, event: EventDict) -> EventDict:
    """Name the run or request that langgraph_api was working on when it logged."""
    if (stock := sys.modules.get("langgraph_api.logging")) is not None:
        for name, value in (stock.worker_config.get() or {}).items():
            event.setdefault(name, value)
    return event


class AccessLine(logging.Formatter):
    """The line of a request, in the format of all others but without their machinery.

    It is by far the most frequent one, and through structlog it costs a
    twentieth of a run.
    """

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def format(self, record: logging.LogRecord) -> str:
        fields = {**record.__dict__["request"], **structlog.contextvars.get_contextvars()}
        level, moment = record.levelname.lower(), datetime.fromtimestamp(record.created, UTC)
        if self._terminal:
            shown = " ".join(f"{name}={value}" for name, value in fields.items())
            return f"{moment:%Y-%m-%dT%H:%M:%S.%fZ} [{level:<9}] request {shown}"
        fields |= {"event": "request", "logger": record.name, "level": level}
        fields["timestamp"] = f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}"
        return orjson.dumps(fields, default=str).decode()


class AccessLog:
    """Writes one line a request: method, path, status and how long it took."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        path, started, status = scope["path"], time.monotonic(), 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message["type"] == "websocket.accept":
                status = 101
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            self._write(scope, path, status, time.monotonic() - started)

    @staticmethod
    def _write(scope: Scope, path: str, status: int, seconds: float) -> None:
        level = logging.DEBUG if path in PROBES else logging.INFO
        if status >= 500:
            level = logging.ERROR
        if not _access.isEnabledFor(level):
            return
        fields = {
            "method": scope.get("method", "WEBSOCKET"),
            # Quoted again, so that a line break in a path cannot forge a line.
            "path": quote(path),
            # 0: the client went away before there was an answer.
            "status": status,
            "ms": round(seconds * 1000, 1),
        }
        if detail := scope.get("error_detail"):
            fields["detail"] = detail
        _access.log(level, "request", extra={"request": fields})
