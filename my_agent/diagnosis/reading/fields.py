"""Fields: lines of named values, in JSON or logfmt, whatever their names."""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from my_agent.diagnosis.reading import access, audit, dates
from my_agent.diagnosis.reading.record import LEVELS, LONGEST, Line

_TIMES = (
    *("time", "ts", "timestamp", "@timestamp", "@t", "t", "datetime", "date", "eventTime", "Timestamp"),
    *("asctime", "_time", "time_local", "timeUnixNano", "observedTimeUnixNano", "receiveTimestamp"),
    *("start_time", "StartUTC", "__REALTIME_TIMESTAMP", "created_at", "creation_date", "Time", "TimeGenerated"),
    *("start", "startTime", "timeMillis", "instant", "requestReceivedTimestamp", "published"),
)  # fmt: skip
_COMPONENTS = (
    *("service", "service.name", "service_name", "serviceName", "svc", "app", "application", "component"),
    *("kubernetes.container_name", "container_name", "container", "app_name", "SYSLOG_IDENTIFIER"),
    *("_SYSTEMD_UNIT", "_COMM", "program", "process_name", "subsystem", "source", "c", "unit"),
)  # fmt: skip
_LOGGERS = (
    *(
        "logger",
        "log.logger",
        "logger_name",
        "loggerName",
        "target",
        "module",
        "name",
        "SourceContext",
    ),
    *("scope.name", "caller", "category", "Category", "channel"),
)
_LEVEL_KEYS = (
    *(
        "level",
        "severity",
        "lvl",
        "loglevel",
        "log.level",
        "log_level",
        "levelname",
        "severity_text",
        "@l",
    ),
    *("severityText", "SeverityText", "Severity", "Level", "LogLevel", "priority", "PRIORITY", "s"),
    *("severityNumber", "level_name", "type"),
)
_TEXTS = (
    *(
        "msg",
        "message",
        "@m",
        "@mt",
        "body",
        "Body",
        "fields.message",
        "textPayload",
        "MESSAGE",
        "log",
        "text",
    ),
    *(
        "short_message",
        "Message",
        "event",
        "jsonPayload.message",
        "description",
        "title",
        "RenderedMessage",
        "Log_s",
        "Message_s",
        "Msg",
        "LogMessage",
    ),
)
_ERRORS = (
    *("error", "err", "exception", "@x", "error.message", "err.message", "reason", "stack", "error_message"),
    *("exception.message", "Exception", "cause", "failure", "errorMessage", "stack_trace", "error.stack_trace"),
)  # fmt: skip
_STATUSES = ("status", "statusCode", "status_code", "res.statusCode", "response.status", "code", "http.status_code",
             "httpRequest.status", "response_code")  # fmt: skip
_METHODS = (
    "method",
    "req.method",
    "request.method",
    "httpRequest.requestMethod",
    "http.method",
    "request_method",
)
_PATHS = (
    "path",
    "url",
    "uri",
    "req.url",
    "request.uri",
    "httpRequest.requestUrl",
    "request_uri",
    "http.url",
    "route",
)
_NESTED = (
    *(
        "log",
        "error",
        "err",
        "service",
        "kubernetes",
        "fields",
        "jsonPayload",
        "req",
        "res",
        "request",
        "response",
    ),
    *(
        "httpRequest",
        "exception",
        "attributes",
        "resource",
        "Properties",
        "attr",
        "scope",
        "context",
        "body",
    ),
    *("Attributes", "Resource", "labels", "extra", "http", "data"),
)
# Numbers that pino and bunyan write, and those of OpenTelemetry and syslog.
_PINO_WARNING, _PINO_ERROR = 40, 50
_SYSLOG_ERROR, _SYSLOG_WARNING, _SYSLOG_MOST = 3, 4, 7
_OTEL_WARNING, _OTEL_ERROR = 13, 17
# Only the beginning of a word can be a key: without the look-behind a long word takes its square.
_PAIR = re.compile(r'(?<![\w.@-])([\w.@-]++)=("(?:[^"\\]++|\\.)*+"|[^\s"]*+)')
_LOGFMT = re.compile(r'\s*[\w.@-]{1,60}=(?:"(?:[^"\\]++|\\.)*+"|[^\s"]*+)(?:\s|\Z)')
_PLUMBING = frozenset(
    (*_TIMES, *_COMPONENTS, *_LOGGERS, *_LEVEL_KEYS, "caller", "pid", "hostname", "host", "stream")
)
_REST = 12
"""Values that are shown where nothing is a message."""
_FEW = 2


def json(line: str, given: int) -> Line | None:
    """Read a line that is an object of JSON, or return None."""
    if not line.endswith("}"):
        return None
    try:
        found = orjson.loads(line)
    except ValueError:
        return None
    return object_line(found, given) if isinstance(found, dict) else None


def object_line(found: Mapping[str, Any], given: int) -> Line | None:
    """Read an object that tells of an event. None: it tells nothing, or is a span of a trace."""
    if "span_id" in found and not any(key in found for key in _TEXTS):
        return None
    special = audit.read(found, given)
    if special is not None:
        return special
    return _line("json", _flat(found), given)


