"""Users: the authenticated user of a request to a route of the host.

`await users.of(request)`, which is `platform.user`, authenticates a request or WebSocket as the
platform's own routes do. The answer is kept with the request, so later layers, the platform's
routes included, do not authenticate again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.authentication import AuthCredentials, AuthenticationError
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import Scope as AsgiScope

from langgraph_runtime_sql import process, request_context
from langgraph_runtime_sql.audit import recorder
from langgraph_runtime_sql.tenancy import scope, tenants
from threadhold import sessions
from threadhold.http import audit, authentication, rate_limits

__all__ = ["User", "acting", "of"]


@dataclass(frozen=True, eq=False)
class User:
    """An authenticated user, for as long as the request is handled.

    Attributes:
        identity: The user's id; empty without authentication.
        display_name: The name for people.
        tenant: The user's tenant; None without `sql.tenant_key`, or if the user has none.
        permissions: What the user may do, such as the user's roles.
        reads: The rows of the platform's tables that the user's requests may touch.
        fields: The user as the project's authentication has returned it.
        asgi: The ASGI scope of the request.
        credentials: What Starlette calls so: the permissions.
    """

    identity: str
    display_name: str
    tenant: str | None
    permissions: tuple[str, ...]
    reads: scope.Scope
    fields: Any = field(repr=False)
    asgi: AsgiScope = field(repr=False)
    credentials: AuthCredentials = field(repr=False)

    def get(self, name: str) -> Any:
        """Return a field of the user as the project's authentication has returned it, or None."""
        try:
            return self.fields[name]
        except (KeyError, TypeError, AttributeError):
            return getattr(self.fields, name, None)

    def require(self, permission: str) -> None:
        """Require a permission.

        Raises:
            HTTPException: (403) the user does not have it.
        """
        if permission not in self.permissions:
            raise HTTPException(403, authentication.needs(permission))

    async def check(self) -> None:
        """Look again whether the user may go on, such as between the events of a long stream.

        Routes below `platform.include` need no such look: the platform ends their requests.

        Raises:
            HTTPException: (401) the token has expired or is revoked.
        """
        session = sessions.of(self.asgi)
        if session is not None and await session.is_over():
            raise HTTPException(401, session.ended, {"WWW-Authenticate": "Bearer"})


async def of(connection: HTTPConnection) -> User:
    """Return the user of a request or WebSocket, and count it for the user's limits.

    Args:
        connection: The request.

    Raises:
        HTTPException: (401, 403) the project's authentication refuses it; (429) it exceeds a limit.
    """
    asgi, known = connection.scope, dict[str, Any]()
    try:
        credentials, fields = await _authenticated(asgi)
        known = {"user": fields, "auth": credentials}
        rate_limits.count(asgi, fields)
    except HTTPException as error:
        if not authentication.is_inside(asgi):
            # The platform's routes enter the refusals of their answers themselves.
            await audit.refuse({**asgi, "user": None, **known}, error.status_code)
        raise
    if authentication.is_inside(asgi):
        # As Starlette's middleware does: logs, turns and the audit log find the user here.
        asgi.update(known)
    return _made(asgi, fields, credentials)


async def _authenticated(asgi: AsgiScope) -> tuple[AuthCredentials, Any]:
    sessions.prepare(asgi)
    try:
        return await authentication.authenticate(asgi)
    except AuthenticationError as error:
        status, headers = authentication.status_of(error)
        raise HTTPException(status, str(error), headers) from error


def _made(asgi: AsgiScope, fields: Any, credentials: AuthCredentials) -> User:
    from langgraph_api.auth.noop import UnauthenticatedUser

    key = process.configuration().options.tenant_key
    tenant = tenants.of_user(fields, key)
    is_anyone = key is None or isinstance(fields, UnauthenticatedUser)
    reads: scope.Scope = scope.EVERYTHING if is_anyone else scope.NOTHING
    if tenant is not None and not is_anyone:
        reads = scope.TenantScope(tenant)
    identity = recorder.identity_of(fields) or ""
    return User(
        identity=identity,
        display_name=_display_name(fields, identity),
        tenant=tenant,
        permissions=tuple(map(str, credentials.scopes)),
        reads=reads,
        fields=fields,
        asgi=asgi,
        credentials=credentials,
    )


def _display_name(fields: Any, identity: str) -> str:
    try:
        return str(fields.display_name or identity)
    except (AttributeError, NotImplementedError):
        return identity


@contextmanager
def acting(user: User) -> Iterator[None]:
    """Let the platform's functions act as the user in the block: handlers, rows and audit entries.

    The functions of `threadhold.operations` and `threadhold.gate` do so themselves.
    """
    from langgraph_api.utils import AuthContext
    from langgraph_sdk import Auth

    context = Auth.types.BaseAuthContext(permissions=list(user.permissions), user=user.fields)
    # Set back by value: the steps of a generator may be in different contexts.
    before = AuthContext.get(), request_context.origin.get(), request_context.scope.get()
    AuthContext.set(context)
    request_context.scope.set(None)
    if before[1] is None:
        request_context.origin.set(audit.HostRequest(user.asgi))
    try:
        yield
    finally:
        AuthContext.set(before[0])
        request_context.origin.set(before[1])
        request_context.scope.set(before[2])
