"""What an operation costs SQLite, by its own count: a clock would measure this machine."""

from collections.abc import Callable
from typing import TypeVar

from langgraph_runtime_sql.database.connection import Connection

T = TypeVar("T")


def ticks(conn: Connection, operation: Callable[[], T], each: int) -> tuple[T, int]:
    """The result of `operation` on `conn`, and how many times `each` instructions it took."""
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
