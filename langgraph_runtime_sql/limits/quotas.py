"""Quotas: refuse to create more than a tenant, a user or an assistant may have.

Each check but that of versions is part of the transaction that creates the row. On Postgres, a configured
limit holds a lock of the tenant until the commit, so that processes together stay within it. Without a
limit a check executes no statement.
"""

import hashlib
from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Integer,
    LargeBinary,
    Text,
    bindparam,
    cast,
    func,
    literal,
    literal_column,
    select,
)
from sqlalchemy.sql import ColumnElement

from langgraph_runtime_sql import json_codec, process
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import (
    PENDING_LITERAL,
    TENANT,
    assistant_versions,
    assistants,
    crons,
    limit_usage,
    runs,
    thread_labels,
    threads,
)
from langgraph_runtime_sql.database.statements import Params, Prepared
from langgraph_runtime_sql.limit_settings import Limits, Quota
from langgraph_runtime_sql.limits import members
from langgraph_runtime_sql.limits.refusals import refuse

MINUTE = 60.0
# A stored row counts until its deletion, a pending run until its start.
STORED_SECONDS, PENDING_SECONDS = 60.0, 5.0
_TOO_MANY_VERSIONS = (
    "Versions cannot be deleted one by one: create another assistant, and delete this one."
)

_LOCK = Prepared(
    lambda: select(literal(1).label("one")).select_from(
        func.pg_advisory_xact_lock(bindparam("key", type_=BigInteger))
    )
)


def _counting(column: ColumnElement[Any], *conditions: ColumnElement[bool]) -> Prepared:
    """Return the statement that counts rows, up to `room`."""

    def build() -> Any:
        found = select(column).where(*conditions).limit(bindparam("room", type_=Integer))
        return select(func.count().label("rows")).select_from(found.subquery())

    return Prepared(build)


def _is_tenants(column: ColumnElement[Any]) -> ColumnElement[bool]:
    return column == bindparam("tenant", type_=Text)


_PENDING_OF = (
    runs.c.status == PENDING_LITERAL,
    literal_column(TENANT, Text) == bindparam("tenant"),
)
_PENDING = {
    "tenant": _counting(runs.c.seq, *_PENDING_OF),
    "user": _counting(runs.c.seq, *_PENDING_OF, runs.c.user_id == bindparam("name")),
    "assistant": _counting(runs.c.seq, *_PENDING_OF, runs.c.assistant_id == bindparam("name")),
}
# The labels have an index by tenant, the threads have none.
_THREADS = _counting(
    thread_labels.c.thread_id,
    thread_labels.c.key == bindparam("key"),
    thread_labels.c.value == bindparam("value"),
)
_ALL_THREADS = _counting(threads.c.thread_id)
_ASSISTANTS = _counting(assistants.c.assistant_id, _is_tenants(assistants.c.tenant))
_ALL_ASSISTANTS = _counting(assistants.c.assistant_id)
_IN_VERSIONS = ("description", "config", "context", "metadata")


def _of_versions(size: Callable[[ColumnElement[Any]], ColumnElement[int]]) -> Prepared:
    """Return the statement that counts an assistant's versions, and sums up their sizes."""
    each = assistant_versions.c
    sizes = [func.coalesce(size(each[name]), 0) for name in _IN_VERSIONS]
    return Prepared(
        select(
            func.count().label("versions"),
            func.coalesce(func.sum(reduce(add, sizes)), 0).label("bytes"),
        ).where(each.assistant_id == bindparam("assistant"))
    )


_VERSIONS = {
    "sqlite": _of_versions(lambda column: func.length(cast(column, LargeBinary))),
    # The size of a compressed value, which is not read for that.
    "postgresql": _of_versions(func.pg_column_size),
}
_CRONS = _counting(crons.c.cron_id, _is_tenants(crons.c.tenant))
_ALL_CRONS = _counting(crons.c.cron_id)
_CRONS_OF_USER = _counting(
    crons.c.cron_id,
    crons.c.user_id == bindparam("name"),
    func.coalesce(crons.c.tenant, "") == bindparam("tenant_or_none"),
)
_USED = Prepared(
    select(limit_usage.c.until).where(
        limit_usage.c.tenant == bindparam("tenant"),
        limit_usage.c.scope == bindparam("of"),
        limit_usage.c.name == bindparam("name"),
    )
)
_SET_USED = Prepared(
    limit_usage.update()
    .where(
        limit_usage.c.tenant == bindparam("its_tenant"),
        limit_usage.c.scope == bindparam("its_scope"),
        limit_usage.c.name == bindparam("its_name"),
    )
    .values(until=bindparam("later"))
)
_ADD_USED = Prepared(
    limit_usage.insert().values({each.name: bindparam(each.name) for each in limit_usage.c})
)


class _Member(NamedTuple):
    scope: str
    name: Any
    quota: Quota


def check_run(conn: Connection, tenant: str | None, user: str | None, assistant: UUID) -> None:
    """Check that a run may be created, and count its start.

    Raises:
        LimitReached: a limit on pending runs, or on starts a minute, is reached.
    """
    limits = _limits()
    counted = limits.any_has("pending_runs")
    if not counted and not limits.any_has("starts_per_minute"):
        return
    involved = [
        _Member("tenant", "", members.of_tenant(limits, tenant)),
        _Member("assistant", assistant, members.of_assistant(limits, assistant)),
    ]
    if user is not None:
        involved.append(_Member("user", user, members.of_user(limits, user)))
    # What is built in need not be exact, and a lock would let a tenant's runs wait for each other.
    if limits.is_configured("pending_runs") or limits.any_has("starts_per_minute"):
        _lock(conn, tenant)
    for each in involved:
        _check_pending(conn, tenant, each)
    for each in involved:
        _check_start(conn, tenant, each)


