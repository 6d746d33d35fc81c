"""Route names: name the route of a request in logs, without what a client typed into its path.

A path may hold the name of a document or of a person. An id (UUID) is shown, because it is none.
"""

import re
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any
from uuid import UUID

from starlette.routing import BaseRoute, Match, Mount

# Shown for a path that no route has: all of it is the client's own text.
NO_ROUTE = "(no route)"
_NOTED = "threadhold.route"
_USER, _CREDENTIALS = "threadhold.user", "threadhold.credentials"
# A parameter in the template of a route, with or without its convertor.
_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")


def note(scope: MutableMapping[str, Any], template: str, values: Mapping[str, Any]) -> None:
    """Name the route of a request that middleware of the host answers itself.

    Args:
        scope: The ASGI scope of the request.
        template: Path of the route below the mount, such as `/api/documents/{name}`.
        values: The values of its parameters.
    """
    scope[_NOTED] = _filled(template, values)


def own_scope(scope: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a scope for a request that middleware sends to the platform."""
    return {name: value for name, value in scope.items() if name != _NOTED}


def note_user(scope: MutableMapping[str, Any], sent: Mapping[str, Any]) -> None:
    """Name the user as whom the platform answered a request of middleware.

    Args:
        scope: The scope of the client's request.
        sent: The scope of the middleware's own request, which the platform has answered.
    """
    if (user := sent.get("user")) is not None:
        scope[_USER], scope[_CREDENTIALS] = user, sent.get("auth")


def user(scope: Mapping[str, Any]) -> Any:
    """Return the authenticated user of a request, or None."""
    return scope.get("user") or scope.get(_USER)


def caller(scope: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a scope with the authenticated user of a request and its credentials, if there are."""
    if scope.get("user") is not None:
        return scope
    return {"user": scope.get(_USER), "auth": scope.get(_CREDENTIALS)}


def shown(scope: Mapping[str, Any], root: str = "") -> str:
    """Return the path of the route of a request, with its ids, after the router has seen it.

    Args:
        scope: The ASGI scope.
        root: `root_path` of the scope before the router saw it.
    """
    mounted = str(scope.get("root_path", "")).removeprefix(root)
    values = scope.get("path_params", {})
    if (noted := scope.get(_NOTED)) is not None:
        return mounted + str(noted)
    route = scope.get("route")
    if isinstance(route, Mount) or route is None:
        # Refused before the innermost router.
        found, values = template(scope["app"].router.routes, scope) if "app" in scope else None, {}
    else:
        found = route if isinstance(route, str) else getattr(route, "path", None)
    return NO_ROUTE if found is None else _masked(mounted, values) + _filled(found, values)


def template(routes: Iterable[BaseRoute], scope: Mapping[str, Any]) -> str | None:
    """Return the path of the route that matches a request, with names for its parameters."""
    for route in routes:
        match, child = route.matches(dict(scope))
        if match is Match.NONE:
            continue
        if isinstance(route, Mount):
            inner = template(route.routes, {**scope, **child})
            if inner is not None:
                return route.path + inner
        elif match is Match.FULL:
            return str(getattr(route, "path", ""))
    return None


def _filled(path: str, values: Mapping[str, Any]) -> str:
    """Return the path of a route with its ids; other parameters stay names."""

    def fill(found: re.Match[str]) -> str:
        value = str(values.get(found[1], ""))
        return value if _is_id(value) else f"{{{found[1]}}}"

    return _PARAMETER.sub(fill, path)


def _masked(prefix: str, values: Mapping[str, Any]) -> str:
    """Return the path of a mount with names in place of parameters."""
    names = {str(value): name for name, value in values.items()}
    parts = prefix.split("/")
    return "/".join(f"{{{names[part]}}}" if part in names else part for part in parts)


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
