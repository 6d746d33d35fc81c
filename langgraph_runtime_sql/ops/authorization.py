"""Access: what the host's authorization handlers say of an operation."""

import uuid
from collections.abc import AsyncIterator, Iterable
from typing import Any

from starlette.exceptions import HTTPException

from langgraph_runtime_sql import request_context
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.hooks import Caller
from langgraph_runtime_sql.search import filters

Filter = dict[str, Any] | None
Rows = AsyncIterator[Row]


async def authorize(ctx: Any, resource: str, action: str, value: dict[str, Any]) -> Filter:
    """Ask the handler for `resource.action`; it may change `value["metadata"]` in place.

    Returns:
        A filter on the metadata of the rows that the caller may touch, or None.

    Raises:
        HTTPException: the handler refused, or its filter is not valid.
    """
    from langgraph_api.auth.custom import handle_event
    from langgraph_api.utils import get_auth_ctx
    from langgraph_sdk import Auth

    base = ctx or get_auth_ctx()
    if base is None:
        return None
    asked = Auth.types.AuthContext(
        user=base.user,
        permissions=base.permissions,
        resource=resource,  # type: ignore[arg-type]  # the SDK lists them all
        action=action,  # type: ignore[arg-type]
    )
    found = await handle_event(asked, value)
    filters.validate(found)
    return dict(found) if found else None


def caller(ctx: Any = None) -> Caller:
    """Who asks, for hooks."""
    from langgraph_api.utils import get_auth_ctx, get_user_id

    base = ctx or get_auth_ctx()
    if base is None:
        return Caller(note=request_context.note())
    return Caller(identity=get_user_id(base.user), user=base.user, note=request_context.note())


async def rows(found: Iterable[Row]) -> Rows:
    """Rows that are already here, in the shape the interface wants."""
    for row in found:
        yield row


def as_uuid(value: Any, what: str, status: int = 422) -> uuid.UUID:
    """`value` as a UUID.

    Raises:
        HTTPException: (`status`) it is not one.
    """
    if isinstance(value, uuid.UUID):
        return value
    try:
        return uuid.UUID(value)
    except (ValueError, TypeError, AttributeError) as error:
        raise HTTPException(status, f"Invalid {what}: {value!r} is not a UUID") from error


def pick(row: Row, select: Iterable[str] | None) -> Row:
    """The fields of `row` that were asked for; all without `select`."""
    if not select:
        return row
    wanted = set(select)
    return {key: value for key, value in row.items() if key in wanted}


def user_fields(user: Any) -> Row:
    """An authenticated user as data: stored as it is, a plain user object would become null."""
    for name in ("model_dump", "dict"):
        export = getattr(user, name, None)
        if callable(export):
            return dict(export())
    return {
        "identity": user.identity,
        "is_authenticated": user.is_authenticated,
        "display_name": user.display_name,
    }
