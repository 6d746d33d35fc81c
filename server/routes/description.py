"""Description: the product routes as paths of OpenAPI, for `/openapi.json` and `/docs`."""

import re
from collections.abc import Callable, Mapping
from typing import Any

Json = dict[str, Any]

_JSON = "application/json"
_TEXT = {"type": "string"}
_BODIES: dict[str, Json] = {
    "POST /api/ask": {
        "question": {"type": "string", "description": "The question"},
        "thread_id": {
            "type": "string",
            "format": "uuid",
            "description": "Continues this conversation; a new id begins one",
        },
    },
    "POST /tutor/chat": {"message": _TEXT, "thread_id": {"type": "string", "format": "uuid"}},
    "POST /revocations": {
        **{name: _TEXT for name in ("tenant", "user", "token_id", "reason")},
        "seconds": {"type": "number"},
    },
    "POST /revocations/lift": {name: _TEXT for name in ("tenant", "user", "token_id")},
}
_REQUIRED = {"POST /api/ask": ["question"], "POST /tutor/chat": ["message"]}
_QUERIES: dict[str, Json] = {
    "GET /api/documents": {
        "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
        "after": {"type": "string", "description": "`next` of the page before"},
    }
}


def paths(routes: Mapping[str, Callable[..., Any]]) -> dict[str, Json]:
    """Return the OpenAPI paths of product routes.

    Args:
        routes: Method and path, and the handler. The summary is the handler's docstring.
    """
    found: dict[str, Json] = {}
    for route, handler in routes.items():
        method, _, path = route.partition(" ")
        found.setdefault(path, {})[method.lower()] = _operation(route, path, handler)
    return found


def _operation(route: str, path: str, handler: Callable[..., Any]) -> Json:
    summary = (handler.__doc__ or "").strip().partition("\n")[0]
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": _TEXT}
        for name in re.findall(r"{(\w+)}", path)
    ] + [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in _QUERIES.get(route, {}).items()
    ]
    operation: Json = {
        "tags": ["Products"],
        "summary": summary,
        "operationId": re.sub(r"\W+", "_", route).strip("_").lower(),
        "parameters": parameters,
        "responses": {
            "200": {"description": "Success"},
            "422": {"description": "The request is invalid; `detail` says why"},
        },
    }
    if route in _BODIES:
        schema = {
            "type": "object",
            "properties": _BODIES[route],
            "required": _REQUIRED.get(route, []),
        }
        operation["requestBody"] = {"required": True, "content": {_JSON: {"schema": schema}}}
    elif route.startswith("PUT "):
        content = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation
