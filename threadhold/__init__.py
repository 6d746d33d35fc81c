"""Threadhold: the LangGraph Platform, held inside your own app."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langgraph_runtime_sql import __version__
    from threadhold.platform import LangGraphPlatform

__all__ = ["LangGraphPlatform", "__version__"]

_PLACES = {"LangGraphPlatform": "threadhold.platform", "__version__": "langgraph_runtime_sql"}


def __getattr__(name: str) -> Any:
    """Import a name at its first use: graphs import modules of this package without the platform."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # First, because it says in one sentence that it does not run on Windows.
    import_module("langgraph_runtime_sql")
    return getattr(import_module(_PLACES[name]), name)
