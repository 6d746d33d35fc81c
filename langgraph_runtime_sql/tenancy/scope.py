"""Scope: which rows a transaction may touch. Postgres enforces it, whatever a statement asks for.

A request's transactions are limited to its user's tenant, and a run's to the tenant of the run.
The platform's own work sees everything and says so with `within(EVERYTHING)`. A task without a
scope and without a user sees nothing.

The three kinds of scope are distinct types. A missing tenant is not a scope: `TenantScope` takes
a name only, so code that has None must choose between `EVERYTHING` and `NOTHING`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import quote

from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope

from langgraph_runtime_sql import request_context
from langgraph_runtime_sql.tenancy import tenants


@dataclass(frozen=True, slots=True)
class TenantScope:
    """The rows of one tenant, beside those that all may read.

    Args:
        tenant: Its name, which is not empty.

    Raises:
        TypeError: `tenant` is not a name; above all, it is None.
    """

    tenant: str

    def __post_init__(self) -> None:
        given: object = self.tenant
        if not (isinstance(given, str) and given):
            raise TypeError(f"A tenant's scope needs the tenant's name, not {given!r}")

    @property
    def settings(self) -> Mapping[str, str]:
        """The database's settings that its policies compare with, by name.

        Raises:
            ValueError: the tenant's name holds a NUL, which ends a text there.
        """
        if "\0" in self.tenant:
            raise ValueError("The name of a tenant cannot hold the character NUL")
        return {"threadhold.tenant": self.tenant, "threadhold.namespace": label(self.tenant)}


@dataclass(frozen=True, slots=True)
class SystemScope:
    """All rows: for the platform's own work, and where nothing tells tenants apart."""

    @property
    def tenant(self) -> None:
        """No tenant's in particular."""
        return None

    @property
    def settings(self) -> Mapping[str, str]:
        """As `TenantScope.settings`."""
        return {"threadhold.everything": "on"}


@dataclass(frozen=True, slots=True)
class NoScope:
    """No tenant's rows: only those that all may read."""

    @property
    def tenant(self) -> None:
        """No tenant's."""
        return None

    @property
    def settings(self) -> Mapping[str, str]:
        """As `TenantScope.settings`."""
        return {}


Scope = TenantScope | SystemScope | NoScope

EVERYTHING = SystemScope()
NOTHING = NoScope()


def current(tenant_key: str | None) -> Scope:
    """The scope of what the calling task does now.

    Args:
        tenant_key: As in `Options`. Without it there are no tenants, and all rows are everyone's.
    """
    if tenant_key is None:
        return EVERYTHING
    chosen = request_context.scope.get()
    return _of_caller(tenant_key) if chosen is None else chosen


@contextmanager
def within(scope: Scope) -> Iterator[None]:
    """Give everything in here, and tasks begun in here, this scope."""
    token = request_context.scope.set(scope)
    try:
        yield
    finally:
        request_context.scope.reset(token)


@contextmanager
def as_caller() -> Iterator[None]:
    """Give everything in here the scope of the user that authentication finds."""
    token = request_context.scope.set(None)
    try:
        yield
    finally:
        request_context.scope.reset(token)


class OfCaller:
    """Middleware: a request has the scope of its user, also one that a graph makes to itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        with as_caller():
            await self._app(scope, receive, send)


def _of_caller(tenant_key: str) -> Scope:
    from langgraph_api.auth.noop import UnauthenticatedUser
    from langgraph_api.utils import get_auth_ctx

    asks = get_auth_ctx()
    if asks is None:
        return NOTHING
    if isinstance(asks.user, UnauthenticatedUser):
        # Nothing is configured that would tell users apart.
        return EVERYTHING
    tenant = tenants.of_user(asks.user, tenant_key)
    return NOTHING if tenant is None else TenantScope(tenant)


def label(name: str) -> str:
    """A tenant or user as a label of a store namespace, which has no periods.

    A tenant's items lie under this label of its name. No two names share one.
    """
    text = quote(name, safe="@").replace(".", "%2E")
    return f"%{ord(text[0]):X}{text[1:]}" if text == _STORES_OWN else text


# The one root under which stores let nobody put anything.
_STORES_OWN = "langgraph"
