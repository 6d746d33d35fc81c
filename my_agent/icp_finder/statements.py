"""Statements that SQLite and Postgres write differently, and how they are run."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

from my_agent.database import database

T = TypeVar("T")


async def run(work: Callable[[Connection], T], tenant_id: str, *, write: bool = False) -> T:
    """What `work` returns, of one transaction of the product's database, from a thread.

    Args:
        work: called with the connection; must not keep it.
        tenant_id: whose rows it is about.
        write: whether it writes.
    """
    # Opening the database blocks, too, the first time.
    return await (await asyncio.to_thread(database)).run(work, tenant_id, write=write)


def upsert(
    connection: Connection,
    table: Table,
    rows: Sequence[dict[str, Any]],
    *,
    keep: Collection[str] = (),
) -> None:
    """Insert rows, or bring those up to date that are there by their primary key.

    Args:
        connection: in a transaction that writes.
        table: where.
        rows: with every column.
        keep: columns that stay as they are in a row that is there.
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
