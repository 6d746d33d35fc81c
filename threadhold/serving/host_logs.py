"""Host logs: let the lines of the platform be plain ones in the logs of a host app.

`langgraph_api` configures structlog if nobody has. Then the lines of a host that configures only
`logging` contain whole dicts, with the traceback inside.
"""

import logging
import sys
from typing import Any

import structlog
from structlog.typing import EventDict

from langgraph_runtime_sql.stopping import StreamHandedOver
from threadhold.serving import run_lines

# Fields that a formatter of the host shows itself, or that repeat the text of the line.
_HIDDEN = ("logger", "level", "event", "exc_info", "stack_info", "request_id_header")
# The access line of langgraph_api, which repeats that of the server.
ACCESS = "langgraph_api.server"


def configure() -> None:
    """Configure structlog for a host, unless the host has configured it."""
    logging.getLogger(ACCESS).addFilter(_is_needed)
    for name in ("uvicorn.error", ACCESS):
        logging.getLogger(name).addFilter(_is_no_hand_over)
    if structlog.is_configured():
        return
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.PositionalArgumentsFormatter(),
            run_lines.drop_outage,
            run_lines.add_run,
            run_lines.shorten_refusal,
            run_lines.drop_stopped,
            run_lines.trace_once,
            as_line,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def as_line(logger: Any, method: str, event: EventDict) -> tuple[tuple[str, str], dict[str, Any]]:
    """Return the arguments of a call of `logging`: one line of text, and the error.

    The fields are also attributes of the record, under `threadhold`, for a formatter of the host.

    Raises:
        DropEvent: the line is a refusal, and has been logged as such instead of as an error.
    """
    text = str(event["event"])
    if event.get("logger") == ACCESS:
        fields = {}
    else:
        fields = {
            name: value
            for name, value in event.items()
            if name not in _HIDDEN and value not in (None, "", "None")
        }
    shown = " ".join(f"{name}={value}" for name, value in fields.items())
    # Named in any case: `logger.exception` would otherwise add the current error.
    options = {"extra": {"threadhold": fields}, "exc_info": event.get("exc_info") or False}
    # With a parameter, because a text may contain a percent sign.
    line = ("%s", f"{text} {shown}".strip().replace("\n", " "))
    if event.get("level") == "info" and method in ("exception", "error"):
        logger.info(*line, **options)
        raise structlog.DropEvent
    return line, options


def _is_needed(record: logging.LogRecord) -> bool:
    """Return whether a line of langgraph_api says what the server's access line does not."""
    access = logging.getLogger("uvicorn.access")
    return record.levelno >= logging.ERROR or not access.handlers


def _is_no_hand_over(record: logging.LogRecord) -> bool:
    """Keep a stream that the server cut off on purpose out of the log of errors."""
    # The access line is written while the error passes.
    error = record.exc_info[1] if record.exc_info else sys.exception()
    return not isinstance(error, StreamHandedOver)
