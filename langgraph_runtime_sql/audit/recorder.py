"""Recorder: turn the notes of an operation into audit entries, before its commit."""

import os
import pwd
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, TypeVar

from langgraph_runtime_sql import process, request_context
from langgraph_runtime_sql.audit import log as logs
from langgraph_runtime_sql.audit.entry import Actor, Note
from langgraph_runtime_sql.audit.log import Log
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.tenancy import scope, tenants

T = TypeVar("T")


def recording(log: Log, fn: Callable[[Connection], T]) -> Callable[[Connection], T]:
    """Return `fn` such that it also writes the entries of its notes to `log`.

    Call it in the caller's task, whose context names the actor.
    """
    if not process.configuration().options.audit_log:
        return fn
    # Cheap; the actor is looked up only if there are notes.
    context = copy_context()

    def recorded(conn: Connection) -> T:
        result = fn(conn)
        if conn.notes:
            # A copy, because a context cannot be entered twice at the same time.
            log.append(conn, context.copy().run(current_actor), conn.notes)
        return result

    return recorded


async def write(database: Database, actor: Actor, note: Note) -> None:
    """Write an entry in a transaction of its own."""
    if process.configuration().options.audit_log:
        log = logs.of(database)
        with scope.within(scope.EVERYTHING), request_context.own_write("audit"):
            await database.write(lambda conn: log.append(conn, actor, [note]))


@contextmanager
def by_command(name: str | None = None) -> Iterator[None]:
    """Let the entries of the block name the user of the system who runs a command.

    Args:
        name: The command, such as `tenant export`.
    """
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        # A container may run as a user without a name.
        user = str(os.geteuid())
    actor = Actor(user=user, method="COMMAND", route=name)
    token = request_context.origin.set(lambda: actor)
    try:
        yield
    finally:
        request_context.origin.reset(token)


def current_actor() -> Actor:
    """Return the actor of the calling task's work."""
    request: Callable[[], Actor] | None = request_context.origin.get()
    if request is not None:
        origin = request()
    else:
        origin = Actor(route=None if request_context.firing.get() is None else "cron")
    user, permissions = _user()
    if user is None:
        return origin
    return of_user(origin, user, permissions)


def of_user(origin: Actor, user: Any, permissions: Any) -> Actor:
    """Return `origin` with the names of an authenticated user."""
    return Actor(
        tenant=tenants.of_user(user, process.configuration().options.tenant_key),
        user=identity_of(user),
        roles=tuple(map(str, permissions or ())),
        address=origin.address,
        method=origin.method,
        route=origin.route,
    )


def of_scope(origin: Actor, asgi_scope: Mapping[str, Any]) -> Actor:
    """Return `origin` with the user of an ASGI scope, if its request was authenticated."""
    user, credentials = asgi_scope.get("user"), asgi_scope.get("auth")
    if user is None or identity_of(user) is None:
        return origin
    return of_user(origin, user, getattr(credentials, "scopes", ()))


def identity_of(user: Any) -> str | None:
    """Return the identity of an authenticated user, or None."""
    try:
        identity = user.identity
    except (AttributeError, NotImplementedError):
        # Starlette's own class for a caller without authentication has none.
        return None
    return None if identity is None else str(identity)


def _user() -> tuple[Any, Any]:
    if "langgraph_api.utils" not in sys.modules:
        # A command: nothing authenticates.
        return None, ()
    from langgraph_api.auth.noop import UnauthenticatedUser
    from langgraph_api.utils import get_auth_ctx

    context = get_auth_ctx()
    if context is None or isinstance(context.user, UnauthenticatedUser):
        return None, ()
    return context.user, context.permissions
