"""Authenticate by the headers `x-user` and `x-tenant`, and restrict each tenant to its resources.

The header `x-permissions` names the user's permissions, separated by spaces.
"""

from typing import Any

from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(headers: dict[bytes, bytes]) -> Any:
    identity, tenant = (
        headers.get(name, b"").decode("latin-1") for name in (b"x-user", b"x-tenant")
    )
    if not identity or not tenant:
        raise Auth.exceptions.HTTPException(status_code=401, detail="A header is missing")
    permissions = headers.get(b"x-permissions", b"").decode("latin-1").split()
    return {"identity": identity, "org": tenant, "permissions": permissions}


@auth.on
async def owned(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    """Store the tenant in metadata, and filter by it."""
    owner = {"org": ctx.user["org"]}
    if ctx.action in ("create", "update", "create_run"):
        value["metadata"] = {**(value.get("metadata") or {}), **owner}
    if ctx.resource == "assistants" and ctx.action in ("read", "search"):
        return {"$or": [owner, {"created_by": "system"}]}
    return owner
