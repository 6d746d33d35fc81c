"""Whose run it is: the one place where the graphs learn it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig

from contexts.keys import AUTH_USER, TENANT_ID

LOCAL_TENANT, LOCAL_USER = "local", "developer"


class NoTenantError(RuntimeError):
    """You belong to no tenant.

    A RuntimeError, since the API hides from its callers the message of any class it does not know.
    """

    def __init__(self) -> None:
        super().__init__("You belong to no tenant")


@dataclass(frozen=True)
class User:
    """Who asks.

    Attributes:
        tenant_id: whose data a run may touch; every statement asks for it.
        user_id: who of that tenant.
    """

    tenant_id: str
    user_id: str


LOCAL = User(LOCAL_TENANT, LOCAL_USER)
"""Who acts where there is no authentication, as on a developer's own machine."""


def caller(config: RunnableConfig) -> User:
    """The authenticated user of a run. Neither input nor metadata can say who asks.

    Args:
        config: the run's. Its `langgraph_auth_user` is written by the server, which refuses
            clients that write it.

    Raises:
        NoTenantError: somebody is authenticated, who belongs to no tenant.
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
