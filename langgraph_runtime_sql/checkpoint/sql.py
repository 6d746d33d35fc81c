"""SQL of ours on the tables of the library's savers, which each database names in its own way."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from langgraph_runtime_sql.database.connection import Connection

# As the library's own metadata filter writes it, so that filters use the index too.
RUN_ID = "json_extract(CAST(metadata AS TEXT), '$.run_id')"

# What its two schemas call the same things.
NAMES: Mapping[str, Mapping[str, str]] = {
    "sqlite": {"run_id": RUN_ID, "writes": "writes", "value": "value"},
    "postgresql": {
        "run_id": "metadata ->> 'run_id'",
        "writes": "checkpoint_writes",
        "value": "blob",
    },
}
_NAMED = re.compile(r":(\w+)")


def run(conn: Connection, statement: str, params: Sequence[Any] | Mapping[str, Any] = ()) -> Any:
    """Execute a statement of ours on the library's tables; the driver's cursor.

    Args:
        statement: With `?` or `:name` for parameters, and the keys of `NAMES` in braces.
    """
    return conn.raw.execute(_text(statement, conn.dialect_name), params)


def run_many(
    conn: Connection, statement: str, params: Sequence[Sequence[Any] | Mapping[str, Any]]
) -> None:
    """The same for each of `params`, which nobody asks the outcome of."""
    conn.send_text(_text(statement, conn.dialect_name), params)


@cache
def _text(statement: str, dialect_name: str) -> str:
    text = statement.format_map(NAMES[dialect_name])
    if dialect_name == "sqlite":
        return text
    return _NAMED.sub(r"%(\1)s", text.replace("?", "%s"))
