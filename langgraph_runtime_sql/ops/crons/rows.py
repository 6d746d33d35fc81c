"""Rows of crons: the statements and shapes that operations share."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import crons
from langgraph_runtime_sql.database.statements import InsertNew, LockingSelect, Prepared, Row
from langgraph_runtime_sql.encryption import seal_row
from langgraph_runtime_sql.errors import WriteConflict
from langgraph_runtime_sql.gate import entries
from langgraph_runtime_sql.gate.operations import CRON_CREATE, CRON_DELETE, CRON_UPDATE
from langgraph_runtime_sql.gate.reads import Visible
from langgraph_runtime_sql.tenancy import tenants

_PRIVATE = ("claimed_until", "creator", "tenant")
PUBLIC = [column for column in crons.c if column.name not in _PRIVATE]

_INSERT = Prepared(InsertNew(crons))
_BY_ID = LockingSelect(select(crons).where(crons.c.cron_id == bindparam("cron_id")))
_DELETE = Prepared(crons.delete().where(crons.c.cron_id == bindparam("key")))


def public(row: Row) -> Row:
    """Return a cron as the API shows it."""
    return {name: value for name, value in row.items() if name not in _PRIVATE}


def find(conn: Connection, cron_id: UUID) -> Row | None:
    """Return a cron as stored, or None. A write locks it."""
    return conn.fetchone(_BY_ID, {"cron_id": cron_id})


def find_visible(conn: Connection, cron_id: UUID, visible: Visible) -> Row | None:
    """Return a cron as stored, or None if it is missing or hidden."""
    return visible.only(find(conn, cron_id))


def insert(conn: Connection, row: Row) -> Row | None:
    """Create a cron. Return the stored row, or None if a hidden cron has its id."""
    columns = {"claimed_until": None, "tenant": tenants.of(row["metadata"]), **row}
    sealed = seal_row(conn, crons, row["cron_id"], columns["tenant"], columns)
    created = conn.execute(_INSERT, sealed)
    found = find(conn, row["cron_id"])
    if found is not None and not created:
        raise WriteConflict
    if created:
        entries.record(conn, CRON_CREATE, row["cron_id"], tenant=columns["tenant"])
    return found


def update(conn: Connection, cron_id: UUID, changes: Row) -> Row | None:
    """Set columns of a cron, and return the stored row."""
    if "metadata" in changes:
        changes = {**changes, "tenant": tenants.of(changes["metadata"])}
    if "payload" in changes or "tenant" in changes:
        row = find(conn, cron_id) or {}
        documents: Row = {name: row[name] for name in ("payload", "creator") if name in row}
        tenant = changes.get("tenant", row.get("tenant"))
        changes = seal_row(conn, crons, cron_id, tenant, {**documents, **changes})
    conn.execute(crons.update().where(crons.c.cron_id == cron_id).values(**changes))
    entries.record(conn, CRON_UPDATE, cron_id, tenant=changes.get("tenant"))
    return find(conn, cron_id)


def delete(conn: Connection, cron_id: UUID) -> bool:
    """Delete a cron. Return False if it was missing."""
    deleted = conn.execute(_DELETE, {"key": cron_id}) > 0
    if deleted:
        entries.record(conn, CRON_DELETE, cron_id)
    return deleted


def payload_of(payload: Mapping[str, Any] | None, cron_id: UUID) -> Row:
    """Return the payload of a cron's runs, with the cron's id.

    Raises:
        HTTPException: (400) it has both configurable and context.
    """
    payload = payload or {}
    config = payload.get("config") or {}
    configurable = {**(config.get("configurable") or {}), "cron_id": str(cron_id)}
    if payload.get("context") and len(configurable) > 1:
        raise HTTPException(
            400, "Cannot specify both configurable and context: give context alone."
        )
    return {**payload, "config": {**config, "configurable": configurable}}


def merged_payload(row: Row, changes: Mapping[str, Any]) -> Row:
    """Merge `changes` into a cron's payload, except its assistant and id.

    Raises:
        HTTPException: (400) the result has both configurable and context.
    """
    payload = row["payload"]
    fixed = {"assistant_id": payload["assistant_id"]} if "assistant_id" in payload else {}
    return payload_of({**payload, **changes, **fixed}, row["cron_id"])
