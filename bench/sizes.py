"""Sizes of databases, as they are on the disk."""

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg

# All that savers write: our tables, and langgraph's for a comparison.
_OF_SAVERS = (
    *("thread_checkpoints", "thread_writes", "run_writes"),
    *("checkpoints", "writes", "checkpoint_writes", "checkpoint_blobs"),
)


def of_file(path: Path) -> tuple[int, int]:
    """Return the bytes of the savers' tables in a SQLite file, with indexes, and of all tables."""
    with closing(sqlite3.connect(path, timeout=30)) as raw:
        found = raw.execute(
            "SELECT tbl_name, sum(pgsize) FROM dbstat JOIN sqlite_schema USING (name) GROUP BY 1"
        ).fetchall()
    return _sums(dict(found))


def of_postgres(url: str) -> tuple[int, int]:
    """Return the bytes of the savers' tables in a Postgres database, with indexes, and of all."""
    with psycopg.connect(url) as raw:
        found = raw.execute(
            "SELECT (SELECT relname FROM pg_class AS whole"
            " WHERE whole.oid = coalesce(pg_partition_root(part.oid), part.oid)),"
            " sum(pg_total_relation_size(oid))::bigint FROM pg_class AS part"
            " WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace GROUP BY 1"
        ).fetchall()
    return _sums(dict(found))


def _sums(sizes: dict[str, int]) -> tuple[int, int]:
    return sum(sizes.get(table, 0) for table in _OF_SAVERS), sum(sizes.values())
