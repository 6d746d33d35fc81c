"""The LangGraph runtime edition `sql`: the stock API on SQLite or Postgres."""

__version__ = "0.1.0"

from langgraph_runtime_sql import (
    checkpoint,
    database,
    lifespan,
    metrics,
    ops,
    retry,
    store,
)

__all__ = [
    "__version__",
    "checkpoint",
    "database",
    "lifespan",
    "metrics",
    "ops",
    "retry",
    "store",
]
