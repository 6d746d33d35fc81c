"""Gauges: what the database and the process know, read at each scrape of `/metrics`.

The values are at most `FRESH_SECONDS` old, so that many scrapes cost no more than one.
"""

import asyncio
import shutil
from functools import cache, partial
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, bindparam, case, func, literal_column, select

from langgraph_runtime_sql import metrics, runtime, storage_gauges
from langgraph_runtime_sql.clock import elapsed
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import (
    PENDING_LITERAL,
    RUNNING_LITERAL,
    event_segments,
    runs,
    webhooks,
)
from langgraph_runtime_sql.database.statements import Prepared
from langgraph_runtime_sql.database.url import database_path, is_postgres
from langgraph_runtime_sql.errors import DatabaseState, NotStarted
from langgraph_runtime_sql.tenancy import scope

FRESH_SECONDS = 5.0
# The size of a database is slower to find.
SIZE_SECONDS = 60.0

_DUE = Prepared(
    select(func.count().label("depth"), func.min(runs.c.created_at).label("oldest")).where(
        runs.c.status == PENDING_LITERAL, runs.c.created_at <= bindparam("now")
    )
)
_RUNNING = Prepared(
    select(
        func.count().label("running"),
        func.count().filter(runs.c.lease_until < bindparam("now")).label("expired"),
    ).where(runs.c.status == RUNNING_LITERAL)
)
# Counts of webhooks end here, so that a dead receiver makes no scrape slow.
MOST_WEBHOOKS = 10_000


def _webhooks(status: str) -> Any:
    few: Any = select(literal_column("1")).where(webhooks.c.status == status).limit(MOST_WEBHOOKS)
    return select(func.count()).select_from(few.subquery()).scalar_subquery()


_WEBHOOKS = Prepared(
    select(
        _webhooks("pending").label("pending"),
        _webhooks("dead").label("dead"),
        select(func.min(webhooks.c.due_at))
        .where(webhooks.c.status == "pending")
        .scalar_subquery()
        .label("due"),
    )
)
# SQLite does not know the size of a table. Each look adds up the next rows.
SLICE_ROWS = 5_000
_row_id = literal_column("event_segments.rowid", BigInteger)
_slice = (
    select(
        _row_id.label("row_id"),
        case((event_segments.c.events.is_(None), 0), else_=event_segments.c.size).label("size"),
    )
    .where(_row_id > bindparam("after"))
    .order_by(_row_id)
    .limit(SLICE_ROWS)
    .subquery()
)
_SLICE = Prepared(
    lambda: select(
        func.count().label("count"),
        func.max(_slice.c.row_id).label("last"),
        func.coalesce(func.sum(_slice.c.size), 0).label("size"),
    )
)
_SIZES = {
    "sqlite": Prepared(
        lambda: select(
            literal_column(
                "(SELECT page_count FROM pragma_page_count())"
                " * (SELECT page_size FROM pragma_page_size())",
                BigInteger,
            ).label("whole")
        )
    ),
    "postgresql": Prepared(
        lambda: select(
            literal_column("pg_database_size(current_database())", BigInteger).label("whole"),
            literal_column("pg_total_relation_size('event_segments')", BigInteger).label("events"),
        )
    ),
}


class Gauges(NamedTuple):
    """The gauges, by what they show."""

    depth: Any
    oldest: Any
    running: Any
    expired: Any
    slots: Any
    active: Any
    database_bytes: Any
    disk_bytes: Any
    disk_free: Any
    event_bytes: Any
    threads: Any
    busy_threads: Any
    waiting: Any
    webhooks_pending: Any
    webhooks_dead: Any
    webhooks_late: Any


@cache
def gauges() -> Gauges:
    """Return the gauges; the first call registers them."""
    from prometheus_client import Gauge

    storage_gauges.gauges()
    slots = Gauge("threadhold_slots", "Runs that this process may execute at once")
    active = Gauge("threadhold_slots_active", "Runs that this process executes now: its leases")
    state = Gauge(
        "threadhold_database_state", "1 for the state that the database has, else 0", ["state"]
    )
    for each in DatabaseState:
        state.labels(each.value).set_function(partial(_has_state, each))
    slots.set_function(lambda: metrics.workers.max)
    active.set_function(lambda: metrics.workers.active)
    return Gauges(
        Gauge("threadhold_queue_depth", "Due runs that wait, of all processes"),
        Gauge("threadhold_queue_oldest_seconds", "How long the oldest due run has waited"),
        Gauge("threadhold_leases", "Runs that execute, of all processes"),
        Gauge("threadhold_leases_expired", "Runs whose lease has ended, of all processes"),
        slots,
        active,
        Gauge("threadhold_database_bytes", "Size of the database"),
        Gauge("threadhold_disk_bytes", "Size of the disk of a SQLite file"),
        Gauge("threadhold_disk_free_bytes", "Free space on the disk of a SQLite file"),
        Gauge("threadhold_event_log_bytes", "Size of the event log"),
        Gauge("threadhold_database_threads", "Threads of the database pool", ["kind"]),
        Gauge("threadhold_database_threads_busy", "Threads that execute an operation", ["kind"]),
        Gauge("threadhold_database_waiting", "Operations that wait for a thread", ["kind"]),
        Gauge("threadhold_webhooks_pending", f"Webhooks to deliver, up to {MOST_WEBHOOKS}"),
        Gauge("threadhold_webhooks_dead", f"Webhooks that were given up, up to {MOST_WEBHOOKS}"),
        Gauge("threadhold_webhooks_late_seconds", "How long the oldest due webhook has waited"),
    )


