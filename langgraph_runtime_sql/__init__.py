"""The LangGraph runtime edition `sql`: the stock API on SQLite or Postgres."""

import sys

if sys.platform == "win32":
    raise ImportError(
        "Threadhold does not run on Windows: its locks need Linux or macOS. Use WSL 2 or a container."
    )


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
