"""The authenticated user of a run. Graphs learn tenant and user only from this module."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig

from my_agent.keys import AUTH_USER, TENANT_ID

LOCAL_TENANT, LOCAL_USER = "local", "developer"


class NoTenantError(RuntimeError):
    """The authenticated user belongs to no tenant.

    A RuntimeError, since the API hides from its callers the message of any class it does not know.
    """

    def __init__(self) -> None:
        super().__init__("You belong to no tenant")


@dataclass(frozen=True)
class User:
    """An authenticated user.

    Attributes:
        tenant_id: the tenant whose rows the run may touch; every statement filters by it.
        user_id: the user within the tenant.
    """

    tenant_id: str
    user_id: str


LOCAL = User(LOCAL_TENANT, LOCAL_USER)
"""The user of runs without authentication, as on a developer's machine."""


def caller(config: RunnableConfig) -> User:
    """Return the authenticated user of a run. Input and metadata cannot change it.

    Args:
        config: the config of the run. The server writes its `langgraph_auth_user`, and rejects
            requests that contain it.

    Raises:
        NoTenantError: the authenticated user belongs to no tenant.
    """
    user = (config.get("configurable") or {}).get(AUTH_USER)
    identity = _field(user, "identity")
    if not identity:
        return LOCAL
    tenant = _field(user, TENANT_ID)
    if not tenant:
        raise NoTenantError
    return User(str(tenant), str(identity))


def _field(user: Any, name: str) -> Any:
    return user.get(name) if isinstance(user, Mapping) else getattr(user, name, None)
