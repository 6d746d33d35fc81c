"""Administration: what an operator does with a database."""

from langgraph_runtime_sql.database.shared_lock import shared_lock

__all__ = ["shared_lock"]
