"""Metrics: the counters and histograms of `/metrics` that the runtime itself keeps.

They are counted in memory when something happens. What the database knows (the queue, its size)
is read at each scrape; see `gauges`.
"""

from functools import cache
from typing import Any, NamedTuple

# From a run of an idle server to one that waits for an hour.
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600)
# From a read of a row to a write that waits for others.
FAST_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)


class RunMetrics(NamedTuple):
    """The metrics of runs. Labels: `graph`, `tenant_class` (`none`, `named`, `other`), `status`."""

    queued: Any
    started: Any
    retried: Any
    ended: Any
    failed: Any
    returned: Any
    wait: Any
    duration: Any
    tokens: Any


@cache
def runs() -> RunMetrics:
    """Return the metrics of runs; the first call registers them."""
    # Imported late, because the library would delay each start.
    from prometheus_client import Counter, Histogram

    labels = ["graph", "tenant_class"]
    return RunMetrics(
        Counter("threadhold_runs_queued", "Runs that were created", labels),
        Counter("threadhold_runs_started", "Attempts at runs that began in this process", labels),
        Counter("threadhold_runs_retried", "Attempts after the first one", labels),
        Counter("threadhold_runs_ended", "Runs that ended in this process", [*labels, "status"]),
        Counter("threadhold_runs_failed", "Runs that ended with an error or a timeout", labels),
        Counter(
            "threadhold_runs_returned", "Attempts that returned their run to the queue", labels
        ),
        Histogram(
            "threadhold_run_wait_seconds",
            "Time from when a run is due to its first attempt",
            labels,
            buckets=SECONDS,
        ),
        Histogram(
            "threadhold_run_duration_seconds",
            "Time of the last attempt at a run",
            [*labels, "status"],
            buckets=SECONDS,
        ),
        Counter("threadhold_tokens", "Tokens of models, as they report them", ["graph", "kind"]),
    )


class ProcessMetrics(NamedTuple):
    """The metrics of a process. `database` is a histogram for reads and one for writes."""

    streams: Any
    cut_streams: Any
    webhooks: Any
    crons: Any
    reads: Any
    writes: Any


@cache
def process() -> ProcessMetrics:
    """Return the metrics of the process; the first call registers them."""
    from prometheus_client import Counter, Gauge, Histogram

    database = Histogram(
        "threadhold_database_seconds",
        "Time of an operation on the database, with its wait for a thread",
        ["kind"],
        buckets=FAST_SECONDS,
    )
    return ProcessMetrics(
        Gauge("threadhold_streams", "Open event streams"),
        Counter(
            "threadhold_streams_handed_over",
            "Streams that a stop or an outage cut off with `resume`",
        ),
        Counter(
            "threadhold_webhooks",
            "Calls of webhooks: `delivered`, `retried` after a failure, or `dead`, the last one",
            ["outcome"],
        ),
        Counter("threadhold_crons_fired", "Runs that crons started"),
        database.labels("read"),
        database.labels("write"),
    )
