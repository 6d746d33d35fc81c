"""Entries: the line of the audit log that each changed object gets, in the transaction that changes it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from uuid import UUID

from langgraph_runtime_sql.audit.entry import Note
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.gate.operations import Operation

NO_DETAIL: Mapping[str, Any] = MappingProxyType({})


def record(
    conn: Connection,
    operation: Operation,
    object_id: UUID | None,
    *,
    tenant: str | None = None,
    detail: Mapping[str, Any] = NO_DETAIL,
) -> None:
    """Enter a change that a client, a run, a cron or the platform itself makes.

    Args:
        conn: The transaction of the change.
        operation: What happens, and to which kind of object.
        object_id: The object. One without an id is named in `detail`.
        tenant: The object's tenant, for an actor without one.
        detail: Further facts, as JSON values.
    """
    conn.notes.append(of(operation, object_id, tenant=tenant, detail=detail))


def of(
    operation: Operation,
    object_id: UUID | None,
    *,
    tenant: str | None = None,
    detail: Mapping[str, Any] = NO_DETAIL,
) -> Note:
    """Return the entry of a change. The arguments are those of `record`."""
    return Note(operation.kind, object_id, operation.action, tenant=tenant, detail=detail)
