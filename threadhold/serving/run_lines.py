"""Run lines: what `langgraph_api` logs of runs and refusals, once and readable.

It logs the traceback of a failed run twice, and an orderly stop as a failure. These are processors
of structlog, for the command line's own logs (`logs`) and for those of a host (`host_logs`).
"""

import asyncio
import logging
import sys
from typing import Any

import structlog
from starlette.exceptions import HTTPException
from structlog.typing import EventDict

from langgraph_runtime_sql import runtime
from langgraph_runtime_sql.errors import DatabaseOutage, NotStarted
from threadhold.serving import log_errors

WORKER = "langgraph_api.worker"
# The action of a line that says that an audit entry is lost.
AUDIT = "audit_failed"
_LOGGED = "__threadhold_logged__"


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
    error = log_errors.error_of(event.get("exc_info"))
    if isinstance(error, HTTPException) and error.status_code < 500:
        event.pop("exc_info")
        event.update(level="info", status=error.status_code)
    return event


def trace_once(_: Any, __: str, event: EventDict) -> EventDict:
    """Keep the traceback of a run's error only in the first line that has it."""
    error = log_errors.error_of(event.get("exc_info"))
    if error is None or event.get("logger") != WORKER:
        return event
    if vars(error).get(_LOGGED):
        event.pop("exc_info")
    else:
        vars(error)[_LOGGED] = True
    return event


def drop_stopped(_: Any, __: str, event: EventDict) -> EventDict:
    """Drop what langgraph_api says of a run that an orderly stop returns to the queue.

    The queue says so itself.

    Raises:
        DropEvent: the line is such a one.
    """
    if event.get("logger") == WORKER and _is_stopping():
        error = log_errors.error_of(event.get("exc_info"))
        if isinstance(error, asyncio.CancelledError) or "CancelledError" in str(event["event"]):
            raise structlog.DropEvent
    return event


def drop_outage(_: Any, __: str, event: EventDict) -> EventDict:
    """Drop what failed because of an outage of the database, whose state has its own lines.

    Raises:
        DropEvent: the line is such a one.
    """
    if _is_outage(log_errors.error_of(event.get("exc_info"))) and event.get("action") != AUDIT:
        raise structlog.DropEvent
    return event


def is_no_outage(record: logging.LogRecord) -> bool:
    """Return whether a line of `logging` is none that `drop_outage` drops."""
    return not _is_outage(log_errors.error_of(record.exc_info))


def _is_outage(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, DatabaseOutage):
        error = error.__cause__
    return error is not None


def _is_stopping() -> bool:
    try:
        queue = runtime.current().queue
    except NotStarted:
        return False
    return queue is not None and queue.stopping
