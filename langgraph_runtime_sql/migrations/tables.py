"""Tables: the statements that create the schema in an empty database."""

from collections.abc import Iterator

from sqlalchemy import Table
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateIndex, CreateTable

from langgraph_runtime_sql.database.schema import PARTITIONS, metadata, partitions


def creating(dialect: Dialect) -> Iterator[str]:
    """Yield the statements for all tables and indexes of `database.schema`."""
    for table in metadata.sorted_tables:
        created = str(CreateTable(table).compile(dialect=dialect))
        if dialect.name == "postgresql" and "partition_by" in table.info:
            created = f"{created.rstrip()} PARTITION BY {table.info['partition_by']}"
        yield created
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            if dialect.name == "postgresql":
                # The schema states the conditions of partial indexes for SQLite only.
                where = index.dialect_options["sqlite"]["where"]
                index.dialect_options["postgresql"]["where"] = where
            yield str(CreateIndex(index).compile(dialect=dialect))
        if dialect.name == "postgresql":
            yield from _partitions(table)


def _partitions(table: Table) -> Iterator[str]:
    for number, name in enumerate(partitions(table)):
        yield (
            f"CREATE TABLE {name} PARTITION OF {table.name}"
            f" FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {number})"
        )
