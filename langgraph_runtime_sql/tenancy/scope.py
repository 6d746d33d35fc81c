"""Scope: the rows that a transaction may touch. Postgres enforces it for every statement.

A request's transactions are limited to its user's tenant, and a run's to the tenant of the run. The
platform's own work uses `within(EVERYTHING)`. A task without scope and user sees nothing.

The three kinds of scope are distinct types. `TenantScope` requires a name, so code that has None
must choose between `EVERYTHING` and `NOTHING`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar
from urllib.parse import quote

from langgraph_runtime_sql import process, request_context
from langgraph_runtime_sql.tenancy import tenants


@dataclass(frozen=True, slots=True)
class TenantScope:
    """The rows of one tenant, and those that all may read.

    Args:
        tenant: The tenant's name, which is not empty.

    Raises:
        TypeError: `tenant` is not a name, for instance None.
    """

    tenant: str

    def __post_init__(self) -> None:
        given: object = self.tenant
        if not (isinstance(given, str) and given):
            raise TypeError(f"A tenant's scope needs the tenant's name, not {given!r}")

    @property
    def turn(self) -> str:
        """The tenant whose turn its work takes among the tenants."""
        return self.tenant

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings that the database's policies compare with, by name.

        Raises:
            ValueError: the tenant's name contains NUL, which Postgres cannot store.
        """
        if "\0" in self.tenant:
            raise ValueError("The name of a tenant cannot hold the character NUL")
        return {"threadhold.tenant": self.tenant, "threadhold.namespace": label(self.tenant)}


@dataclass(frozen=True, slots=True)
class SystemScope:
    """All rows: for the platform's own work, and for servers without tenants.

    Args:
        turn: The tenant whose turn the work takes; None: the platform's.
    """

    turn: str | None = field(default=None, compare=False)
    tenant: ClassVar[None] = None
    settings: ClassVar[Mapping[str, str]] = MappingProxyType({"threadhold.everything": "on"})


@dataclass(frozen=True, slots=True)
class NoScope:
    """No tenant's rows: only those that all may read."""

    tenant: ClassVar[None] = None
    turn: ClassVar[None] = None
    settings: ClassVar[Mapping[str, str]] = MappingProxyType({})


Scope = TenantScope | SystemScope | NoScope

EVERYTHING = SystemScope()
NOTHING = NoScope()


def current(tenant_key: str | None) -> Scope:
    """Return the scope of the calling task.

    Args:
        tenant_key: As in `Options`. Without it there are no tenants, and every task sees all rows.
    """
    if tenant_key is None:
        return EVERYTHING
    chosen: Scope | None = request_context.scope.get()
    return _of_caller(tenant_key) if chosen is None else chosen


def turn() -> str | None:
    """Return the tenant whose turn the work of the calling task takes; None: the platform's."""
    return current(process.configuration().options.tenant_key).turn


@contextmanager
def within(scope: Scope) -> Iterator[None]:
    """Set the scope of the block and of tasks started in it."""
    token = request_context.scope.set(scope)
    try:
        yield
    finally:
        request_context.scope.reset(token)


@contextmanager
def as_caller() -> Iterator[None]:
    """Set the scope of the block to that of the authenticated user."""
    token = request_context.scope.set(None)
    try:
        yield
    finally:
        request_context.scope.reset(token)


def _of_caller(tenant_key: str) -> Scope:
    from langgraph_api.auth.noop import UnauthenticatedUser
    from langgraph_api.utils import get_auth_ctx

    context = get_auth_ctx()
    if context is None:
        return NOTHING
    if isinstance(context.user, UnauthenticatedUser):
        # Without authentication all users are one.
        return EVERYTHING
    tenant = tenants.of_user(context.user, tenant_key)
    return NOTHING if tenant is None else TenantScope(tenant)


def label(name: str) -> str:
    """Return a tenant or user as a label of a store namespace, which holds no period.

    A tenant's items lie under this label. No two names have the same one.
    """
    text = quote(name, safe="@").replace(".", "%2E")
    return f"%{ord(text[0]):X}{text[1:]}" if text == _RESERVED_ROOT else text


# The root namespace in which langgraph's stores refuse writes.
_RESERVED_ROOT = "langgraph"
