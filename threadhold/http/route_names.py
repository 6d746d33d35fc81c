"""Route names: name the route of a request in logs, without what a client typed into its path.

A path may hold the name of a document or of a person. An id (UUID) is shown, because it is none.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from starlette.routing import BaseRoute, Match, Mount

# Shown for a path that no route has: all of it is the client's own text.
NO_ROUTE = "(no route)"
# A parameter in the template of a route, with or without its convertor.
_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")


def shown(scope: Mapping[str, Any], root: str = "") -> str:
    """Return the path of the route of a request, with its ids, after the router has seen it.

    Args:
        scope: The ASGI scope.
        root: `root_path` of the scope before the router saw it.
    """
    mounted = str(scope.get("root_path", "")).removeprefix(root)
    values = scope.get("path_params", {})
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
        if (routes_inside := getattr(route, "routes", None)) is not None:
            inner = template(routes_inside, {**scope, **child})
            if inner is not None:
                return str(getattr(route, "path", "")) + inner
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
