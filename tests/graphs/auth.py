"""Who asks is in the header `x-user`; whatever they create is theirs alone."""

from typing import Any

from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(headers: dict[bytes, bytes]) -> Auth.types.MinimalUserDict:
    identity = headers.get(b"x-user", b"").decode("latin-1")
    if not identity:
        raise Auth.exceptions.HTTPException(status_code=401, detail="The header x-user is missing")
    return {"identity": identity, "permissions": [f"user:{identity}"]}


@auth.on
async def owned(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> dict[str, Any]:
    """Threads, runs and crons: stamped with their owner when written, filtered by it when read."""
    owner = {"owner": ctx.user.identity}
    if ctx.action in ("create", "update", "create_run"):
        value["metadata"] = {**(value.get("metadata") or {}), **owner}
    return owner


@auth.on.assistants
async def assistants(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> dict[str, Any]:
    """One's own assistants, and for reading those the system made from the graphs."""
    own = await owned(ctx, value)
    if ctx.action in ("read", "search"):
        return {"$or": [own, {"created_by": "system"}]}
    return own


@auth.on.store
async def store(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> None:
    """Each user's items live under their own namespace; they need not, and cannot, name it."""
    value["namespace"] = (ctx.user.identity, *(value.get("namespace") or ()))
