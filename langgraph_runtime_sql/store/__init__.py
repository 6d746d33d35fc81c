"""The store: the long-term memory of graphs.

The names below are those that `langgraph_api` looks up in `langgraph_runtime.store`.
"""

from langgraph_runtime_sql.store.store import Store

__all__ = ["Store"]