def logfmt(line: str, given: int) -> Line | None:
    """Read a line of pairs such as `level=info msg="ready"`, or return None."""
    if _LOGFMT.match(line) is None:
        return None
    pairs: dict[str, Any] = {key: _unquoted(value) for key, value in _PAIR.findall(line)}
    if len(pairs) < _FEW or not any(
        key in pairs for key in (*_TIMES[:12], *_LEVEL_KEYS[:5], "msg")
    ):
        return None
    return _line("logfmt", pairs, given)


def _unquoted(value: str) -> str:
    return value[1:-1].replace('\\"', '"') if value.startswith('"') else value


def _flat(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with the values inside of known objects beside the others."""
    flat = dict(found)
    for key in _NESTED:
        inside = found.get(key)
        if isinstance(inside, dict):
            for name, value in list(inside.items())[:100]:
                if isinstance(value, dict):
                    for deeper, last in list(value.items())[:50]:
                        flat.setdefault(f"{key}.{name}.{deeper}", last)
                        flat.setdefault(f"{name}.{deeper}", last)
                flat.setdefault(f"{key}.{name}", value)
                flat.setdefault(name, value)
    return flat


def _line(form: str, found: Mapping[str, Any], given: int) -> Line | None:
    text = _text(found)
    if not text:
        return None
    component = _first(found, _COMPONENTS)
    logger = "" if component else _first(found, _LOGGERS)
    level = _level(found)
    if not level and (status := _number(found, _STATUSES)) and 100 <= status < 600:
        level = access.level(int(status))
    when = _when(found, given)
    return Line(form, when, component or logger, level, text[:LONGEST], not component)


def _text(found: Mapping[str, Any]) -> str:
    text = _first(found, _TEXTS)
    if not text and isinstance(found.get("MESSAGE"), list):
        # journald writes a message that is no text as a list of bytes.
        text = bytes(
            each for each in found["MESSAGE"] if isinstance(each, int) and 0 <= each < 256
        ).decode("utf-8", "replace")
    error = _first(found, _ERRORS).strip()
    if error and error.lower() not in ("false", "true", "null", "0") and error not in text:
        text = f"{text}: {error}" if text else error
    status = _number(found, _STATUSES)
    if status is not None and str(int(status)) not in text:
        call = " ".join(
            filter(None, (_first(found, _METHODS), _first(found, _PATHS).partition("?")[0]))
        )
        text = f"{text} {call} {int(status)}" if call else f"{text} {int(status)}" if text else ""
    return text.strip() or _pairs(found)


def _pairs(found: Mapping[str, Any]) -> str:
    """Return what an object without a message says, as pairs."""
    pairs = (
        f"{key}={value}"
        for key, value in found.items()
        if key not in _PLUMBING and isinstance(value, str | int | float) and value != ""
    )
    return " ".join(each for each, _ in zip(pairs, range(_REST), strict=False))


def _when(found: Mapping[str, Any], given: int) -> int | None:
    for key in _TIMES:
        value = found.get(key)
        if isinstance(value, dict):
            value = value.get("$date") or value.get("epochSecond")
        if isinstance(value, bool) or value is None:
            continue
        if isinstance(value, int | float):
            when = dates.number(value, given)
        else:
            when = dates.parse(str(value), given)
        if when is not None:
            return when
    return None


def _level(found: Mapping[str, Any]) -> str:
    for key in _LEVEL_KEYS:
        value = found.get(key)
        if isinstance(value, str) and not value.isdigit():
            if level := LEVELS.get(value.strip().lower(), ""):
                return level
        elif isinstance(value, int | float | str) and not isinstance(value, bool):
            number = float(value or "0")
            return _numbered(key, number)
    return ""


def _numbered(key: str, number: float) -> str:
    if key == "severityNumber":
        worst, bad = _OTEL_ERROR, _OTEL_WARNING
    elif key in ("PRIORITY", "priority", "severity") and number <= _SYSLOG_MOST:
        return (
            "error"
            if number <= _SYSLOG_ERROR
            else "warning"
            if number == _SYSLOG_WARNING
            else "info"
        )
    elif number < 10:
        # Nextcloud and others count from 0 to 4.
        worst, bad = 3, 2
    else:
        worst, bad = _PINO_ERROR, _PINO_WARNING
    return "error" if number >= worst else "warning" if number >= bad else "info"


def _first(found: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    for key in keys:
        value = found.get(key)
        if isinstance(value, dict) and "stringValue" in value:
            value = value["stringValue"]
        if value is None or value == "" or isinstance(value, dict | list | bool):
            continue
        return str(value)
    return ""


def _number(found: Mapping[str, Any], keys: tuple[str, ...]) -> float | None:
    for key in keys:
        value = found.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9:
            return float(value)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 3:
            return float(value)
    return None


def row(found: Mapping[str, str], given: int) -> Line | None:
    """Read a row of a table whose columns have names as the values of a log do; None: it says nothing."""
    line = _line("csv", found, given)
    return line if line is not None and _first(found, (*_TEXTS, *_ERRORS, "content")) else None
