"""Logs: text on a terminal, JSON elsewhere, and one access line per request."""

import logging
import sys
import time
from datetime import UTC, datetime
from typing import Any, TextIO
from urllib.parse import quote

import orjson
import structlog
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send
from structlog.typing import EventDict, Processor

from langgraph_runtime_sql import process
from langgraph_runtime_sql.audit import recorder
from langgraph_runtime_sql.tenancy import tenants
from threadhold.http.answer_status import AnswerStatus

_access = logging.getLogger("threadhold.access")

# These log several lines for each request and run. Our access line replaces
# langgraph_api's, and also covers the host's own routes.
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

# Its debug lines contain whole request bodies, so they are never written.
BODIES = "asgi"

# Monitoring requests these every few seconds.
PROBES = ("/health", "/ok", "/metrics")


def configure(level: str, stream: TextIO | None = None) -> None:
    """Write all logs of the process to one stream in one format.

    Call this before importing langgraph_api, which otherwise configures logging itself.

    Args:
        level: `DEBUG`, `INFO`, `WARNING` or `ERROR`.
        stream: The stream, by default stderr. Lines are JSON unless it is a terminal.
    """
    stream = sys.stderr if stream is None else stream
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.stdlib.ExtraAdder(),
        add_run,
        shorten_refusal,
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
    logging.getLogger(BODIES).setLevel(logging.INFO)


def _renderers(terminal: bool) -> list[Processor]:
    if terminal:
        # The default formatter prints local variables, which may hold secrets.
        plain = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(exception_formatter=plain)]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]


def add_run(_: Any, __: str, event: EventDict) -> EventDict:
    """Add the fields of the run or request that langgraph_api is handling."""
    if (stock := sys.modules.get("langgraph_api.logging")) is not None:
        for name, value in (stock.worker_config.get() or {}).items():
            event.setdefault(name, value)
    return event


def shorten_refusal(_: Any, __: str, event: EventDict) -> EventDict:
    """Log a refused request (an HTTP error below 500) as one line, without its traceback.

    langgraph_api logs a v2 stream of an unknown thread as if the server had failed.
    """
    error = _error(event.get("exc_info"))
    if isinstance(error, HTTPException) and error.status_code < 500:
        event.pop("exc_info")
        event.update(level="info", status=error.status_code)
    return event


def _error(exc_info: Any) -> BaseException | None:
    """Return the exception of a log line."""
    if isinstance(exc_info, BaseException):
        return exc_info
    if isinstance(exc_info, tuple):
        error: BaseException | None = exc_info[1]
        return error
    return sys.exception() if exc_info else None


class AccessLine(logging.Formatter):
    """Format access lines like structlog does, but without structlog.

    This is the most frequent line; through structlog it takes a twentieth of a run's time.
    """

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def format(self, record: logging.LogRecord) -> str:
        fields = {**record.__dict__["request"], **structlog.contextvars.get_contextvars()}
        level = record.levelname.lower()
        timestamp = f"{datetime.fromtimestamp(record.created, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
        if self._terminal:
            text = " ".join(f"{name}={value}" for name, value in fields.items())
            return f"{timestamp} [{level:<9}] request {text}"
        fields |= {"event": "request", "logger": record.name, "level": level}
        fields["timestamp"] = timestamp
        return orjson.dumps(fields, default=str).decode()


def _caller(scope: Scope) -> dict[str, str]:
    """Return the user and the tenant of an authenticated request."""
    user = scope.get("user")
    if user is None or (identity := recorder.identity_of(user)) is None:
        return {}
    key = process.configuration().options.tenant_key
    tenant = None if key is None else tenants.of_user(user, key)
    named = {"tenant": tenant, "user": identity}
    return {name: _printable(value) for name, value in named.items() if value is not None}


def _printable(text: str) -> str:
    # A line break in a name cannot forge a line.
    return "".join(each if each.isprintable() else quote(each) for each in text)


class AccessLog:
    """Log method, path, status, duration (ms), tenant and user of each request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        path, started, answer = scope["path"], time.monotonic(), AnswerStatus(send)
        try:
            await self._app(scope, receive, answer)
        finally:
            self._write(scope, path, answer.status, time.monotonic() - started)

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
            # 0: the client disconnected before the answer.
            "status": status,
            "ms": round(seconds * 1000, 1),
        }
        fields |= _caller(scope)
        if detail := scope.get("error_detail"):
            fields["detail"] = detail
        _access.log(level, "request", extra={"request": fields})
