"""Scope: whose rows a transaction may touch. Postgres holds it, whatever a statement asks for.

A request's transactions are its user's tenant's, and a run's are the tenant's whose the run is.
What the platform does for itself sees everything, and says so with `within`. Whoever says
nothing, and is nobody, sees nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from urllib.parse import quote

from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope

from langgraph_runtime_sql import options
from langgraph_runtime_sql.tenancy import tenants


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose rows.

    Attributes:
        tenant: A tenant's, beside those that are for all to read; None: nobody's.
        everything: All there are.
    """

    tenant: str | None = None
    everything: bool = False

    @property
    def settings(self) -> dict[str, str]:
        """The database's settings that its policies compare with, by name.

        Raises:
            ValueError: the tenant's name holds a NUL, which ends a text there.
        """
        if self.everything:
            return {"threadhold.everything": "on"}
        if self.tenant is None:
            return {}
        if "\0" in self.tenant:
            raise ValueError("The name of a tenant cannot hold the character NUL")
        return {"threadhold.tenant": self.tenant, "threadhold.namespace": label(self.tenant)}


EVERYTHING = Scope(everything=True)
NOTHING = Scope()

_said: ContextVar[Scope | None] = ContextVar("scope", default=None)


def current() -> Scope:
    """The scope of what the calling task does now."""
    if options.current().tenant_key is None:
        return EVERYTHING
    said = _said.get()
    return _of_caller() if said is None else said


def of_tenant(tenant: str | None) -> Scope:
    """The scope of a row's tenant; what is nobody's is the system's."""
    return EVERYTHING if tenant is None else Scope(tenant)


@contextmanager
def within(scope: Scope | None) -> Iterator[None]:
    """Everything in here, and tasks begun in here, have this scope; None: that of the caller."""
    token = _said.set(scope)
    try:
        yield
    finally:
        _said.reset(token)


class OfCaller:
    """Middleware: a request has the scope of its user, also one that a graph makes to itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        with within(None):
            await self._app(scope, receive, send)


def _of_caller() -> Scope:
    from langgraph_api.auth.noop import UnauthenticatedUser
    from langgraph_api.utils import get_auth_ctx

    asks = get_auth_ctx()
    if asks is None:
        return NOTHING
    if isinstance(asks.user, UnauthenticatedUser):
        # Nothing is configured that would tell users apart.
        return EVERYTHING
    return Scope(tenants.of_user(asks.user))


def label(name: str) -> str:
    """A tenant or user as a label of a store namespace, which has no periods.

    A tenant's items lie under this label of its name. No two names share one.
    """
    text = quote(name, safe="@").replace(".", "%2E")
    return f"%{ord(text[0]):X}{text[1:]}" if text == _STORES_OWN else text


# The one root under which stores let nobody put anything.
_STORES_OWN = "langgraph"
