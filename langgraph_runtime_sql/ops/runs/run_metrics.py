"""Measured runs: the metrics, the log line and the trace of each attempt at a run."""

import logging
from datetime import UTC, datetime
from typing import Any

from langgraph_runtime_sql import runtime
from langgraph_runtime_sql.clock import elapsed
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.statuses import RunStatus
from langgraph_runtime_sql.telemetry import metrics, tracing, watching

# Not through structlog, whose lines take a twentieth of a run's time.
_lines = logging.getLogger("threadhold.runs")

_FAILED = (RunStatus.ERROR, RunStatus.TIMEOUT)


def configurable(run: Row) -> dict[str, Any]:
    """Return what the run's config says of the run."""
    found: dict[str, Any] = (run["kwargs"].get("config") or {}).get("configurable") or {}
    return found


def labels(run: Row, tenant: str | None) -> tuple[str, str]:
    """Return the graph of a run and the class of its tenant, the labels of its metrics."""
    graph = str(configurable(run).get("graph_id") or "unknown")
    return graph, runtime.current().options.limits.class_of(tenant)


class Attempt:
    """One attempt at a run. Make it when the run is claimed.

    Args:
        run: The claimed run. What it says of its trace is taken out of it.
        attempt: The number of the attempt.
        tenant: Its tenant.
    """

    def __init__(self, run: Row, attempt: int, tenant: str | None) -> None:
        self._run, self._attempt = run, attempt
        self._labels = labels(run, tenant)
        self._began = elapsed()
        self._spans: tracing.AttemptSpans | None = None
        carrier = run["kwargs"].pop(tracing.KEY, None)
        self._usage: watching.Watcher | None = None
        count = metrics.runs()
        count.started.labels(*self._labels).inc()
        if attempt > 1:
            count.retried.labels(*self._labels).inc()
        else:
            waited = (datetime.now(UTC) - run["created_at"]).total_seconds()
            count.wait.labels(*self._labels).observe(max(0.0, waited))
        if tracing.is_on():
            self._spans = tracing.AttemptSpans(carrier, run, attempt, self._labels[0])

    def begin(self) -> None:
        """Watch the models, tools and nodes of this task's context from here on."""
        self._usage = watching.Watcher(self._spans)
        watching.watcher.set(self._usage)

    def returned(self, error: BaseException | None = None) -> None:
        """Note that the run has returned to the queue, or to another process."""
        metrics.runs().returned.labels(*self._labels).inc()
        if self._spans is not None:
            self._spans.end("returned", error, self._tokens())

    def ended(self, status: str, error: BaseException | None = None) -> None:
        """Note the end of the run, and write its line."""
        count, seconds, tokens = metrics.runs(), elapsed() - self._began, self._tokens()
        count.ended.labels(*self._labels, status).inc()
        if status in _FAILED:
            count.failed.labels(*self._labels).inc()
        count.duration.labels(*self._labels, status).observe(seconds)
        for kind, number in tokens.items():
            if number:
                count.tokens.labels(self._labels[0], kind).inc(number)
        if self._spans is not None:
            self._spans.end(status, error, tokens)
        if _lines.isEnabledFor(logging.INFO):
            self._write(status, seconds, tokens)

    def _tokens(self) -> dict[str, int]:
        return {} if self._usage is None else self._usage.tokens

    def _write(self, status: str, seconds: float, tokens: dict[str, int]) -> None:
        fields = {
            "run_id": str(self._run["run_id"]),
            "thread_id": str(self._run["thread_id"]),
            "graph": self._labels[0],
            "status": str(status),
            "seconds": round(seconds, 3),
            "attempts": self._attempt,
            "input_tokens": tokens.get("input", 0),
            "output_tokens": tokens.get("output", 0),
        }
        if request_id := configurable(self._run).get("langgraph_request_id"):
            fields["request_id"] = str(request_id)
        text = " ".join(f"{name}={value}" for name, value in fields.items())
        _lines.info("Run ended %s", text, extra={"run": fields})
