"""Limits: which limits each operation that stores something counts against.

Each check but those of versions and states is part of the transaction that stores. Without a configured
limit it executes no statement. All raise `LimitReached`.
"""

from typing import Any
from uuid import UUID

from langgraph_runtime_sql import process
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.limits import members, quotas, stored
from langgraph_runtime_sql.limits.pages import PageLimit
from langgraph_runtime_sql.tenancy import tenants


def thread(conn: Connection, row: Row) -> None:
    """Check that a thread may be created."""
    quotas.check_thread(conn, row["tenant"])
    stored.check(conn, row["tenant"], row)


def thread_copy(conn: Connection, row: Row) -> None:
    """Check that the checkpoints of a copied thread may be stored."""
    stored.check_thread(conn, row["tenant"], row["thread_id"])


def run(conn: Connection, row: Row, tenant: str | None, user: str | None) -> None:
    """Check that a run may be created, and count its start."""
    quotas.check_run(conn, tenant, user, row["assistant_id"])
    stored.check(conn, tenant, row)


def assistant(conn: Connection, metadata: Row) -> None:
    """Check that an assistant may be created."""
    quotas.check_assistant(conn, tenants.of(metadata))


def assistant_version(conn: Connection, assistant_id: UUID, sent: Row) -> None:
    """Check, in a transaction that reads, that an assistant may get a version."""
    quotas.check_version(conn, assistant_id, sent)


def cron(conn: Connection, metadata: Row, user: str | None) -> None:
    """Check that a cron may be created."""
    quotas.check_cron(conn, tenants.of(metadata), user)


async def state(tenant: str | None, sent: Any) -> None:
    """Check, in a transaction of its own, that the state may be stored that a client sends."""
    await stored.admit(process.current().database, tenant, sent)


def items(conn: Connection, tenant: str | None, size: int) -> None:
    """Check that items of so many bytes may be stored."""
    stored.check_size(conn, tenant, size)


def history_page() -> PageLimit:
    """Return the limit of a page of a thread's history."""
    return PageLimit(members.of_thread(process.current().options.limits).page_bytes)
