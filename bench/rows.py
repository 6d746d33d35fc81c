"""The rows of the table, by their names on the command line."""

from collections.abc import Awaitable, Callable

from bench import (
    measures,
    measures_abuse,
    measures_cost,
    measures_events,
    measures_postgres,
    measures_storage,
)
from bench.report import Line
from bench.stage import Stage

Measure = Callable[[Stage], Awaitable[list[Line]]]
MEASURES: dict[str, Measure] = {
    "startup": measures.startup,
    "idle": measures.idle,
    "first-token": measures.first_token,
    "stream": measures.stream,
    "other-runs": measures.other_runs,
    "sleep": measures.sleep,
    "throughput": measures.throughput,
    "search": measures.search,
    "user-search": measures.user_search,
    "policy": measures.policy,
    "return-user": measures.return_user,
    "postgres-idle": measures_postgres.idle,
    "postgres-throughput": measures_postgres.throughput,
    "postgres-search": measures_postgres.search,
    "event-streams": measures_events.streams,
    "event-opens": measures_events.opens,
    "event-kill": measures_events.kill,
    "event-processes": measures_events.across,
    "event-followers": measures_events.followers,
    "floor": measures_cost.first_token,
    "cpu": measures_cost.cpu,
    "long-turns": measures_storage.turns,
    "long-thread": measures_storage.long_thread,
    "long-history": measures_storage.history,
    "long-listing": measures_storage.listing,
    **measures_abuse.ROWS,
}


def named(name: str) -> list[str]:
    """Return the names of the rows of this name or group: `event` is all of `event-...`.

    Raises:
        ValueError: there are none.
    """
    found = [each for each in MEASURES if each == name or each.startswith(f"{name}-")]
    if not found:
        raise ValueError(f"there is no row {name!r}; there are {', '.join(MEASURES)}")
    return found
