"""The product's authentication with an authorization that filters nothing.

Statements on the graphs' own tables have no tenant conditions either. New resources still get
tenant and user in their metadata, because the database derives their tenant from it.
"""

from typing import Any

from langgraph_sdk import Auth

from tests.support import unscoped
from threadhold.auth import authenticator

unscoped.remove_conditions()
auth = Auth()


@auth.authenticate
async def authenticate(scope: dict[str, Any]) -> Any:
    return dict(await authenticator().identify(scope))


@auth.on
async def everything(ctx: Auth.types.AuthContext, value: Any) -> None:
    user: Any = ctx.user
    if ctx.action in ("create", "create_run"):
        stamp = {"tenant_id": user["tenant_id"], "user_id": user["identity"]}
        value["metadata"] = {**(value.get("metadata") or {}), **stamp}
