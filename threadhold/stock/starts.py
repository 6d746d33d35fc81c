"""Starts: what `langgraph_api` keeps of an earlier start in the same process."""

from typing import Any


def forget_store() -> None:
    """Forget the store of the first start, which the stock middleware of `http.app` caches."""
    from langgraph_api.middleware import ensure_store

    middleware: Any = ensure_store
    middleware._CONFIG = None
