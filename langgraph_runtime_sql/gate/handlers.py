"""Handlers: ask the project's authorization handlers, and say who asks."""

from typing import Any

from langgraph_runtime_sql import request_context
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.hooks import Caller
from langgraph_runtime_sql.search import filters

Filter = dict[str, Any] | None


async def authorize(ctx: Any, resource: str, action: str, value: dict[str, Any]) -> Filter:
    """Call the host's handler for `resource.action`.

    Args:
        value: The request. The handler may change `value["metadata"]` in place.

    Returns:
        A filter on the metadata of the rows that the caller may use, or None.

    Raises:
        HTTPException: the handler refused, or its filter is invalid.
    """
    from langgraph_api.auth.custom import handle_event
    from langgraph_api.utils import get_auth_ctx
    from langgraph_sdk import Auth

    base = ctx or get_auth_ctx()
    if base is None:
        return None
    context = Auth.types.AuthContext(
        user=base.user,
        permissions=base.permissions,
        resource=resource,  # type: ignore[arg-type]  # the SDK lists them all
        action=action,  # type: ignore[arg-type]
    )
    permitted = await handle_event(context, value)
    filters.validate(permitted)
    return dict(permitted) if permitted else None


def caller(ctx: Any = None) -> Caller:
    """Return the caller of the request, for hooks."""
    from langgraph_api.utils import get_auth_ctx, get_user_id

    base = ctx or get_auth_ctx()
    if base is None:
        return Caller(note=request_context.note())
    return Caller(identity=get_user_id(base.user), user=base.user, note=request_context.note())


def permissions(ctx: Any = None) -> frozenset[str]:
    """Return the permissions of the caller of the request."""
    from langgraph_api.utils import get_auth_ctx

    base = ctx or get_auth_ctx()
    return frozenset() if base is None else frozenset(map(str, base.permissions or ()))


def user_fields(user: Any) -> Row:
    """Return an authenticated user as a dict, because a user object is not stored as JSON."""
    for name in ("model_dump", "dict"):
        export = getattr(user, name, None)
        if callable(export):
            return dict(export())
    return {
        "identity": user.identity,
        "is_authenticated": user.is_authenticated,
        "display_name": user.display_name,
    }
