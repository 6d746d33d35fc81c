"""Findings: detect inconsistent rows, explain them, and repair them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from sqlalchemy import func, select

from langgraph_runtime_sql import checkpoint, effects
from langgraph_runtime_sql.checkpoint import examination
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import (
    Sealed,
    assistants,
    crons,
    event_segments,
    runs,
    tenant_runs,
    thread_labels,
    threads,
)
from langgraph_runtime_sql.database.sqlite.damage import REMEDY, damage
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.encryption.keys import TenantKeys
from langgraph_runtime_sql.errors import DatabaseInUse, RuntimeSqlError
from langgraph_runtime_sql.events import dictionaries, log
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.migrations import sealed_only
from langgraph_runtime_sql.ops.runs import claim as run_claim
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.runs.cancel import cancel_pending
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.progress import Progress, Report, ignore
from langgraph_runtime_sql.search import metadata_index
from langgraph_runtime_sql.statuses import RunStatus, ThreadStatus
from langgraph_runtime_sql.tenancy import tenants
from langgraph_runtime_sql.webhooks import outbox

# A live process renews its leases three times in this period.
LEASE = timedelta(seconds=run_claim.LEASE_SECONDS)


class CannotExamine(RuntimeSqlError):
    """The database cannot be examined."""


class RepairRefused(RuntimeSqlError):
    """The database is in use, so it cannot be repaired."""


@dataclass(frozen=True)
class Finding:
    """A problem of a database or Redis.

    Attributes:
        what: `run`, `tenant`, `thread`, `cron`, `checkpoint`, `events`, `database` or `redis`.
        id: Its id.
        why: The problem.
        remedy: The repair, as an imperative.
        repair: Repairs it inside a transaction; None if only an operator can.
    """

    what: str
    id: str
    why: str
    remedy: str
    repair: Callable[[Connection], object] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class OpenDatabase:
    """A database that the doctor has opened.

    Attributes:
        owner: The error that names its owner; None if the doctor owns it.
        revision: Returns the schema version that a connection finds.
        read: Runs a function in one snapshot.
        write: Runs a function in one transaction, and commits it.
    """

    owner: DatabaseInUse | None
    revision: Callable[[Any], str | None]
    read: Callable[[Callable[[Connection], Any]], Any]
    write: Callable[[Callable[[Connection], None]], None]


def owner_of(take: Callable[[], None]) -> DatabaseInUse | None:
    """Own a database by `take`, or return the error that names its owner."""
    try:
        take()
    except DatabaseInUse as error:
        return error
    return None


def examine(conn: Connection, *, served: bool, report: Report = ignore) -> list[Finding]:
    """Return all findings about a database, or only the damage if the file is damaged.

    Args:
        conn: A connection in a transaction that sees one snapshot.
        served: Whether a process owns the database. Running runs with a valid lease are then
            no problem.
        report: Gets the progress.
    """
    if damage := list(_damage(conn, report)):
        return damage
    checks: tuple[Iterator[Finding], ...] = (
        _role(conn),
        _references(conn),
        _runs(conn, served=served),
        _counters(conn),
        _threads(conn),
        _labels(conn, report),
        _crons(conn),
        _webhooks(conn),
        _effects(conn, served=served),
        _checkpoints(conn),
        _chains(conn, report),
        _segments(conn),
        _plain(conn),
    )
    found: list[Finding] = []
    for done, check in enumerate(checks):
        report(Progress("Examining", done, len(checks), "checks"))
        found += check
    report(Progress("Examining", len(checks), len(checks), "checks"))
    return found


def _effects(conn: Connection, *, served: bool) -> Iterator[Finding]:
    for row in effects.unknown(conn, MAX_EFFECTS, cut_off=not served):
        yield Finding(
            "effect",
            str(row["effect_id"]),
            f"{row['name']} of run {row['run_id']} was cut off: whether it happened is unknown",
            "ask the other system; then `threadhold effects resolve ID --happened yes` or `no`",
        )


def _webhooks(conn: Connection) -> Iterator[Finding]:
    for row in outbox.listed(conn, "dead", None, MAX_WEBHOOKS):
        yield Finding(
            "webhook",
            str(row["webhook_id"]),
            f"not delivered after {row['attempts']} attempts: {row['error']}",
            "`threadhold webhooks replay ID` sends it again; it is deleted after 30 days",
        )


def _role(conn: Connection) -> Iterator[Finding]:
    if tenants.are_known(conn) and (role := tenants.bypassing_role(conn)) is not None:
        yield Finding(
            "database",
            conn.raw.info.dbname,
            f"the role {role} bypasses row-level security: only the application separates tenants",
            "serve as an ordinary role that owns the database (docs/how-to/postgres.md)",
        )


def repair(conn: Connection, findings: list[Finding], report: Report = ignore) -> None:
    """Repair the findings in the transaction of `conn`, whose process owns the database.

    Call it within `tools.without_platform`, because repairs are operations of the runtime.
    """
    repairs = [finding.repair for finding in findings if finding.repair is not None]
    for done, mend in enumerate(repairs, 1):
        mend(conn)
        report(Progress("Repairing", done, len(repairs), "findings"))


def _damage(conn: Connection, report: Report) -> Iterator[Finding]:
    if conn.dialect_name == "sqlite":
        alive = partial(report, Progress("Reading the file", 0, 0))
        for where, why in damage(conn.raw, alive):
            yield Finding("database", where, why, REMEDY)


def _references(conn: Connection) -> Iterator[Finding]:
    if conn.dialect_name != "sqlite":
        return
    for table, rowid, parent, _ in conn.raw.execute("PRAGMA foreign_key_check").fetchall():
        # Tables without rowid give no row number.
        which = table if rowid is None else f"{table}:{rowid}"
        why = f"a row refers to a missing row of {parent}"
        yield Finding("database", which, why, "restore a backup")


# Without the encrypted columns, which need a key.
MAX_EFFECTS = 100
MAX_WEBHOOKS = 100

_RUN = [column for column in runs.c if not isinstance(column.type, Sealed)]


def _runs(conn: Connection, *, served: bool) -> Iterator[Finding]:
    for row in conn.fetchall(select(*_RUN).where(runs.c.status == RunStatus.RUNNING)):
        expired = row["lease_until"] is None or row["lease_until"] + LEASE < conn.now()
        if served and not expired:
            continue
        why = "its process has stopped renewing its lease" if served else "no process serves it"
        action = row["cancel_action"]
        remedy = f"cancel it ({action})" if action else "queue it again, from its last checkpoint"
        yield Finding(
            "run",
            str(row["run_id"]),
            f"running (attempt {row['attempt']}), but {why}",
            remedy,
            partial(_release, row=row),
        )
    cancelled = select(*_RUN).where(
        runs.c.status == RunStatus.PENDING, runs.c.cancel_action.is_not(None)
    )
    for row in conn.fetchall(cancelled):
        yield Finding(
            "run",
            str(row["run_id"]),
            "pending, but it was cancelled",
            f"cancel it ({row['cancel_action']})",
            partial(cancel_pending, row=row, action=row["cancel_action"]),
        )


def _release(conn: Connection, row: Row) -> None:
    run_claim.release(conn, row["run_id"], row["attempt"])


def _counters(conn: Connection) -> Iterator[Finding]:
    counted = conn.fetchall(select(tenant_runs).where(tenant_runs.c.tenant != ""))
    of_tenants = select(runs.c.tenant, func.count().label("running")).where(
        runs.c.status == RunStatus.RUNNING, runs.c.tenant.is_not(None)
    )
    running = {
        row["tenant"]: row["running"] for row in conn.fetchall(of_tenants.group_by(runs.c.tenant))
    }
    counters = {row["tenant"]: row["running"] for row in counted}
    for tenant in sorted(counters.keys() | running.keys()):
        counter, true = counters.get(tenant, 0), running.get(tenant, 0)
        if counter != true:
            yield Finding(
                "tenant",
                tenant,
                f"{true} of its runs are running, but its counter says {counter}, so its limits and "
                "turns are wrong",
                "count them again",
                partial(_count_runs, tenant=tenant),
            )


def _count_runs(conn: Connection, tenant: str) -> None:
    # Counted now: an earlier repair may have released runs.
    if conn.dialect_name == "postgresql":
        # What that repair counts must not be counted once more at the commit.
        conn.raw.execute("SET CONSTRAINTS ALL IMMEDIATE")
    found = select(func.count()).where(runs.c.tenant == tenant, runs.c.status == RunStatus.RUNNING)
    running = conn.scalar(found)
    conn.execute(tenant_runs.delete().where(tenant_runs.c.tenant == tenant))
    conn.execute(tenant_runs.insert().values(tenant=tenant, running=running))


def _threads(conn: Connection) -> Iterator[Finding]:
    of_thread = select(runs.c.seq).where(runs.c.thread_id == threads.c.thread_id)
    in_flight = of_thread.where(run_rows.IN_FLIGHT).exists()
    ids = select(threads.c.thread_id)
    is_busy = threads.c.status == ThreadStatus.BUSY
    for busy, wrong, why, remedy in (
        (
            False,
            is_busy & ~in_flight,
            "busy, but it has no run in flight",
            "set the status that its last run left",
        ),
        (True, ~is_busy & in_flight, "not busy, but it has a run in flight", "mark it busy"),
    ):
        for row in conn.fetchall(ids.where(wrong)):
            rest = partial(thread_rows.rest, thread_id=row["thread_id"], busy=busy)
            yield Finding("thread", str(row["thread_id"]), why, remedy, rest)


def _labels(conn: Connection, report: Report) -> Iterator[Finding]:
    wanted = ("thread_id", "metadata", "updated_at", "tenant")
    found = conn.fetchall(select(*(threads.c[name] for name in wanted)))
    for done, row in enumerate(found, 1):
        report(Progress("Examining metadata", done, len(found), "threads"))
        of_thread = thread_labels.c.thread_id == row["thread_id"]
        stored = {
            (label["key"], label["value"], label["period"], label["tenant"])
            for label in conn.fetchall(select(thread_labels).where(of_thread))
        }
        suffix = (metadata_index.period_of(row["updated_at"]), row["tenant"])
        expected = {(*label, *suffix) for label in metadata_index.entries(row["metadata"])}
        if stored != expected:
            yield Finding(
                "thread",
                str(row["thread_id"]),
                "its metadata index is outdated, so searches miss it",
                "write its labels again",
                partial(_update_index, row=row),
            )


def _update_index(conn: Connection, row: Row) -> None:
    conn.execute(thread_labels.delete().where(thread_labels.c.thread_id == row["thread_id"]))
    metadata_index.update(conn, row["thread_id"], {}, row["metadata"], row["updated_at"])
    # The doctor does not know the project's tenant key, so it copies the thread's tenant.
    metadata_index.set_tenant(conn, row["thread_id"], row["tenant"])


def _crons(conn: Connection) -> Iterator[Finding]:
    known = select(assistants.c.assistant_id)
    orphans = select(crons.c.cron_id, crons.c.assistant_id).where(
        crons.c.enabled, crons.c.assistant_id.not_in(known)
    )
    for row in conn.fetchall(orphans):
        yield Finding(
            "cron",
            str(row["cron_id"]),
            f"its assistant {row['assistant_id']} is missing",
            "disable it",
            partial(_disable, row=row),
        )


def _disable(conn: Connection, row: Row) -> None:
    conn.execute(crons.update().where(crons.c.cron_id == row["cron_id"]).values(enabled=False))


def _checkpoints(conn: Connection) -> Iterator[Finding]:
    for thread_id in examination.without_thread(conn):
        yield Finding(
            "checkpoint",
            thread_id,
            "its thread is missing",
            "delete it",
            partial(checkpoint.delete_thread, thread_id=thread_id),
        )


def _chains(conn: Connection, report: Report) -> Iterator[Finding]:
    """Look for checkpoints that cannot be put together.

    What tasks have written onto a missing one is none: it may come before the checkpoint, which a crash
    or a failed run then leaves out.
    """
    found = checkpoint.thread_ids(conn)
    for done, thread_id in enumerate(found, 1):
        report(Progress("Examining checkpoints", done, len(found), "threads"))
        for (ns, checkpoint_id), why in examination.broken(conn, thread_id):
            yield Finding(
                "checkpoint",
                f"{thread_id}/{ns}/{checkpoint_id}" if ns else f"{thread_id}/{checkpoint_id}",
                why,
                "restore a backup, or continue from another checkpoint",
            )


def _segments(conn: Connection) -> Iterator[Finding]:
    c, first = event_segments.c, event_segments.alias().c
    # Bodies are not unpacked, which would take too long.
    damaged = select(c.thread_id, c.epoch, c.first, c.dictionary).where(
        c.events.is_not(None), func.length(c.events) != c.size
    )
    for row in conn.fetchall(damaged):
        yield Finding(
            "events",
            f"{row['thread_id']}:{row['epoch']}-{row['first']}",
            "their stored bytes do not have the stored size",
            "delete them, so that readers learn of the loss",
            partial(_drop_events, row=row),
        )
    there = select(first.first).where(
        first.thread_id == c.thread_id,
        first.epoch == dictionaries.EPOCH,
        first.first == c.dictionary,
    )
    incomplete = select(c.thread_id, c.dictionary).where(
        c.dictionary.is_not(None), c.events.is_not(None), ~there.exists()
    )
    for row in conn.fetchall(incomplete.distinct()):
        yield Finding(
            "events",
            str(row["thread_id"]),
            "the dictionaries that they are compressed with are missing",
            "delete them, so that readers learn of the loss",
            partial(dictionaries.lose, thread_id=row["thread_id"], chain=row["dictionary"]),
        )
    running = select(runs.c.seq).where(
        runs.c.thread_id == c.thread_id, runs.c.status == RunStatus.RUNNING
    )
    waiting = select(c.thread_id, threads.c.tenant).join(threads).where(c.epoch == log.UNPLACED)
    for row in conn.fetchall(waiting.where(~running.exists()).distinct()):
        yield Finding(
            "events",
            str(row["thread_id"]),
            "they wait for a place in the log, but no run of the thread works",
            "place them after the thread's other events",
            partial(_place_events, row=row),
        )


def _plain(conn: Connection) -> Iterator[Finding]:
    """Find rows that no server reads: they are plain although all rows were encrypted."""
    if not TenantKeys().only_sealed(conn):
        return
    for each in sealed_only.guarded(conn.dialect_name):
        if count := each.plain(conn):
            yield Finding(
                "database",
                f"{each.table}.{each.column}",
                f"{count:,} rows are plain, although all rows of this database were encrypted: "
                "something else than the server wrote them, and the server refuses them",
                "find out what wrote them, and delete them or restore a backup",
            )


def _drop_events(conn: Connection, row: Row) -> None:
    if row["epoch"] == dictionaries.EPOCH:
        dictionaries.lose(conn, row["thread_id"], row["dictionary"])
        return
    c = event_segments.c
    is_segment = (c.thread_id == row["thread_id"], c.epoch == row["epoch"], c.first == row["first"])
    conn.execute(event_segments.update().where(*is_segment).values(events=None, size=0))


def _place_events(conn: Connection, row: Row) -> None:
    log.place(conn, StreamKey(row["tenant"], str(row["thread_id"])), [], shared=True)
