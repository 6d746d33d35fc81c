"""Logs: text on a terminal, JSON elsewhere, and one access line per request."""

import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

import orjson
import structlog
from structlog.typing import Processor

from threadhold.http import access_log
from threadhold.serving import log_errors, run_lines

_access = logging.getLogger(access_log.LOGGER)
_runs = logging.getLogger("threadhold.runs")

# These log several lines for each request and run. Our access line replaces
# langgraph_api's, and also covers the host's own routes.
QUIET = {
    "langgraph_api": logging.WARNING,
    "langgraph_runtime": logging.WARNING,
    "langgraph_license": logging.WARNING,
    "alembic": logging.WARNING,
    "httpx": logging.WARNING,
    "httpx2": logging.WARNING,
    "py.warnings": logging.ERROR,
    "watchfiles": logging.WARNING,
}

# Lines that contain whole request bodies or crons, paths with their queries, or the headers and frames
# of WebSockets. They are never written.
REQUESTS = {
    "asgi": logging.INFO,
    "langgraph_api.cron_scheduler": logging.WARNING,
    "langgraph_api.server": logging.CRITICAL,
    "uvicorn": logging.WARNING,
}

# ANSI escape sequences; a terminal gets colours.
PLAIN, DIM, RED, CYAN = "\x1b[0m", "\x1b[2m", "\x1b[31m", "\x1b[36m"

# The details of these answers quote the request.
QUOTING = (400, 422)


def configure(level: str, stream: TextIO | None = None, *, error_messages: bool = False) -> None:
    """Write all logs of the process to one stream in one format.

    Call this before importing langgraph_api, which otherwise configures logging itself.

    Args:
        level: `DEBUG`, `INFO`, `WARNING` or `ERROR`.
        stream: The stream, by default stderr. Lines are JSON unless it is a terminal.
        error_messages: Show messages of errors, which may quote what users typed.
    """
    stream = sys.stderr if stream is None else stream
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        *([] if error_messages else [log_errors.hide_arguments]),
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.stdlib.ExtraAdder(),
        run_lines.add_run,
        run_lines.shorten_refusal,
        run_lines.drop_stopped,
        run_lines.trace_once,
        *([] if error_messages else [log_errors.hide_messages]),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.UnicodeDecoder(),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            run_lines.drop_outage,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        Lines(
            error_messages=error_messages,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(stream.isatty()),
            ],
            foreign_pre_chain=shared,
        )
    )
    handler.addFilter(run_lines.is_no_outage)
    access = logging.StreamHandler(stream)
    access.setFormatter(AccessLine(terminal=stream.isatty(), error_messages=error_messages))
    _access.handlers, _access.propagate = [access], False
    ended = logging.StreamHandler(stream)
    ended.setFormatter(RunLine(terminal=stream.isatty(), error_messages=error_messages))
    _runs.handlers, _runs.propagate = [ended], False
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name, quiet in QUIET.items():
        logging.getLogger(name).setLevel(logging.NOTSET if level == "DEBUG" else quiet)
    for name, least in REQUESTS.items():
        logging.getLogger(name).setLevel(least)


def _renderers(terminal: bool) -> list[Processor]:
    if terminal:
        # The default formatter prints local variables, which may hold secrets.
        plain = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(exception_formatter=plain)]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]


class Lines(structlog.stdlib.ProcessorFormatter):
    """Format lines, and replace errors among their arguments by their classes.

    Args:
        error_messages: Show the messages of the errors instead.
    """

    def __init__(self, *, error_messages: bool, **options: Any) -> None:
        super().__init__(**options)
        self._error_messages = error_messages

    def format(self, record: logging.LogRecord) -> str:
        if record.args and not self._error_messages and not log_errors.is_own(record.name):
            # A copy, because other handlers get the record too.
            record = logging.makeLogRecord(record.__dict__)
            record.args = log_errors.without_errors(record.args)
        return super().format(record)


class AccessLine(logging.Formatter):
    """Format access lines like structlog does, but without structlog.

    This is the most frequent line; through structlog it takes a twentieth of a run's time.
    """

    def __init__(self, *, terminal: bool, error_messages: bool) -> None:
        super().__init__()
        self._terminal, self._error_messages = terminal, error_messages

    def format(self, record: logging.LogRecord) -> str:
        fields = {**record.__dict__["request"], **structlog.contextvars.get_contextvars()}
        if fields["status"] in QUOTING and not self._error_messages:
            fields.pop("detail", None)
        return self._line(record, "request", fields)

    def _line(self, record: logging.LogRecord, event: str, fields: dict[str, Any]) -> str:
        level = record.levelname.lower()
        timestamp = f"{datetime.fromtimestamp(record.created, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
        if self._terminal:
            bad = level == "error" or fields.get("status") in ("error", "timeout")
            color = RED if bad else CYAN
            text = " ".join(f"{CYAN}{name}{PLAIN}={value}" for name, value in fields.items())
            return f"{DIM}{timestamp}{PLAIN} [{color}{level:<9}{PLAIN}] {event} {text}"
        fields |= {"event": event, "logger": record.name, "level": level}
        fields["timestamp"] = timestamp
        return orjson.dumps(fields, default=str).decode()


class RunLine(AccessLine):
    """Format the line of a run that has ended."""

    def format(self, record: logging.LogRecord) -> str:
        return self._line(record, "run ended", dict(record.__dict__["run"]))