def check_thread(conn: Connection, tenant: str | None) -> None:
    """Check that a thread may be created.

    Raises:
        LimitReached: the tenant has as many as it may.
    """
    limits = _limits()
    if not limits.any_has("threads"):
        return
    key = process.current().options.tenant_key
    most = members.of_tenant(limits, tenant).threads
    if tenant is None or key is None:
        _check_stored(conn, tenant, most, "tenant", "threads", _ALL_THREADS, {})
    else:
        label = {"key": key, "value": json_codec.dumps(tenant)}
        _check_stored(conn, tenant, most, "tenant", "threads", _THREADS, label)


def check_assistant(conn: Connection, tenant: str | None) -> None:
    """Check that an assistant may be created.

    Raises:
        LimitReached: the tenant has as many as it may.
    """
    limits = _limits()
    if limits.any_has("assistants"):
        most = members.of_tenant(limits, tenant).assistants
        statement = _ALL_ASSISTANTS if tenant is None else _ASSISTANTS
        _check_stored(conn, tenant, most, "tenant", "assistants", statement, {})


def check_version(conn: Connection, assistant: UUID, document: Any) -> None:
    """Check that an assistant may have another version.

    Versions that are added at the same moment may exceed a limit: nothing is locked, because the
    sum reads all versions.

    Args:
        conn: A transaction that reads.
        assistant: The assistant.
        document: What the client has sent.

    Raises:
        LimitReached: the assistant has as many, or as large, versions as it may.
    """
    quota = members.of_assistant(_limits(), assistant)
    if quota.versions is None and quota.version_bytes is None:
        return
    found = conn.fetchone(_VERSIONS[conn.dialect_name], {"assistant": assistant})
    if found is None:
        return
    size = found["bytes"] + len(json_codec.dumps(document))
    for name, used, most, what in (
        ("versions", found["versions"] + 1, quota.versions, "versions"),
        ("version_bytes", size, quota.version_bytes, "bytes of versions"),
    ):
        if most is not None and used > most:
            raise refuse("assistant", name, most, what, STORED_SECONDS, _TOO_MANY_VERSIONS)


def check_cron(conn: Connection, tenant: str | None, user: str | None) -> None:
    """Check that a cron may be created.

    Raises:
        LimitReached: the tenant or the user has as many as it may.
    """
    limits = _limits()
    if not limits.any_has("crons"):
        return
    most = members.of_tenant(limits, tenant).crons
    statement = _ALL_CRONS if tenant is None else _CRONS
    _check_stored(conn, tenant, most, "tenant", "crons", statement, {})
    if user is not None:
        most = members.of_user(limits, user).crons
        values = {"name": user, "tenant_or_none": tenant or ""}
        _check_stored(conn, tenant, most, "user", "crons", _CRONS_OF_USER, values)


def _limits() -> Limits:
    limits: Limits = process.current().options.limits
    return limits


def _check_stored(
    conn: Connection,
    tenant: str | None,
    most: int | None,
    scope: str,
    limit: str,
    statement: Prepared,
    values: Params,
) -> None:
    if most is None:
        return
    _lock(conn, tenant)
    count: int = conn.scalar(statement, {"tenant": tenant, **values, "room": most})
    if count >= most:
        raise refuse(scope, limit, most, limit, STORED_SECONDS)


def _check_pending(conn: Connection, tenant: str | None, member: _Member) -> None:
    if (most := member.quota.pending_runs) is None:
        return
    values = {"tenant": tenant or "", "name": member.name, "room": most}
    if member.scope == "tenant":
        del values["name"]
    if conn.scalar(_PENDING[member.scope], values) >= most:
        raise refuse(member.scope, "pending_runs", most, "pending runs", PENDING_SECONDS)


def _check_start(conn: Connection, tenant: str | None, member: _Member) -> None:
    """Count a start, as a bucket that holds a minute's starts and fills evenly."""
    if (most := member.quota.starts_per_minute) is None:
        return
    now = conn.now().timestamp()
    name = str(member.name)
    used = conn.scalar(_USED, {"tenant": tenant or "", "of": member.scope, "name": name})
    until = max(used or 0.0, now) + MINUTE / most
    if until - now > MINUTE + 1e-6:
        seconds = until - now - MINUTE
        raise refuse(member.scope, "starts_per_minute", most, "starts a minute", seconds)
    if used is None:
        row = {"tenant": tenant or "", "scope": member.scope, "name": name, "until": until}
        conn.send(_ADD_USED, row)
    else:
        key = {"its_tenant": tenant or "", "its_scope": member.scope, "its_name": name}
        conn.send(_SET_USED, {**key, "later": until})


def _lock(conn: Connection, tenant: str | None) -> None:
    """Wait until no other transaction checks a limit of this tenant."""
    if conn.locks:
        digest = hashlib.blake2b(f"limits:{tenant or ''}".encode(), digest_size=8).digest()
        conn.fetchone(_LOCK, {"key": int.from_bytes(digest, signed=True)})
