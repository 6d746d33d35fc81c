"""Threadhold: the LangGraph Platform, held inside your own app."""

from langgraph_runtime_sql import __version__
from threadhold.platform import LangGraphPlatform

__all__ = ["LangGraphPlatform", "__version__"]
