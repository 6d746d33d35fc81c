"""The database: connections, transactions, statements and the schema.

`langgraph_api` looks up these names in `langgraph_runtime.database`.
"""

from langgraph_runtime_sql.database.interface import (
    connect,
    dependency_checks,
    healthcheck,
    pool_stats,
    start_pool,
    stop_pool,
)

__all__ = ["connect", "dependency_checks", "healthcheck", "pool_stats", "start_pool", "stop_pool"]
