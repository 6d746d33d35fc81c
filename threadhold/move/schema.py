"""Schemas: tables that are migrated together, by the library or by its host."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Table

from langgraph_runtime_sql import migrations
from langgraph_runtime_sql.database import schema


@dataclass(frozen=True)
class Schema:
    """Tables with one table of versions.

    Attributes:
        versions: Name of the table that says which scripts of Alembic were run.
        heads: What it says when all were.
        known: Every script there is.
        tables: In an order in which they can be filled.
        create: Brings the tables up to date in the database of a URL.
        required: Whether a database without them is none of ours.
    """

    versions: str
    heads: frozenset[str]
    known: Callable[[], frozenset[str]]
    tables: Sequence[Table]
    create: Callable[[str], None]
    required: bool = False


def runtime_schema() -> Schema:
    """The tables of the runtime, which every database of ours has."""
    return Schema(
        versions="alembic_version",
        heads=frozenset({migrations.HEAD}),
        known=migrations.scripts,
        tables=schema.metadata.sorted_tables,
        create=migrations.migrate,
        required=True,
    )
