"""Measure the cost of operations in SQLite instructions, which do not depend on the machine."""

from collections.abc import Callable
from typing import TypeVar

from langgraph_runtime_sql.database.connection import Connection

T = TypeVar("T")


def ticks(conn: Connection, operation: Callable[[], T], each: int) -> tuple[T, int]:
    """Run an operation and count its SQLite instructions.

    Args:
        each: The unit of the count, in instructions.

    Returns:
        The operation's result, and its cost in units.
    """
    counted = 0

    def count() -> int:
        nonlocal counted
        counted += 1
        return 0

    conn.raw.set_progress_handler(count, each)
    try:
        return operation(), counted
    finally:
        conn.raw.set_progress_handler(None, 0)
