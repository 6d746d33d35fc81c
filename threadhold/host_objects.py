"""Host objects: graphs and functions that a host passes instead of their path.

`langgraph_api` loads graphs and authentication by `module:name`. This module is that module: it has
each of them under a name of its own.
"""

import copy
import inspect
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request

from langgraph_runtime_sql.errors import RuntimeSqlError


class AuthenticateFailed(RuntimeSqlError):
    """The host's function failed, or returned no user. The request gets a 500."""


Authenticate = Callable[[Request], Any | Awaitable[Any]]
"""The host's own function: a user, or None for a 401."""

_graphs: list[Any] = []
_authenticators: list[tuple[Authenticate, str | None]] = []


def is_graph(found: Any) -> bool:
    """Return whether an object is a graph: compiled, a builder, or a function that makes one."""
    return callable(found) or hasattr(found, "ainvoke") or hasattr(found, "compile")


def graph(found: Any) -> str:
    """Return `module:name` of a given graph. The same object has the same name."""
    known = next((number for number, each in enumerate(_graphs) if each is found), None)
    if known is None:
        known = len(_graphs)
        _graphs.append(found)
        setattr(sys.modules[__name__], f"graph_{known}", found)
    return f"{__name__}:graph_{known}"


def auth(authenticate: Authenticate, project_auth: str | None) -> str:
    """Return `module:name` of an `Auth` object that authenticates with a host's function.

    Args:
        authenticate: The function.
        project_auth: `auth.path` of the project, whose other handlers stay.
    """
    asked = (authenticate, project_auth)
    if asked not in _authenticators:
        _authenticators.append(asked)
    return f"{__name__}:auth_{_authenticators.index(asked)}"


def __getattr__(name: str) -> Any:
    """Make an `Auth` object when `langgraph_api`, which it needs, asks for it."""
    kind, _, number = name.partition("_")
    if kind != "auth" or not number.isdecimal() or int(number) >= len(_authenticators):
        raise AttributeError(name)
    from langgraph_api.auth.custom import _load_auth_obj
    from langgraph_sdk import Auth

    authenticate, path = _authenticators[int(number)]
    loaded: Any = Auth() if path is None else copy.copy(_load_auth_obj(path))

    async def handler(scope: dict[str, Any]) -> Any:
        return await _authenticated(authenticate, scope, Auth.exceptions.HTTPException)

    loaded._authenticate_handler = handler
    return loaded


async def _authenticated(authenticate: Authenticate, scope: dict[str, Any], refusal: Any) -> Any:
    """Call the host's function, and return its user as `langgraph_api` expects it."""
    # A WebSocket's handshake has the same headers, cookies and session.
    request = Request({"method": "GET", **scope, "type": "http"})
    try:
        if inspect.iscoroutinefunction(authenticate):
            user = await authenticate(request)
        else:
            user = await run_in_threadpool(authenticate, request)
            if inspect.isawaitable(user):
                user = await user
    except HTTPException as error:
        if error.status_code not in (401, 403):
            raise
        raise refusal(
            status_code=error.status_code, detail=error.detail, headers=error.headers
        ) from error
    except Exception as error:
        # As it is, a ValueError would be a 400 with its message.
        raise AuthenticateFailed("authenticate: the host's function failed") from error
    if not user:
        raise refusal(status_code=401, detail="Not authenticated")
    if isinstance(user, str):
        return {"identity": user}
    if isinstance(user, dict) and "identity" in user:
        # Ids of users are often numbers.
        return {**user, "identity": str(user["identity"])}
    if not hasattr(user, "identity"):
        kind = type(user).__name__
        raise AuthenticateFailed(f"authenticate: returned {kind}: its user needs an `identity`")
    return user
