"""Endpoints: the functions behind the API's routes that `threadhold.operations` calls by their names."""

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

MODULES = {
    "langgraph_api.api.assistants": ("get_assistant",),
    "langgraph_api.api.runs": (
        "cancel_run",
        "create_run",
        "get_run",
        "join_run",
        "join_run_stream",
        "list_runs",
        "stream_run",
        "wait_run",
    ),
    "langgraph_api.api.threads": (
        "create_thread",
        "delete_thread",
        "get_thread",
        "get_thread_state",
        "search_threads",
        "update_thread_state",
    ),
}
"""The functions of each module."""

_MODULE_OF = {name: module for module, names in MODULES.items() for name in names}


def find(name: str) -> Callable[[Any], Awaitable[Any]]:
    """Return the function of a name, which is replaced if a row of the table replaces it.

    Raises:
        KeyError: the table has no such function.
    """
    found: Callable[[Any], Awaitable[Any]] = getattr(import_module(_MODULE_OF[name]), name)
    return found
