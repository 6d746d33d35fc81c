"""Authentication as ever, and authorization that has forgotten everything: no handler filters.

Nor does a statement of the graphs' own tables ask for a tenant. What is created still says whose it is, or else the database would take it for nobody's.
"""

from typing import Any

from langgraph_sdk import Auth

from hooks.auth import authenticate
from tests.support import unscoped

unscoped.forget()
auth = Auth()
auth.authenticate(authenticate)


@auth.on
async def everything(ctx: Auth.types.AuthContext, value: Any) -> None:
    user: Any = ctx.user
    if ctx.action in ("create", "create_run"):
        stamp = {"tenant_id": user["tenant_id"], "user_id": user["identity"]}
        value["metadata"] = {**(value.get("metadata") or {}), **stamp}
