"""The LangGraph runtime edition `sql`: the stock API on SQLite or Postgres."""

import sys
from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("threadhold")
except PackageNotFoundError:
    # Sources on the path, which nobody has installed.
    __version__ = "0+unknown"

if sys.platform == "win32":
    # Locks on files keep two servers from using one database, and Windows has others.
    raise ImportError("Threadhold runs on Linux and macOS. On Windows, use WSL 2 or a container.")

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
