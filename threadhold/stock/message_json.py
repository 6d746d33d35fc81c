"""Message JSON: write messages without a copy of each.

`langgraph_api` writes a message as the result of `model_dump`, which copies it and takes most of the
time in which a conversation is written. The fields of most messages are that result already.
"""

from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

_COUNTS = {"input_tokens", "output_tokens", "total_tokens"}


def default(stock: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that writes plain messages as they are, and the rest as `stock` does."""

    def default(obj: Any) -> Any:
        fields = written(obj)
        return stock(obj) if fields is None else fields

    return default


def written(obj: Any) -> dict[str, Any] | None:
    """Return what `model_dump` returns for a message, or None if that takes more than its fields."""
    kind = type(obj)
    if kind is AIMessage:
        if obj.tool_calls or obj.invalid_tool_calls:
            # Typed mappings are written without what their types do not know.
            return None
        usage = obj.usage_metadata
        if usage is not None and not (type(usage) is dict and usage.keys() <= _COUNTS):
            return None
    elif kind is not HumanMessage and kind is not SystemMessage:
        return None
    fields: dict[str, Any] = obj.__dict__
    return None if obj.__pydantic_extra__ else fields
