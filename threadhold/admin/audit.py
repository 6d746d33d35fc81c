"""Audit: read, verify and shorten the audit log of a database, while servers may run."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from langgraph_runtime_sql import clock, process
from langgraph_runtime_sql.audit import keys, listing, recorder, retention
from langgraph_runtime_sql.audit import log as logs
from langgraph_runtime_sql.audit import verify as verification
from langgraph_runtime_sql.audit.listing import Wanted
from langgraph_runtime_sql.audit.verify import Verdict
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.migrations import open_database

__all__ = ["Wanted", "find", "remove", "verify"]

T = TypeVar("T")


def find(url: str, wanted: Wanted) -> list[dict[str, Any]]:
    """Return entries of the database at `url`, the newest first."""
    return _with(url, lambda database: database.read_sync(partial(listing.find, wanted=wanted)))


def verify(url: str, *, expected: str | None = None) -> Verdict:
    """Check all entries; see `langgraph_runtime_sql.audit.verify.verify`.

    Raises:
        BadAuditKey: the key file beside the database cannot be used.
    """
    texts = keys.configured(url, process.configuration().options.audit_key)
    check = partial(verification.verify, texts=texts, expected=expected)
    return _with(url, lambda database: database.read_sync(check))


def remove(url: str, age: timedelta) -> int:
    """Remove the entries older than `age`, and return their number.

    Raises:
        ValueError: the age is less than a day.
        AuditBroken: an entry to be removed does not verify.
        BadAuditKey: the key file beside the database cannot be used.
    """

    def pages(database: Database) -> int:
        page = partial(
            retention.remove_page, log=logs.of(database), age=age, before=clock.now() - age
        )
        removed = 0
        while count := database.write_sync(page):
            removed += count
        return removed

    with recorder.by_command("audit"):
        return _with(url, pages)


def _with(url: str, fn: Callable[[Database], T]) -> T:
    database = open_database(url, exclusive=False)
    try:
        # SQLite writes on a thread, which only a start starts.
        database.start_writer()
        return fn(database)
    finally:
        database.close()
