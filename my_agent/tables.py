"""The tables of the graphs: documents, profiles, candidates, jobs, sessions.

Each graph declares its own in `tables.py`. Every row has a tenant, and every statement filters by it.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, Row, Select, Table, Text
from sqlalchemy.dialects import postgresql, sqlite

from threadhold.tables import Tables

tables = Tables(
    Path(__file__).parent / "migrations",
    versions="product_version",
    modules=[
        f"my_agent.{graph}.tables"
        for graph in (
            *("chat", "companies", "diagnosis.record", "icp_finder.records"),
            *("research", "tutor"),
        )
    ],
)
metadata = tables.metadata
run = tables.run
"""Run work in one transaction of a tenant in a thread, and return its result."""


async def rows(ask: Select[Any], tenant_id: str) -> Sequence[Row[Any]]:
    """Return the rows that a tenant's query gives."""
    return await run(lambda connection: connection.execute(ask).all(), tenant_id)


def texts(*names: str, null: bool = False) -> list[Column[str]]:
    """Return columns of texts."""
    return [Column(name, Text, nullable=null) for name in names]


def keys(*names: str) -> list[Column[str]]:
    """Return columns of texts that are the primary key."""
    return [Column(name, Text, primary_key=True) for name in names]


def insert(connection: Connection, table: Table) -> Any:
    """Return an insert that can say what happens on a conflict, for the database in use."""
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    return dialect.insert(table)


def upsert(
    connection: Connection,
    table: Table,
    rows: Sequence[dict[str, Any]],
    *,
    keep: Collection[str] = (),
) -> None:
    """Insert rows, or update those with the same primary key.

    Args:
        connection: in a transaction that writes.
        table: the table.
        rows: rows with all columns.
        keep: columns that an update leaves unchanged.
    """
    if not rows:
        return
    new = insert(connection, table)
    changed = [each.name for each in table.c if not each.primary_key and each.name not in keep]
    statement = new.on_conflict_do_update(
        index_elements=list(table.primary_key),
        set_={name: new.excluded[name] for name in changed},
    )
    connection.execute(statement, rows)
