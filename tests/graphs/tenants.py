"""Authenticate by the header `x-user`, whose value is also the tenant in `sql.tenant_key`: `owner`."""

from typing import Any

from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(headers: dict[bytes, bytes]) -> Auth.types.MinimalUserDict:
    identity = headers.get(b"x-user", b"").decode("latin-1")
    if not identity:
        raise Auth.exceptions.HTTPException(status_code=401, detail="The header x-user is missing")
    user: Any = {"identity": identity, "owner": identity, "permissions": []}
    return user


@auth.on
async def owned(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> dict[str, Any]:
    """Store the tenant in the metadata, and filter by it."""
    owner = {"owner": ctx.user.identity}
    if ctx.action in ("create", "update", "create_run"):
        value["metadata"] = {**(value.get("metadata") or {}), **owner}
    return owner


@auth.on.assistants
async def assistants(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> dict[str, Any]:
    """Allow the tenant's own assistants, and for reading also the system's."""
    own = await owned(ctx, value)
    if ctx.action in ("read", "search"):
        return {"$or": [own, {"created_by": "system"}]}
    return own


@auth.on.store
async def store(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> None:
    """Prefix each namespace with the tenant."""
    value["namespace"] = (ctx.user.identity, *(value.get("namespace") or ()))
