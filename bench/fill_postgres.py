"""Fill a Postgres database of the server with many threads, inside Postgres.

As in `fill`, one thread with a finished run is created through the server, and its rows are copied
with new ids, dates and owners. Only tables that a search reads are copied: threads, labels and
runs. A million checkpoints would take an hour and affect no figure.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql

from bench.fill import DATES, MARKERS, Copy, Owner, copies
from langgraph_runtime_sql.database.schema import PERIOD_SECONDS

TABLES = ("threads", "thread_labels", "runs")
# Columns of `copies` that replace the template's ids and MARKERS, in the same order.
NAMES = ("thread", "run", "tenant", "person", "agent")


@dataclass(frozen=True)
class Template:
    """The thread to copy, its run, and its `updated_at` in seconds since 1970."""

    thread: UUID
    run: UUID
    updated_at: float


def multiply(owner_url: str, count: int) -> Counter[Owner]:
    """Copy the seeded thread `count` times, and return the number of threads of each owner."""
    owners = Counter[Owner]()
    with psycopg.connect(owner_url, autocommit=True) as raw:
        # No other client is connected, and an incomplete database is discarded.
        raw.execute("SET session_replication_role = replica")
        raw.execute("SET synchronous_commit = off")
        raw.execute("SET maintenance_work_mem = '512MB'")
        raw.execute("SET work_mem = '256MB'")
        template = _template(raw)
        _name_copies(raw, copies(count, str(template.thread), str(template.run), owners))
        for table in TABLES:
            _multiply_table(raw, table, template)
        for table in reversed(TABLES):
            statement = sql.SQL("DELETE FROM {} WHERE thread_id = %s")
            raw.execute(statement.format(sql.Identifier(table)), (template.thread,))
        raw.execute("DROP TABLE copies")
        raw.execute("VACUUM (ANALYZE)")
        raw.execute("CHECKPOINT")
    return owners


def _template(raw: psycopg.Connection[Any]) -> Template:
    (row,) = raw.execute(
        "SELECT thread_id, run_id, extract(epoch FROM threads.updated_at)::float8"
        " FROM runs JOIN threads USING (thread_id)"
    ).fetchall()
    return Template(*row)


def _name_copies(raw: psycopg.Connection[Any], found: Iterator[Copy]) -> None:
    raw.execute(
        "CREATE UNLOGGED TABLE copies"
        " (number int, thread uuid, run uuid, tenant text, person text, agent text)"
    )
    with raw.cursor().copy("COPY copies FROM STDIN") as rows:
        for copy in found:
            rows.write_row((copy.number, *copy.names.values()))


def _multiply_table(raw: psycopg.Connection[Any], table: str, template: Template) -> None:
    indexes = raw.execute(
        "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename = %s"
        " AND indexname NOT IN (SELECT conname FROM pg_constraint)",
        (table,),
    ).fetchall()
    for name, _ in indexes:
        raw.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
    columns = raw.execute(
        "SELECT column_name, data_type FROM information_schema.columns"
        " WHERE table_schema = 'public' AND table_name = %s AND column_name <> 'seq'",
        (table,),
    ).fetchall()
    names = sql.SQL(", ").join(sql.Identifier(name) for name, _ in columns)
    cells = sql.SQL(", ").join(_cell(name, kind, template) for name, kind in columns)
    raw.execute(
        sql.SQL(
            "INSERT INTO {table} ({names}) SELECT {cells} FROM {table} AS old, copies"
            # An index is filled far faster in its order.
            " WHERE old.thread_id = %s ORDER BY copies.thread"
        ).format(
            table=sql.Identifier(table),
            names=names,
            cells=cells,
        ),
        (template.thread,),
    )
    for _, definition in indexes:
        raw.execute(definition.encode())


def _cell(column: str, kind: str, template: Template) -> sql.Composable:
    """Return the SQL expression of a copy's cell."""
    old = sql.SQL("old.{}").format(sql.Identifier(column))
    if column == "period":
        period = sql.SQL("floor(({} - copies.number) / {})")
        return period.format(sql.Literal(template.updated_at), sql.Literal(float(PERIOD_SECONDS)))
    if column in DATES:
        return sql.SQL("{} - copies.number * interval '1 second'").format(old)
    if column in ("thread_id", "run_id"):
        return sql.SQL("copies.{}").format(sql.Identifier(column.removesuffix("_id")))
    if kind not in ("text", "jsonb"):
        return old
    text = sql.SQL("{}::text").format(old)
    for name, marker in zip(NAMES, (template.thread, template.run, *MARKERS), strict=True):
        text = sql.SQL("replace({}, {}, copies.{}::text)").format(
            text, sql.Literal(str(marker)), sql.Identifier(name)
        )
    return sql.SQL("{}::{}").format(text, sql.SQL(kind))
