"""Pages: how a migration changes every row of a large table while others use it.

Each page is a short transaction on few rows. An interrupted migration has done a part, and the next
one does the rest: the statement must skip rows that are done.
"""

from functools import partial
from typing import Any

from psycopg import sql

from langgraph_runtime_sql.database.postgres.engine import Raw
from langgraph_runtime_sql.database.postgres.lock_wait import transaction
from langgraph_runtime_sql.migrations.reporting import tell
from langgraph_runtime_sql.progress import Progress

# Keys for each page; each key may stand for some dozen rows.
SIZE = 500


def each(raw: Raw, table: str, key: str, statement: str) -> None:
    """Run a statement for every row of a table, a page at a time.

    Rows inserted meanwhile may be skipped; their writers must fill them.

    Args:
        raw: A connection outside any transaction.
        table: The table.
        key: An indexed column that orders the rows.
        statement: Takes the keys of a page, an array, as `%s`.

    Raises:
        DatabaseBusy: a session has used a row for ten minutes.
    """
    start: sql.Composable = sql.SQL("")
    done, total = 0, _estimate(raw, table)
    while keys := _next(raw, table, key, start):
        transaction(raw, partial(raw.execute, statement.encode(), (keys,)))
        start = sql.SQL("WHERE {} > {}").format(sql.Identifier(key), sql.Literal(keys[-1]))
        done += len(keys)
        # The estimate may be too low.
        tell(Progress(f"Filling {table}", done, total if done < total else 0))
    tell(Progress(f"Filling {table}", done, done))


def _estimate(raw: Raw, table: str) -> int:
    """Return about how many rows a table has; counting them would take long."""
    estimate = "SELECT reltuples::bigint FROM pg_class WHERE oid = %s::regclass"
    found = raw.execute(estimate, (table,)).fetchone()
    return max(0, found[0]) if found else 0


def _next(raw: Raw, table: str, key: str, start: sql.Composable) -> list[Any]:
    query = sql.SQL("SELECT {key} FROM {table} {start} ORDER BY {key} LIMIT {size}").format(
        key=sql.Identifier(key), table=sql.Identifier(table), start=start, size=sql.Literal(SIZE)
    )
    # Not prepared: each runs once.
    return [found for (found,) in raw.execute(query, prepare=False).fetchall()]
