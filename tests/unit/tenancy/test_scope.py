"""Scope: whose rows a transaction may touch, by who asks and what was said."""

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


def test_settings_say_no_more_than_they_must() -> None:
    assert NOTHING.settings == {}
    assert EVERYTHING.settings == {"threadhold.everything": "on"}
    said = {"threadhold.tenant": "a.b", "threadhold.namespace": "a%2Eb"}
    assert Scope("a.b").settings == said
    with pytest.raises(ValueError, match="NUL"):
        assert Scope("a\0").settings


def test_a_users_namespace_begins_as_policies_expect() -> None:
    for name in ("acme", "a.b", "langgraph", "ü *", "@x"):
        assert identity.make_user(name, "ada")["store_namespace"][0] == scope.label(name)


def test_what_is_nobodys_is_the_systems() -> None:
    assert scope.of_tenant(None) is EVERYTHING
    assert scope.of_tenant("acme") == Scope("acme")


def test_the_innermost_word_counts_and_ends_with_its_block() -> None:
    with scope.within(EVERYTHING):
        with scope.within(Scope("acme")):
            assert scope.current() == Scope("acme")
        assert scope.current() == EVERYTHING


def test_without_a_key_there_are_no_tenants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "_current", options.Options())
    with scope.within(Scope("acme")):
        assert scope.current() == EVERYTHING


async def test_tasks_keep_what_was_said_where_they_were_begun() -> None:
    async def mine() -> Scope:
        await asyncio.sleep(0)
        return scope.current()

    with scope.within(Scope("acme")):
        task = asyncio.create_task(mine())
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
def test_only_a_text_names_a_users_tenant(user: Any, tenant: str | None) -> None:
    assert tenants.of_user(user) == tenant
