"""Caller: the user of a request, with identity and permissions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langgraph_runtime_sql import request_context
from langgraph_runtime_sql.database.statements import Row


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated caller of a request.

    Attributes:
        identity: The user's identity, or None without authentication.
        user: The authenticated user object, or None.
        note: The note of the host's middleware about the request, set with `request_note`.
    """

    identity: str | None = None
    user: Any = None
    note: Mapping[str, Any] = field(default_factory=dict)


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
