"""Reporting: where a migration tells its progress.

A context variable, because the `prepare` of a released script takes only a connection.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from langgraph_runtime_sql.progress import Progress, Report, ignore

_report: ContextVar[Report] = ContextVar("report", default=ignore)


@contextmanager
def reporting(report: Report) -> Iterator[None]:
    """Let migrations in the block tell `report` their progress."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


def tell(progress: Progress) -> None:
    """Tell the progress to the report of the surrounding `reporting`."""
    _report.get()(progress)
