"""Fills a Postgres database of ours with many threads, inside the server.

As `fill` does with a file: one thread with a finished run is made through the server and its rows
are copied with fresh ids, dates and owners. Only what a search can read is copied, the threads
themselves with their labels and runs: a million checkpoints would take an hour and answer nothing.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg import sql

from bench.fill import DATES, MARKERS, Copy, Owner, copies

TABLES = ("threads", "thread_labels", "runs")
# Whose names stand for whose in the template's rows.
NAMES = ("thread", "run", "tenant", "person", "agent")


def multiply(owner_url: str, count: int) -> Counter[Owner]:
    """Copy the seeded thread `count` times; how many threads each owner has then."""
    owners = Counter[Owner]()
    with psycopg.connect(owner_url, autocommit=True) as raw:
        # Nobody else is connected, and a half-filled database is thrown away.
        raw.execute("SET session_replication_role = replica")
        raw.execute("SET synchronous_commit = off")
        raw.execute("SET maintenance_work_mem = '512MB'")
        raw.execute("SET work_mem = '256MB'")
        (thread, run) = _one(raw, "SELECT thread_id, run_id FROM runs")
        _name_copies(raw, copies(count, str(thread), str(run), owners))
        for table in TABLES:
            _multiply_table(
                raw, table, thread, dict(zip(NAMES, (thread, run, *MARKERS), strict=True))
            )
        raw.execute("DELETE FROM thread_labels WHERE thread_id = %s", (thread,))
        raw.execute("DELETE FROM runs WHERE thread_id = %s", (thread,))
        raw.execute("DELETE FROM threads WHERE thread_id = %s", (thread,))
        raw.execute("DROP TABLE copies")
        raw.execute("VACUUM (ANALYZE)")
        raw.execute("CHECKPOINT")
    return owners


def _one(raw: psycopg.Connection[Any], statement: str) -> Any:
    (row,) = raw.execute(statement.encode()).fetchall()
    return row


def _name_copies(raw: psycopg.Connection[Any], found: Iterator[Copy]) -> None:
    raw.execute(
        "CREATE UNLOGGED TABLE copies"
        " (number int, thread uuid, run uuid, tenant text, person text, agent text)"
    )
    with raw.cursor().copy("COPY copies FROM STDIN") as rows:
        for copy in found:
            rows.write_row((copy.number, *copy.names.values()))


def _multiply_table(
    raw: psycopg.Connection[Any], table: str, thread: Any, markers: dict[str, Any]
) -> None:
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
    cells = sql.SQL(", ").join(_cell(name, kind, markers) for name, kind in columns)
    raw.execute(
        sql.SQL(
            "INSERT INTO {table} ({names}) SELECT {cells} FROM {table} AS old, copies"
            # An index is filled far faster in its order.
            " WHERE old.thread_id = %s ORDER BY {order}"
        ).format(
            table=sql.Identifier(table),
            names=names,
            cells=cells,
            order=sql.SQL("1, 2, 3" if table == "thread_labels" else "copies.thread"),
        ),
        (thread,),
    )
    for _, definition in indexes:
        raw.execute(definition.encode())


def _cell(column: str, kind: str, markers: dict[str, Any]) -> sql.Composable:
    """How to make a copy's cell from the template's."""
    old = sql.SQL("old.{}").format(sql.Identifier(column))
    if column in DATES:
        return sql.SQL("{} - copies.number * interval '1 second'").format(old)
    if column in ("thread_id", "run_id"):
        return sql.SQL("copies.{}").format(sql.Identifier(column.removesuffix("_id")))
    if kind not in ("text", "jsonb"):
        return old
    text = sql.SQL("{}::text").format(old)
    for name, marker in markers.items():
        text = sql.SQL("replace({}, {}, copies.{}::text)").format(
            text, sql.Literal(str(marker)), sql.Identifier(name)
        )
    return sql.SQL("{}::{}").format(text, sql.SQL(kind))
