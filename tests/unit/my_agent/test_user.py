"""Whose run it is."""

from types import SimpleNamespace
from typing import Any

import pytest

from my_agent.user import LOCAL, NoTenantError, User, caller

FIELDS = {"identity": "ann", "tenant_id": "acme", "roles": []}


def config(user: Any) -> Any:
    return {"configurable": {"langgraph_auth_user": user}, "metadata": {"tenant_id": "other"}}


@pytest.mark.parametrize("user", [FIELDS, SimpleNamespace(**FIELDS)], ids=["dict", "object"])
def test_it_is_the_authenticated_user_s(user: Any) -> None:
    assert caller(config(user)) == User("acme", "ann")


@pytest.mark.parametrize(
    "each",
    [{}, {"configurable": {}}, config(None), config(SimpleNamespace(identity=""))],
    ids=["nothing", "no user", "none", "unauthenticated"],
)
def test_without_authentication_it_is_the_developer_s(each: Any) -> None:
    assert caller(each) == LOCAL


def test_a_user_of_no_tenant_is_refused() -> None:
    with pytest.raises(NoTenantError, match="no tenant"):
        caller(config({"identity": "langgraph-studio-user"}))
