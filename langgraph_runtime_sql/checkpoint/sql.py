"""Our SQL on the tables of the library's savers, whose names differ between the databases."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from langgraph_runtime_sql.database.connection import Connection

# Spelled as in the library's metadata filter, so that filters use the index too.
RUN_ID = "json_extract(CAST(metadata AS TEXT), '$.run_id')"

# The names of the same things in its two schemas.
NAMES: Mapping[str, Mapping[str, str]] = {
    "sqlite": {
        "run_id": RUN_ID,
        "metadata_without_thread": (
            "CAST(json_remove(CAST(metadata AS TEXT), '$.thread_id') AS BLOB)"
        ),
        "is_delta_channel": (
            "EXISTS (SELECT 1 FROM json_each("
            "CAST(metadata AS TEXT), '$.counters_since_delta_snapshot') WHERE key = channel)"
        ),
        "writes": "writes",
        "value": "value",
    },
    "postgresql": {
        "run_id": "metadata ->> 'run_id'",
        "metadata_without_thread": "metadata - 'thread_id'",
        "is_delta_channel": ("metadata -> 'counters_since_delta_snapshot' -> channel IS NOT NULL"),
        "writes": "checkpoint_writes",
        "value": "blob",
    },
}
_NAMED = re.compile(r":(\w+)")


def run(conn: Connection, statement: str, params: Sequence[Any] | Mapping[str, Any] = ()) -> Any:
    """Execute a statement on the library's tables; return the driver's cursor.

    Args:
        conn: The connection.
        statement: With `?` or `:name` for parameters, and the keys of `NAMES` in braces.
        params: The parameters.
    """
    return conn.raw.execute(_text(statement, conn.dialect_name), params)


def run_many(
    conn: Connection, statement: str, params: Sequence[Sequence[Any] | Mapping[str, Any]]
) -> None:
    """Execute a statement for each of `params`, without its outcome."""
    conn.send_text(_text(statement, conn.dialect_name), params)


@cache
def _text(statement: str, dialect_name: str) -> str:
    text = statement.format_map(NAMES[dialect_name])
    if dialect_name == "sqlite":
        return text
    return _NAMED.sub(r"%(\1)s", text.replace("?", "%s"))