def _has_state(state: DatabaseState) -> bool:
    try:
        return runtime.current().database.outage.state is state
    except NotStarted:
        return False


class _Sampler:
    """Reads the database for the gauges, once for all scrapes of a few seconds."""

    def __init__(self) -> None:
        self._sampled = self._sized = float("-inf")
        self._lock: asyncio.Lock | None = None
        self._log = _LogSize()
        self._storage = storage_gauges.StorageSizes()

    async def sample(self) -> None:
        """Set the gauges from the database, unless they are fresh, and those of workers."""
        _show_workers()
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:
            now = elapsed()
            if now - self._sampled < FRESH_SECONDS:
                return
            with_size = now - self._sized >= SIZE_SECONDS
            database = runtime.current().database
            with scope.within(scope.EVERYTHING):
                found = await database.read(lambda conn: _read(conn, with_size=with_size))
                if with_size and database.dialect_name == "sqlite":
                    found["events"] = await self._log.look(database)
                if with_size:
                    await self._storage.look(database)
            shown = gauges()
            shown.depth.set(found["depth"])
            shown.oldest.set(found["oldest"])
            shown.running.set(found["running"])
            shown.expired.set(found["expired"])
            shown.webhooks_pending.set(found["webhooks_pending"])
            shown.webhooks_dead.set(found["webhooks_dead"])
            shown.webhooks_late.set(found["webhooks_late"])
            for kind, (threads, busy, waiting) in database.usage().items():
                shown.threads.labels(kind).set(threads)
                shown.busy_threads.labels(kind).set(busy)
                shown.waiting.labels(kind).set(waiting)
            if with_size:
                if not is_postgres(database.url):
                    disk = shutil.disk_usage(database_path(database.url).parent)
                    shown.disk_bytes.set(disk.total)
                    shown.disk_free.set(disk.free)
                shown.database_bytes.set(found["whole"])
                shown.event_bytes.set(found["events"])
                self._sized = now
            self._sampled = now


def _show_workers() -> None:
    """Set langgraph_api's gauges of workers, which itself looks at them every few seconds only."""
    from langgraph_api import metrics_otlp

    if metrics.workers.max == 0:
        return
    reporter = metrics_otlp.get_otlp_metrics_reporter()
    now = metrics.get_metrics()["workers"]
    reporter.record_gauge(metrics_otlp.GAUGE_WORKERS_MAX, now["max"])
    reporter.record_gauge(metrics_otlp.GAUGE_WORKERS_ACTIVE, now["active"])
    reporter.record_gauge(metrics_otlp.GAUGE_WORKERS_AVAILABLE, now["available"])


class _LogSize:
    """The size of the event log on SQLite, added up a slice of rows at a time."""

    def __init__(self) -> None:
        self._after = self._sum = self._whole = 0
        self._is_known = False

    async def look(self, database: Database) -> int:
        """Add up the next rows, and return the size in bytes.

        A log of more rows than a slice shows its size of some looks ago, and less until its rows
        have been added up once.
        """
        after = self._after
        found = await database.read(lambda conn: conn.fetchone(_SLICE, {"after": after}))
        if found is None:
            raise LookupError("an aggregate has no row")
        self._sum += found["size"]
        if found["count"] == SLICE_ROWS:
            self._after = found["last"]
        else:
            self._whole, self._is_known = self._sum, True
            self._after = self._sum = 0
        return self._whole if self._is_known else self._sum


def _read(conn: Connection, *, with_size: bool) -> dict[str, Any]:
    now = conn.now()
    due, running = conn.fetchone(_DUE, {"now": now}), conn.fetchone(_RUNNING, {"now": now})
    hooks = conn.fetchone(_WEBHOOKS)
    if due is None or running is None or hooks is None:
        raise LookupError("an aggregate has no row")
    late = 0 if hooks["due"] is None else (now - hooks["due"]).total_seconds()
    found = {
        **due,
        **running,
        "webhooks_pending": hooks["pending"],
        "webhooks_dead": hooks["dead"],
        "webhooks_late": max(0, late),
    }
    found["oldest"] = 0 if due["oldest"] is None else (now - due["oldest"]).total_seconds()
    if with_size:
        found |= conn.fetchone(_SIZES[conn.dialect_name]) or {}
    return found


sampler = _Sampler()
