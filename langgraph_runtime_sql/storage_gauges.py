"""Storage gauges: the bytes of tenants and of the largest threads, for `/metrics`.

A pass over all threads takes many looks. Each adds up the next threads for a moment, so no scrape is
slow. A gauge shows the last whole pass.
"""

import time
from collections import Counter
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, select

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import threads
from langgraph_runtime_sql.database.statements import Prepared
from langgraph_runtime_sql.limits import stored_count

# Seconds of a look, threads of a transaction in it, and seconds between the ends of passes and the
# beginnings of the next ones.
LOOK_SECONDS, PAGE, REST_SECONDS = 0.5, 20, 600.0
# The tenants and threads that have a value of their own; a label for each would be too many.
TENANTS, THREADS = 20, 10
# The labels of threads without a tenant, and of all other tenants together.
NO_TENANT, OTHERS = "", "(others)"

_NEXT = Prepared(
    select(threads.c.thread_id, threads.c.tenant)
    .where(threads.c.thread_id > bindparam("after"))
    .order_by(threads.c.thread_id)
    .limit(PAGE)
)


class Gauges(NamedTuple):
    """The gauges, by what they show."""

    tenants: Any
    threads: Any


@cache
def gauges() -> Gauges:
    """Return the gauges; the first call registers them."""
    from prometheus_client import Gauge

    return Gauges(
        Gauge(
            "threadhold_tenant_bytes",
            f"Bytes of the threads of the {TENANTS} largest tenants, and of all others",
            ["tenant"],
        ),
        Gauge("threadhold_thread_bytes", f"Bytes of the {THREADS} largest threads", ["thread"]),
    )


class StorageSizes:
    """Adds up the bytes of all threads, a look at a time."""

    def __init__(self) -> None:
        self._after = UUID(int=0)
        self._tenants: Counter[str] = Counter()
        self._threads: Counter[str] = Counter()
        self._ended = float("-inf")

    async def look(self, database: Database) -> None:
        """Add up the next threads, and show the sums after the last one.

        Args:
            database: The database, with all tenants in scope.
        """
        began = time.monotonic()
        if began - self._ended < REST_SECONDS:
            return
        while time.monotonic() - began < LOOK_SECONDS:
            if not await database.read(self._add_page):
                self._show()
                self._ended = time.monotonic()
                return

    def _add_page(self, conn: Connection) -> bool:
        """Add up a page of threads, and return whether there may be more."""
        found = conn.fetchall(_NEXT, {"after": self._after})
        for row in found:
            size = stored_count.of_threads(conn, [row["thread_id"]])
            self._tenants[row["tenant"] or NO_TENANT] += size
            self._threads[str(row["thread_id"])] = size
            self._after = row["thread_id"]
        self._threads = Counter(dict(self._threads.most_common(THREADS)))
        return len(found) == PAGE

    def _show(self) -> None:
        shown = gauges()
        largest = dict(self._tenants.most_common(TENANTS))
        if others := self._tenants.total() - sum(largest.values()):
            largest[OTHERS] = others
        for gauge, sizes in ((shown.tenants, largest), (shown.threads, self._threads)):
            gauge.clear()
            for name, size in sizes.items():
                gauge.labels(name).set(size)
        self._after = UUID(int=0)
        self._tenants, self._threads = Counter(), Counter()
