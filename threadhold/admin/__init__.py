"""Administration: back up, examine and repair a database."""

from langgraph_runtime_sql.database.shared_lock import shared_lock

__all__ = ["shared_lock"]
