"""Rows of assistants: the statements and shapes that operations share."""

import uuid
from collections.abc import Collection
from typing import Any
from uuid import UUID

from sqlalchemy import Table, bindparam, func, select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql.clock import now
from langgraph_runtime_sql.database.connection import Connection, Prefetched
from langgraph_runtime_sql.database.schema import assistant_versions, assistants, crons, runs
from langgraph_runtime_sql.database.statements import InsertNew, LockingSelect, Prepared, Row
from langgraph_runtime_sql.encryption import seal_row
from langgraph_runtime_sql.errors import WriteConflict
from langgraph_runtime_sql.gate import entries
from langgraph_runtime_sql.gate.operations import (
    ASSISTANT_CREATE,
    ASSISTANT_DELETE,
    ASSISTANT_UPDATE,
)
from langgraph_runtime_sql.gate.reads import Visible
from langgraph_runtime_sql.tenancy import tenants

# The columns that each version stores.
VERSIONED = ("graph_id", "name", "description", "config", "context", "metadata")

_INSERT = Prepared(InsertNew(assistants))
_INSERT_VERSION = Prepared(assistant_versions.insert())
PUBLIC = [column for column in assistants.c if column.name != "tenant"]
VERSION_PUBLIC = [column for column in assistant_versions.c if column.name != "tenant"]
_by_id = select(*PUBLIC).where(assistants.c.assistant_id == bindparam("assistant_id"))
_BY_ID, _FOR_UPDATE = Prepared(_by_id), LockingSelect(_by_id)
_VERSION = Prepared(
    select(*VERSION_PUBLIC).where(
        assistant_versions.c.assistant_id == bindparam("assistant_id"),
        assistant_versions.c.version == bindparam("version"),
    )
)
_LAST_VERSION = Prepared(
    select(func.max(assistant_versions.c.version).label("version")).where(
        assistant_versions.c.assistant_id == bindparam("assistant_id")
    )
)
_MAKE_CURRENT = Prepared(
    assistants.update()
    .where(assistants.c.assistant_id == bindparam("key"))
    .values({name: bindparam(name) for name in (*VERSIONED, "version", "updated_at", "tenant")})
)
_DELETE = Prepared(assistants.delete().where(assistants.c.assistant_id == bindparam("key")))
_DELETE_CRONS = Prepared(crons.delete().where(crons.c.assistant_id == bindparam("key")))


def find(conn: Connection, assistant_id: UUID) -> Row | None:
    """Return an assistant, or None."""
    return prefetch(conn, assistant_id).one()


def prefetch(conn: Connection, assistant_id: UUID) -> Prefetched:
    """Queue the query for an assistant."""
    return conn.prefetch(_BY_ID, {"assistant_id": assistant_id})


def _find_for_update(conn: Connection, assistant_id: UUID) -> Row | None:
    """Return an assistant, or None. A write locks it."""
    return conn.fetchone(_FOR_UPDATE, {"assistant_id": assistant_id})


def require(
    conn: Connection, assistant_id: UUID, visible: Visible, *, called: str = "Assistant"
) -> Row:
    """Return a visible assistant.

    Args:
        called: Its name in the error, which differs between routes.

    Raises:
        HTTPException: (404) it is missing or hidden.
    """
    row = visible.only(_find_for_update(conn, assistant_id))
    if row is None:
        raise HTTPException(404, f"{called} {assistant_id} not found")
    return row


def find_version(conn: Connection, assistant_id: UUID, version: int | None) -> Row | None:
    """Return a version of an assistant, or None."""
    return conn.fetchone(_VERSION, {"assistant_id": assistant_id, "version": version})


def insert(conn: Connection, assistant_id: UUID, fields: Row) -> Row:
    """Create an assistant at version 1; `fields` are those of `VERSIONED`.

    Raises:
        HTTPException: (409) an assistant has this id, and the caller cannot see it.
    """
    date = now()
    first = {"assistant_id": assistant_id, "version": 1, "created_at": date, **fields}
    first["tenant"] = tenants.of(first["metadata"])
    current = {**first, "updated_at": date}
    if not conn.execute(_INSERT, _sealed(conn, assistants, current)):
        if find(conn, assistant_id) is not None:
            raise WriteConflict
        raise HTTPException(409, f"Assistant {assistant_id} already exists")
    conn.execute(_INSERT_VERSION, _sealed(conn, assistant_versions, first))
    entries.record(conn, ASSISTANT_CREATE, assistant_id, tenant=first["tenant"])
    return _stored(conn, assistant_id)


def add_version(conn: Connection, row: Row, changes: Row) -> Row:
    """Add a version with `changes` to an assistant, and make it current."""
    assistant_id = row["assistant_id"]
    last = conn.scalar(_LAST_VERSION, {"assistant_id": assistant_id}) or 0
    version = {name: row[name] for name in VERSIONED} | changes | {"version": last + 1}
    key = {"assistant_id": assistant_id, "tenant": tenants.of(version["metadata"])}
    added = {"created_at": now(), **key, **version}
    conn.execute(_INSERT_VERSION, _sealed(conn, assistant_versions, added))
    return make_current(conn, assistant_id, version)


