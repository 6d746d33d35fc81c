"""Pages: how a migration changes every row of a large table while others use it.

Each page is a transaction of its own, which holds few rows and not for long. So a migration that
is cut off has done a part, and the next one does the rest: a statement has to leave alone what
has been done.
"""

from functools import partial
from typing import Any

from psycopg import sql

from langgraph_runtime_sql.database.postgres.engine import Raw
from langgraph_runtime_sql.database.postgres.lock_wait import SHORT_LOCK_TIMEOUT, retry_while_locked

# Of the table whose keys are walked through: each may stand for some dozen rows.
SIZE = 500


def each(raw: Raw, table: str, key: str, statement: str) -> None:
    """Run a statement for every row of a table, a page at a time.

    Rows that come meanwhile may be left out: whoever writes them has to see to them.

    Args:
        raw: A connection outside any transaction.
        table: Whose rows.
        key: The column by which they are walked through, in its index.
        statement: Takes the keys of a page, as `%s`, which is an array.

    Raises:
        DatabaseBusy: somebody has been using one of them for ten minutes.
    """
    start: sql.Composable = sql.SQL("")
    while keys := _next(raw, table, key, start):
        retry_while_locked(raw, partial(_run, raw, statement, keys))
        start = sql.SQL("WHERE {} > {}").format(sql.Identifier(key), sql.Literal(keys[-1]))


def _next(raw: Raw, table: str, key: str, start: sql.Composable) -> list[Any]:
    query = sql.SQL("SELECT {key} FROM {table} {start} ORDER BY {key} LIMIT {size}").format(
        key=sql.Identifier(key), table=sql.Identifier(table), start=start, size=sql.Literal(SIZE)
    )
    # Not prepared: each is asked once.
    return [found for (found,) in raw.execute(query, prepare=False).fetchall()]


def _run(raw: Raw, statement: str, keys: list[Any]) -> None:
    with raw.transaction():
        raw.execute(SHORT_LOCK_TIMEOUT)
        raw.execute(statement.encode(), (keys,))
