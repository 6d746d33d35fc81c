"""Webhooks: list the outbox, and send dead letters again (`threadhold webhooks`)."""

from collections.abc import Collection
from uuid import UUID

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.webhooks import outbox
from threadhold.admin import doctor


def listed(url: str, status: outbox.Status, tenant: str | None, limit: int) -> list[Row]:
    """Return webhooks of the database of `url`, without their messages. Servers may run.

    Args:
        url: The database.
        status: `pending` or `dead`.
        tenant: Only those of this tenant; None means all.
        limit: The maximum number.

    Raises:
        CannotExamine: there is no database, or its schema has another version.
    """
    found: list[Row] = []

    def read(conn: Connection) -> None:
        found.extend(outbox.listed(conn, status, tenant, limit))

    doctor.run(url, read)
    return found


def replay(url: str, keys: Collection[UUID] | None, tenant: str | None) -> int:
    """Make dead letters pending again, and return how many. Servers may run, and deliver them.

    Args:
        url: The database.
        keys: Their ids; None means all.
        tenant: Only those of this tenant; None means all.

    Raises:
        CannotExamine: there is no database, or its schema has another version.
    """
    counts: list[int] = []

    def write(conn: Connection) -> None:
        counts.append(outbox.replay(conn, keys, tenant))

    doctor.run(url, write, writes=True)
    return counts[-1]
