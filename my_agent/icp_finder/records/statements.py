"""Statements that differ between SQLite and Postgres, and a helper to run transactions."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

from my_agent.tables import tables

run = tables.run
"""Run work in one transaction of a tenant in a thread, and return its result."""


def upsert(
    connection: Connection,
    table: Table,
    rows: Sequence[dict[str, Any]],
    *,
    keep: Collection[str] = (),
) -> None:
    """Insert rows, or update the existing rows with the same primary key.

    Args:
        connection: in a transaction that writes.
        table: the table.
        rows: rows with all columns.
        keep: columns that an update leaves unchanged.
    """
    if not rows:
        return
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    insert = dialect.insert(table)
    changed = [column for column in table.c if not column.primary_key and column.name not in keep]
    statement = insert.on_conflict_do_update(
        index_elements=list(table.primary_key),
        set_={column.name: insert.excluded[column.name] for column in changed},
    )
    connection.execute(statement, rows)
