"""The header ``x-user`` names the user, and everything belongs to the user that creates it.

Handlers change metadata in place: the stock server ignores a handler that replaces it.
"""

from __future__ import annotations

from typing import Any

from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(headers: dict[bytes, bytes]) -> Auth.types.MinimalUserDict:
    """Return the user that the header names."""
    identity = headers.get(b"x-user", b"").decode("latin-1")
    if not identity:
        raise Auth.exceptions.HTTPException(status_code=401, detail="The header x-user is missing")
    return {"identity": identity, "permissions": [f"user:{identity}"]}


@auth.on
async def owned(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Auth.types.FilterType:
    """Store the owner in written metadata, and limit reads to the owner."""
    owner = {"owner": ctx.user.identity}
    if ctx.action in ("create", "update", "create_run") and value.get("metadata") is not None:
        value["metadata"].update(owner)
    return owner


@auth.on.assistants
async def assistants(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    """Limit access to own assistants; system assistants may also be read."""
    own = await owned(ctx, value)
    if ctx.action in ("read", "search"):
        return {"$or": [own, {"created_by": "system"}]}
    return own


@auth.on.store
async def store(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> None:
    """Prefix every namespace with the user's identity."""
    value["namespace"] = (ctx.user.identity, *(value.get("namespace") or ()))
