"""Metadata index: a row for each scalar entry of a thread's metadata, for searches by any key."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import json_codec
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import PERIOD_SECONDS, thread_labels
from langgraph_runtime_sql.database.statements import Prepared
from langgraph_runtime_sql.tenancy import tenants

Entry = tuple[str, str]

# Searches find longer entries in the document.
LENGTH = 200
MAX_ENTRIES = 1000
# JSON readers take numbers outside this range for floats.
_MIN_INTEGER, _INTEGER_END = -(2**63), 2**64

_ADD = Prepared(thread_labels.insert())
_REMOVE = Prepared(
    thread_labels.delete().where(
        thread_labels.c.thread_id == bindparam("old_thread"),
        thread_labels.c.key == bindparam("old_key"),
    )
)
_SET_TENANT = Prepared(
    thread_labels.update()
    .where(thread_labels.c.thread_id == bindparam("old_thread"))
    .values(tenant=bindparam("new_tenant"))
)


def value_of(value: Any) -> str | None:
    """Return the text under which a scalar is indexed; None for what is not indexed."""
    if isinstance(value, float) and value.is_integer() and _MIN_INTEGER <= value < _INTEGER_END:
        value = int(value)
    if value is not None and not isinstance(value, str | int | float | bool):
        return None
    text = json_codec.dumps(value)
    return text if len(text) <= LENGTH else None


def entries(metadata: Mapping[str, Any]) -> set[Entry]:
    """Return the indexed entries of metadata in the form that reads back."""
    found = ((key, value_of(value)) for key, value in metadata.items())
    return {(key, value) for key, value in found if value is not None and len(key) <= LENGTH}


def split(needle: Mapping[str, Any]) -> tuple[set[Entry], dict[str, Any]]:
    """Split a containment into the entries that the index answers, and the rest."""
    indexed = entries(needle)
    known = {key for key, _ in indexed}
    return indexed, {key: value for key, value in needle.items() if key not in known}


def period_of(updated_at: datetime) -> int:
    """Return the period of a thread's last update, as its entries hold it."""
    return int(updated_at.timestamp() // PERIOD_SECONDS)


def update(
    conn: Connection,
    thread_id: Any,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    updated_at: datetime,
) -> None:
    """Update the index of a thread from its old metadata to its new.

    Args:
        conn: The connection of a write that has updated the thread.
        thread_id: The thread.
        old: Its metadata before.
        new: Its metadata now.
        updated_at: The thread's new date.

    Raises:
        HTTPException: (422) there are too many entries. Each is a row, and other writes wait.
    """
    if old == new:
        return
    if len(new) > MAX_ENTRIES:
        raise HTTPException(422, f"A thread's metadata has at most {MAX_ENTRIES} entries")
    # Storage replaces some characters, which may turn two keys into one.
    before, after = entries(old), entries(json_codec.plain(new))
    period, tenant = period_of(updated_at), tenants.of(new)
    conn.executemany(
        _REMOVE, [{"old_key": key, "old_thread": thread_id} for key, _ in before - after]
    )
    conn.executemany(
        _ADD,
        [
            {"key": k, "value": v, "thread_id": thread_id, "period": period, "tenant": tenant}
            for k, v in after - before
        ],
    )
    if after & before and tenants.of(old) != tenant:
        set_tenant(conn, thread_id, tenant)


def set_tenant(conn: Connection, thread_id: Any, tenant: str | None) -> None:
    """Set the tenant of a thread's entries."""
    conn.send(_SET_TENANT, {"old_thread": thread_id, "new_tenant": tenant})
