"""Who asks is in the header ``x-user``; whatever they create is theirs alone.

Metadata is changed in place: the stock server ignores a handler that replaces it.
"""

from __future__ import annotations

from typing import Any

from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(headers: dict[bytes, bytes]) -> Auth.types.MinimalUserDict:
    """The user named by the header."""
    identity = headers.get(b"x-user", b"").decode("latin-1")
    if not identity:
        raise Auth.exceptions.HTTPException(status_code=401, detail="The header x-user is missing")
    return {"identity": identity, "permissions": [f"user:{identity}"]}


@auth.on
async def owned(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Auth.types.FilterType:
    """Stamp what is written with its owner, and show only the owner what is read."""
    owner = {"owner": ctx.user.identity}
    if ctx.action in ("create", "update", "create_run") and value.get("metadata") is not None:
        value["metadata"].update(owner)
    return owner


@auth.on.assistants
async def assistants(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    """One's own assistants, and for reading those that the system made of the graphs."""
    own = await owned(ctx, value)
    if ctx.action in ("read", "search"):
        return {"$or": [own, {"created_by": "system"}]}
    return own


@auth.on.store
async def store(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> None:
    """Each user's items live under their own namespace, which they need not name."""
    value["namespace"] = (ctx.user.identity, *(value.get("namespace") or ()))
