"""Errors in log lines: their classes and stack frames, without their messages.

The message of an error may quote what a user typed. So a line shows the classes of the error, of its
causes and of its groups, and where they were raised.
"""

import contextlib
import re
import sys
import traceback
from collections.abc import Iterator
from typing import Any

from structlog.typing import EventDict

HIDDEN = "(hidden)"

# Loggers whose lines contain only chosen texts. Tracebacks are without messages here too. uvicorn's
# lines name no error but the one that prevents the start, which says what the operator must correct.
OWN = ("threadhold", "langgraph_runtime_sql", "hooks", "uvicorn")

# Other loggers write `str(error)` into these fields.
FIELDS = ("error", "error_detail", "exception", "last_error", "message", "reason", "task_exception")
# And what users typed into these.
TYPED = ("assistant_name", "channels", "chunk")

# langgraph_api logs the class of a run's error, and its message in parentheses.
_STOCK = re.compile(r"(Exception: <class '[^']*'>)\(.*", re.DOTALL)

# Groups inside of groups; deeper ones show their class only.
_DEPTH = 8

# Shorter messages occur in other words too, so they are not searched for.
_SHORTEST = 4


def hide_messages(_: Any, __: str, event: EventDict) -> EventDict:
    """Replace the errors of a log line by their classes and stack frames."""
    logged = error_of(event.pop("exc_info", None))
    if not is_own(str(event.get("logger", ""))):
        _hide_in_fields(event, [each for each in (logged, sys.exception()) if each is not None])
    if logged is not None:
        event["exception"] = stack(logged)
    return event


def hide_arguments(_: Any, __: str, event: EventDict) -> EventDict:
    """Replace errors among the arguments of a structlog line by their classes."""
    if (values := event.get("positional_args")) and not is_own(str(event.get("logger", ""))):
        event["positional_args"] = without_errors(values)
    return event


def without_errors(values: Any) -> Any:
    """Return arguments of a log call, errors replaced by the names of their classes."""
    if isinstance(values, tuple):
        return tuple(name(each) if isinstance(each, BaseException) else each for each in values)
    if isinstance(values, dict):
        return {
            key: name(each) if isinstance(each, BaseException) else each
            for key, each in values.items()
        }
    return values


def is_own(logger: str) -> bool:
    """Return whether a logger writes only chosen texts."""
    return logger.partition(".")[0] in OWN


def error_of(exc_info: Any) -> BaseException | None:
    """Return the exception of a log line."""
    if isinstance(exc_info, BaseException):
        return exc_info
    if isinstance(exc_info, tuple):
        error: BaseException | None = exc_info[1]
        return error
    return sys.exception() if exc_info else None


def name(error: BaseException) -> str:
    """Return the name of an error's class, as tracebacks show it."""
    kind = type(error)
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def stack(error: BaseException) -> str:
    """Format an error, its causes and its groups like Python, but without messages and notes."""
    return "\n".join(_lines(error, set(), _DEPTH))


def _lines(error: BaseException, seen: set[int], depth: int) -> Iterator[str]:
    chain = [(error, "")]
    seen.add(id(error))
    while (earlier := _earlier(chain[-1][0])) is not None and id(earlier[0]) not in seen:
        seen.add(id(earlier[0]))
        chain.append(earlier)
    for each, relation in reversed(chain):
        if each.__traceback__ is not None:
            yield "Traceback (most recent call last):"
            yield "".join(traceback.format_tb(each.__traceback__)).rstrip("\n")
        yield name(each)
        if isinstance(each, BaseExceptionGroup):
            for number, part in enumerate(each.exceptions, 1):
                yield f"  +---------------- {number} ----------------"
                if depth and id(part) not in seen:
                    inside = "\n".join(_lines(part, seen, depth - 1))
                    yield "\n".join(f"  | {line}" for line in inside.splitlines())
                else:
                    yield f"  | {name(part)}"
        if relation:
            yield f"\n{relation}\n"


def _earlier(error: BaseException) -> tuple[BaseException, str] | None:
    """Return the error that came before, and how Python describes the relation."""
    if error.__cause__ is not None:
        text = "The above exception was the direct cause of the following exception:"
        return error.__cause__, text
    if error.__context__ is not None and not error.__suppress_context__:
        text = "During handling of the above exception, another exception occurred:"
        return error.__context__, text
    return None


def _hide_in_fields(event: EventDict, errors: list[BaseException]) -> None:
    quoted = dict(_quotes(errors))
    # A message that contains another one is replaced first.
    texts = sorted(quoted, key=len, reverse=True)
    for key, value in event.items():
        if key.startswith("_"):
            continue
        if key in TYPED:
            event[key] = HIDDEN
        elif isinstance(value, BaseException):
            event[key] = name(value)
        elif isinstance(value, str):
            for text in texts:
                value = value.replace(text, quoted[text])
            if key == "event":
                value = _STOCK.sub(r"\1", value)
            elif key in FIELDS:
                value = name(errors[0]) if errors else HIDDEN
            event[key] = value


def _quotes(errors: list[BaseException]) -> Iterator[tuple[str, str]]:
    """Yield the texts that quote the errors, each with the name of its error's class."""
    waiting, seen = list(errors), set[int]()
    while waiting:
        error = waiting.pop()
        if id(error) in seen:
            continue
        seen.add(id(error))
        for show in (str, repr):
            # Such methods of foreign classes may fail; then no line quotes them either.
            with contextlib.suppress(Exception):
                if len(text := show(error)) >= _SHORTEST:
                    yield text, name(error)
        if isinstance(error, BaseExceptionGroup):
            waiting += error.exceptions
        waiting += [each for each in (error.__cause__, error.__context__) if each is not None]
