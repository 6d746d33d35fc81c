"""Scope: which tenant's rows a transaction may access."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from langgraph_runtime_sql.tenancy import scope, tenants
from langgraph_runtime_sql.tenancy.scope import EVERYTHING, NOTHING, Scope, TenantScope
from tests.support.checkpoints import api_settings
from threadhold.auth import identity

KEY = "org"


def test_scope_sets_only_the_needed_variables() -> None:
    assert NOTHING.settings == {}
    assert EVERYTHING.settings == {"threadhold.everything": "on"}
    expected = {"threadhold.tenant": "a.b", "threadhold.namespace": "a%2Eb"}
    assert TenantScope("a.b").settings == expected
    with pytest.raises(ValueError, match="NUL"):
        assert TenantScope("a\0").settings


def test_user_namespace_starts_with_the_tenant_label() -> None:
    for name in ("acme", "a.b", "langgraph", "ü *", "@x"):
        assert identity.make_user(name, "ada")["store_namespace"][0] == scope.label(name)


@pytest.mark.parametrize("missing", [None, "", 0, b"acme", ["acme"]], ids=repr)
def test_a_missing_tenant_is_no_scope(missing: Any) -> None:
    """Above all it is not everything, which must be asked for by name."""
    with pytest.raises(TypeError, match="tenant's name"):
        TenantScope(missing)


def test_the_kinds_of_scope_are_distinct_types_that_cannot_become_one_another() -> None:
    kinds: list[Scope] = [TenantScope("acme"), EVERYTHING, NOTHING]
    assert len({type(each) for each in kinds}) == len(kinds)
    assert len(set(kinds)) == len(kinds)
    for each in kinds:
        with pytest.raises((AttributeError, TypeError)):
            each.tenant = None  # type: ignore[misc]  # what is tested


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"org": "acme"}, TenantScope("acme")),
        ({"org": None}, NOTHING),
        ({"org": ""}, NOTHING),
        ({}, NOTHING),
        (None, NOTHING),
    ],
    ids=repr,
)
def test_a_user_without_a_tenant_sees_nothing(
    user: Any, expected: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    with api_settings():
        from langgraph_api import utils

        asks = None if user is None else SimpleNamespace(user=user)
        monkeypatch.setattr(utils, "get_auth_ctx", lambda: asks)
        assert scope.current(KEY) == expected
        with scope.within(EVERYTHING), scope.as_caller():
            assert scope.current(KEY) == expected


def test_innermost_scope_applies_until_its_block_ends() -> None:
    with scope.within(EVERYTHING):
        with scope.within(TenantScope("acme")):
            assert scope.current(KEY) == TenantScope("acme")
        assert scope.current(KEY) == EVERYTHING


def test_without_a_tenant_key_every_scope_is_everything() -> None:
    with scope.within(TenantScope("acme")):
        assert scope.current(None) == EVERYTHING


async def test_tasks_keep_the_scope_they_were_started_in() -> None:
    async def current_scope() -> Scope:
        await asyncio.sleep(0)
        return scope.current(KEY)

    with scope.within(TenantScope("acme")):
        task = asyncio.create_task(current_scope())
    with scope.within(TenantScope("acm")):
        assert await task == TenantScope("acme")


@pytest.mark.parametrize(
    ("user", "tenant"),
    [
        ({"org": "acme"}, "acme"),
        (SimpleNamespace(org="acme"), "acme"),
        ({"org": ""}, None),
        ({"org": 7}, None),
        ({"org": ["acme"]}, None),
        ({}, None),
        (SimpleNamespace(identity="ada"), None),
    ],
)
def test_tenant_of_a_user_must_be_a_nonempty_string(user: Any, tenant: str | None) -> None:
    assert tenants.of_user(user, KEY) == tenant
