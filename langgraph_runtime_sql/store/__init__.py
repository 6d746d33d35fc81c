"""The store: the long-term memory of graphs.

`langgraph_api` looks up these names in `langgraph_runtime.store`.
"""

from langgraph_runtime_sql.store.store import Store

__all__ = ["Store"]
