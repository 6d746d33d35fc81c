"""Store events: let the store's routes pass the gate.

The routes of `langgraph_api` ask the authorization handlers themselves, unlike all others, which leave
it to the runtime's operations.
"""

from typing import Any

from langgraph_runtime_sql.gate import writes


def install() -> None:
    """Replace the call of the handlers in the store's routes."""
    from langgraph_api.api import store

    routes: Any = store
    routes.handle_event = writes.admit_item
