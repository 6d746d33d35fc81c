"""Schemas: groups of tables with one Alembic version table, of the library or of a host."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Table

from langgraph_runtime_sql import migrations
from langgraph_runtime_sql.database import schema
from threadhold.tables import Tables


@dataclass(frozen=True)
class Schema:
    """Tables with one Alembic version table.

    Attributes:
        versions: Name of the version table.
        heads: Its content after all scripts.
        known: Returns the ids of all scripts.
        tables: The tables, parents before children.
        create: Migrates the tables in the database of a URL.
        required: Whether a database without them is not Threadhold's.
    """

    versions: str
    heads: frozenset[str]
    known: Callable[[], frozenset[str]]
    tables: Sequence[Table]
    create: Callable[[str], None]
    required: bool = False


def schema_of(tables: Tables) -> Schema:
    """Return the schema of an application's tables."""
    # Registers the tables of all modules.
    list(tables.declarations())
    return Schema(
        versions=tables.versions,
        heads=tables.heads,
        known=tables.known,
        tables=tables.metadata.sorted_tables,
        create=lambda url: tables.open(url).close(),
    )


def runtime_schema() -> Schema:
    """Return the schema of the runtime, which every Threadhold database has."""
    return Schema(
        versions="alembic_version",
        heads=frozenset({migrations.HEAD}),
        known=migrations.scripts,
        # Triggers of the target count the running runs.
        tables=[each for each in schema.metadata.sorted_tables if each is not schema.tenant_runs],
        create=migrations.migrate,
        required=True,
    )
