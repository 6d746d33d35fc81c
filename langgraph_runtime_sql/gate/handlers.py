"""Handlers: ask the project's authorization handlers whether a caller may do something."""

from typing import Any

from langgraph_runtime_sql.gate.operations import Operation

Filter = dict[str, Any] | None


async def ask(ctx: Any, operation: Operation, value: dict[str, Any]) -> Filter:
    """Call the project's handler for the event of an operation.

    Args:
        ctx: The caller's `AuthContext`; None for that of the request.
        operation: What the caller asks for. Without an event, nobody is asked.
        value: The request. The handler may change `value["metadata"]` in place.

    Returns:
        The handler's filter, or None.

    Raises:
        HTTPException: the handler refused.
    """
    from langgraph_api.auth.custom import handle_event
    from langgraph_api.utils import get_auth_ctx
    from langgraph_sdk import Auth

    base = ctx or get_auth_ctx()
    if base is None or operation.event is None:
        return None
    resource, action = operation.event
    context = Auth.types.AuthContext(
        user=base.user,
        permissions=base.permissions,
        resource=resource,  # type: ignore[arg-type]  # the SDK lists them all
        action=action,  # type: ignore[arg-type]
    )
    permitted = await handle_event(context, value)
    return dict(permitted) if permitted else None
