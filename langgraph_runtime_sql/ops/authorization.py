"""Authorization: call the host's handlers, and helpers that all operations share."""

import uuid
from collections.abc import AsyncIterator, Iterable
from typing import Any

from sqlalchemy import ColumnElement
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import request_context
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.hooks import Caller
from langgraph_runtime_sql.search import filters

Filter = dict[str, Any] | None
Rows = AsyncIterator[Row]


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


async def rows(found: Iterable[Row]) -> Rows:
    """Yield rows that were already read, as the interface expects."""
    for row in found:
        yield row


def as_uuid(value: Any, what: str, status: int = 422) -> uuid.UUID:
    """Return `value` as a UUID.

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
    """Return the selected fields of `row`, by default all."""
    if not select:
        return row
    wanted = set(select)
    return {key: value for key, value in row.items() if key in wanted}


def page_of(found: list[Row], limit: int, offset: int) -> tuple[list[Row], int | None]:
    """Split up to `limit + 1` rows into a page and the offset of the next page, or None."""
    return found[:limit], offset + limit if len(found) > limit else None


def sort_column(columns: Any, sort_by: str, sortable: tuple[str, ...]) -> ColumnElement[Any]:
    """Return the column to sort by.

    Raises:
        HTTPException: (422) `sort_by` is not in `sortable`.
    """
    if sort_by.lower() not in sortable:
        raise HTTPException(
            422, f"Invalid sort_by field: {sort_by!r}. Expected one of: {', '.join(sortable)}"
        )
    column: ColumnElement[Any] = columns[sort_by.lower()]
    return column


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