def make_current(conn: Connection, assistant_id: UUID, version: Row) -> Row:
    """Set an assistant's fields to those of one of its versions."""
    fields = {name: version[name] for name in (*VERSIONED, "version")}
    tenant = tenants.of(fields["metadata"])
    fields = seal_row(conn, assistants, assistant_id, tenant, fields)
    key = {"key": assistant_id, "tenant": tenant}
    conn.execute(_MAKE_CURRENT, {"updated_at": now(), **key, **fields})
    detail = {"version": version["version"]}
    entries.record(conn, ASSISTANT_UPDATE, assistant_id, tenant=tenant, detail=detail)
    return _stored(conn, assistant_id)


def _sealed(conn: Connection, table: Table, row: Row) -> Row:
    return seal_row(conn, table, row["assistant_id"], row["tenant"], row)


def delete(conn: Connection, assistant_id: UUID) -> None:
    """Delete an assistant with its versions and crons. Its runs stay."""
    conn.execute(_DELETE_CRONS, {"key": assistant_id})
    conn.execute(_DELETE, {"key": assistant_id})
    entries.record(conn, ASSISTANT_DELETE, assistant_id)


def _stored(conn: Connection, assistant_id: UUID) -> Row:
    # Read it, so that the answer has the same form as later ones.
    row = find(conn, assistant_id)
    if row is None:
        raise LookupError(f"Assistant {assistant_id} was written but cannot be read")
    return row


# --- config and context -----------------------------------------------------


def mirrored(config: Row | None, context: Row | None) -> tuple[Row, Row]:
    """Return config and context of a new assistant. The given one also fills the other.

    Raises:
        HTTPException: (400) both are given.
    """
    config, context = config or {}, context or {}
    refuse_both(config, context)
    if config.get("configurable"):
        return config, config["configurable"]
    return ({**config, "configurable": context}, context) if context else (config, {})


def mirrored_changes(row: Row, config: Row | None, context: Row | None) -> Row:
    """Return an assistant's new config and context. The given one also fills the other.

    Raises:
        HTTPException: (400) both are given.
    """
    refuse_both(config, context)
    changes: Row = {"config": config} if config else {}
    if config and config.get("configurable"):
        changes["context"] = config["configurable"]
    elif context is not None:
        rest = {k: v for k, v in (config or row["config"]).items() if k != "configurable"}
        changes["context"] = context
        changes["config"] = {**rest, "configurable": context} if context else rest
    return changes


def refuse_both(config: Row | None, context: Row | None) -> None:
    """Check that a request does not give both configurable and context.

    Raises:
        HTTPException: (400) it does.
    """
    if config and config.get("configurable") and context:
        raise HTTPException(
            400,
            "Cannot specify both configurable and context: give context alone, "
            "config.configurable is then filled from it.",
        )


# --- system assistants ------------------------------------------------------


def system_id(graph_id: str) -> UUID:
    """Return the id of the system assistant of a graph, the same on every server."""
    from langgraph_api.graph import NAMESPACE_GRAPH

    return uuid.uuid5(NAMESPACE_GRAPH, graph_id)


def register(conn: Connection, assistant_id: UUID, fields: Row) -> Row:
    """Create or update the system assistant of a graph from the server's configuration.

    Only a changed name or description writes a new version. Other changes of clients stay. If
    a client has created an assistant of another graph with this id, all fields are replaced.
    """
    row = _find_for_update(conn, assistant_id)
    if row is None:
        return insert(conn, assistant_id, fields)
    synced = VERSIONED if row["graph_id"] != fields["graph_id"] else ("name", "description")
    changes = {name: fields[name] for name in synced if fields[name] != row[name]}
    return add_version(conn, row, changes) if changes else row


_UNUSED = Prepared(
    select(assistants.c.assistant_id, assistants.c.graph_id).where(
        assistants.c.version == 1,
        ~select(runs.c.run_id).where(runs.c.assistant_id == assistants.c.assistant_id).exists(),
        ~select(crons.c.cron_id).where(crons.c.assistant_id == assistants.c.assistant_id).exists(),
    )
)


def retire_system_assistants(conn: Connection, live_ids: Collection[Any]) -> list[UUID]:
    """Delete unused system assistants of graphs that are no longer served.

    Assistants with changes, runs or crons stay; `search` and `count` hide them. Call it only if
    no other process uses the database, because others may serve other graphs.

    Args:
        live_ids: The ids of this server's system assistants.

    Returns:
        The deleted ids.
    """
    live = {str(each) for each in live_ids}
    gone = [
        row["assistant_id"]
        for row in conn.fetchall(_UNUSED)
        # The id proves a system assistant. Metadata does not: clients write it.
        if row["assistant_id"] == system_id(row["graph_id"])
        and str(row["assistant_id"]) not in live
    ]
    for assistant_id in gone:
        delete(conn, assistant_id)
    return gone
