"""Metadata index: the scalar entries of a thread's metadata, in rows that an index finds.

Whatever keys a host invents, a search by them is a look-up.
"""

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

# What is longer is found by looking at the document.
LENGTH = 200
MOST_ENTRIES = 1000
# What JSON has as integers; past these, numbers are read as floats.
_LEAST, _PAST = -(2**63), 2**64

_ADD = Prepared(
    thread_labels.insert().values(
        key=bindparam("key"),
        value=bindparam("value"),
        thread_id=bindparam("thread_id"),
        period=bindparam("period"),
        tenant=bindparam("tenant"),
    )
)
_REMOVE = Prepared(
    thread_labels.delete().where(
        thread_labels.c.thread_id == bindparam("old_thread"),
        thread_labels.c.key == bindparam("old_key"),
    )
)
_HAND_OVER = Prepared(
    thread_labels.update()
    .where(thread_labels.c.thread_id == bindparam("old_thread"))
    .values(tenant=bindparam("new_tenant"))
)


def value_of(value: Any) -> str | None:
    """The text under which a scalar is indexed; None for what is not indexed."""
    if isinstance(value, float) and value.is_integer() and _LEAST <= value < _PAST:
        value = int(value)
    if value is not None and not isinstance(value, str | int | float | bool):
        return None
    text = json_codec.dumps(value)
    return text if len(text) <= LENGTH else None


def entries(metadata: Mapping[str, Any]) -> set[Entry]:
    """The indexed entries of a thread with this metadata, which is as it reads back."""
    found = ((key, value_of(value)) for key, value in metadata.items())
    return {(key, value) for key, value in found if value is not None and len(key) <= LENGTH}


def split(needle: Mapping[str, Any]) -> tuple[set[Entry], dict[str, Any]]:
    """The part of a containment that the index answers, and the rest of it."""
    indexed = entries(needle)
    known = {key for key, _ in indexed}
    return indexed, {key: value for key, value in needle.items() if key not in known}


def period_of(updated_at: datetime) -> int:
    """The period in which a thread was last updated, as its entries hold it."""
    return int(updated_at.timestamp() // PERIOD_SECONDS)


def update(
    conn: Connection,
    thread_id: Any,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    updated_at: datetime,
) -> None:
    """Bring the index of a thread from its old metadata to its new.

    Args:
        conn: Of a write that has updated the thread.
        thread_id: The thread.
        old: Its metadata before.
        new: Its metadata now.
        updated_at: The date that the thread has now.

    Raises:
        HTTPException: (422) there are too many entries: each is a row, and others wait.
    """
    if old == new:
        return
    if len(new) > MOST_ENTRIES:
        raise HTTPException(422, f"A thread's metadata has at most {MOST_ENTRIES} entries")
    # Some characters are stored as others, by which two keys may become one.
    before, after = entries(old), entries(json_codec.plain(new))
    period, tenant = period_of(updated_at), tenants.of(new)
    conn.executemany(
        _REMOVE,
        [{"old_key": key, "old_thread": thread_id} for key, _ in before - after],
    )
    conn.executemany(
        _ADD,
        [
            {
                "key": key,
                "value": value,
                "thread_id": thread_id,
                "period": period,
                "tenant": tenant,
            }
            for key, value in after - before
        ],
    )
    if after & before and tenants.of(old) != tenant:
        hand_over(conn, thread_id, tenant)


def hand_over(conn: Connection, thread_id: Any, tenant: str | None) -> None:
    """Make a thread's entries a tenant's, as the thread is."""
    conn.send(_HAND_OVER, {"old_thread": thread_id, "new_tenant": tenant})
