"""Refusals: count the refused requests of each limit for `/metrics`."""

from functools import cache
from typing import Any

from langgraph_runtime_sql.errors import LimitReached


def refuse(
    scope: str,
    limit: str,
    most: float,
    what: str,
    seconds: float,
    advice: str = "Try again later.",
) -> LimitReached:
    """Count a refusal and return its error.

    Args:
        scope: Its scope, as `tenant`.
        limit: The name of the limit in a quota.
        most: Its value.
        what: What is counted, in the plural.
        seconds: When the same request may succeed.
        advice: What the client can do.
    """
    count(scope, limit)
    return LimitReached(f"{scope}.{limit}", f"{most:.15g} {what}", seconds, advice)


def count(scope: str, limit: str) -> None:
    """Count a refusal whose error the caller makes."""
    _counter().labels(scope, limit).inc()


@cache
def _counter() -> Any:
    # Imported late, because the library would delay each start.
    from prometheus_client import Counter

    return Counter(
        "threadhold_limit_refusals", "Requests refused by `sql.limits`", ["scope", "limit"]
    )
