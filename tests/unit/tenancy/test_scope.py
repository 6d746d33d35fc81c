"""Scope: which tenant's rows a transaction may access."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from hooks import identity
from langgraph_runtime_sql import options
from langgraph_runtime_sql.tenancy import scope, tenants
from langgraph_runtime_sql.tenancy.scope import EVERYTHING, NOTHING, Scope


@pytest.fixture(autouse=True)
def with_tenants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "_current", options.Options(tenant_key="org"))


def test_scope_sets_only_the_needed_variables() -> None:
    assert NOTHING.settings == {}
    assert EVERYTHING.settings == {"threadhold.everything": "on"}
    expected = {"threadhold.tenant": "a.b", "threadhold.namespace": "a%2Eb"}
    assert Scope("a.b").settings == expected
    with pytest.raises(ValueError, match="NUL"):
        assert Scope("a\0").settings


def test_user_namespace_starts_with_the_tenant_label() -> None:
    for name in ("acme", "a.b", "langgraph", "ü *", "@x"):
        assert identity.make_user(name, "ada")["store_namespace"][0] == scope.label(name)


def test_rows_without_tenant_need_the_system_scope() -> None:
    assert scope.of_tenant(None) is EVERYTHING
    assert scope.of_tenant("acme") == Scope("acme")


def test_innermost_scope_applies_until_its_block_ends() -> None:
    with scope.within(EVERYTHING):
        with scope.within(Scope("acme")):
            assert scope.current() == Scope("acme")
        assert scope.current() == EVERYTHING


def test_without_a_tenant_key_every_scope_is_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "_current", options.Options())
    with scope.within(Scope("acme")):
        assert scope.current() == EVERYTHING


async def test_tasks_keep_the_scope_they_were_started_in() -> None:
    async def current_scope() -> Scope:
        await asyncio.sleep(0)
        return scope.current()

    with scope.within(Scope("acme")):
        task = asyncio.create_task(current_scope())
    with scope.within(Scope("acm")):
        assert await task == Scope("acme")


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
    assert tenants.of_user(user) == tenant
