"""Validation: refuse request bodies that pass the API's schemas but break its handlers.

`stock.request_checks` calls it after the API's own check. JSON-RPC bodies (MCP and A2A) have no
schema in the API.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import jsonschema_rs
import orjson
from starlette.exceptions import HTTPException

from langgraph_runtime_sql.ops.arguments import as_uuid
from langgraph_runtime_sql.ops.crons.schedule import check_timezone
from langgraph_runtime_sql.ops.runs import batch as run_batch
from langgraph_runtime_sql.store import store

Body = dict[str, Any]
Schema = dict[str, Any]

MAX_PAGE = 2**31 - 1
# Ids or runs in one request; more would keep other requests waiting.
MAX_ITEMS = 1000
MAX_METADATA_KEYS = 64
# JSON-RPC error codes.
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
PARSE_ERROR = -32700


class JsonRpcError(Exception):
    """A JSON-RPC message is refused; `body` is the answer."""

    def __init__(self, code: int, message: str, request_id: Any = None) -> None:
        super().__init__(message)
        self.body = {
            "jsonrpc": "2.0",
            "id": request_id,
            "error": {"code": code, "message": message},
        }


def check(method: str, route: str, body: Any) -> None:
    """Refuse a body on which the handler of `route` would fail.

    Raises:
        jsonschema_rs.ValidationError, HTTPException: (422) the body is invalid.
    """
    if isinstance(body, dict):
        for name in ("limit", "offset"):
            check_page(name, body.get(name))
    schema, _ = _ROUTES.get((method, route), _NO_RULE)
    if schema is not None:
        _validator(schema).validate(body)


def complete(method: str, route: str, body: Any) -> None:
    """Add the defaults that the handler of `route` expects to `body`.

    Raises:
        ValueError: (400) a value is invalid.
    """
    _, completion = _ROUTES.get((method, route), _NO_RULE)
    if completion is not None:
        completion(body)


def check_page(name: str, number: Any) -> None:
    """Refuse a `limit` or `offset` out of range.

    Raises:
        HTTPException: (422) the number is negative or larger than `MAX_PAGE`.
    """
    if isinstance(number, int | float) and not 0 <= number <= MAX_PAGE:
        raise HTTPException(422, f"`{name}` must be a whole number from 0 to {MAX_PAGE}")


def checked_message(route: str, body: bytes) -> bytes:
    """Check a JSON-RPC message and return it, normalized like other bodies (no lone surrogates).

    Raises:
        JsonRpcError: the message is not JSON, or its handler would fail on its parameters.
    """
    schema = _PARAMS.get(route)
    if schema is None:
        return body
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if route == _A2A:
            return body  # A2A's handler answers with its own parse error.
        raise JsonRpcError(PARSE_ERROR, "Parse error: the body must be valid JSON") from error
    if isinstance(message, dict) and "method" in message:
        for wrong in _validator(schema).iter_errors(message.get("params", {})):
            path = ".".join(["params", *map(str, wrong.instance_path)])
            raise JsonRpcError(
                INVALID_PARAMS, f"Invalid {path}: {wrong.message}", message.get("id")
            )
    return orjson.dumps(message)


def check_path(route: str, path_params: Mapping[str, Any]) -> None:
    """Refuse an id of a path for which the handler of `route` would answer 200 and nothing else.

    Raises:
        HTTPException: (422) it is no id.
    """
    if route == _EVENTS:
        as_uuid(path_params["thread_id"], "thread ID")


def is_json_rpc(route: str) -> bool:
    """Return whether the bodies of a route are JSON-RPC messages."""
    return route in _PARAMS


@cache
def _compiled(schema: bytes) -> Any:
    return jsonschema_rs.validator_for(orjson.loads(schema))


def _validator(schema: Schema) -> Any:
    return _compiled(orjson.dumps(schema))


def _put_item(body: Body) -> None:
    """Set the configured `ttl` if the body has none.

    The route does not tell a missing `ttl` from null, which means no expiry.
    """
    config = store.Store().ttl_config
    if config is not None:
        body.setdefault("ttl", config.get("default_ttl"))


def _search_items(body: Body) -> None:
    """Search the whole store if there is no prefix; the route would answer 500."""
    body["namespace_prefix"] = body.get("namespace_prefix") or []


def _cron(body: Body) -> None:
    """Check the time zone.

    Zones are files: the route would answer 500 to the name of a folder, or one that is too long.
    """
    if (timezone := body.get("timezone")) is not None:
        check_timezone(timezone)


def _optional(kind: str, **rest: Any) -> Schema:
    return {"type": [kind, "null"], **rest}


_NODES: Schema = {
    "anyOf": [{"const": "*"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]
}
_RUN: Schema = {
    "properties": {
        "checkpoint": _optional("object"),
        "checkpoint_id": _optional("string"),
        "interrupt_before": _NODES,
        "interrupt_after": _NODES,
        "langsmith_tracer": _optional(
            "object",
            properties={"project_name": _optional("string"), "example_id": _optional("string")},
        ),
        "multitask_strategy": {"enum": ["reject", "rollback", "interrupt", "enqueue", None]},
        "if_not_exists": {"enum": ["create", "reject", None]},
        "on_disconnect": {"enum": ["cancel", "continue", None]},
    }
}
_SEARCH: Schema = {
    "properties": {
        "ids": {"maxItems": MAX_ITEMS},
        "metadata": {"maxProperties": MAX_METADATA_KEYS},
    }
}
_THREAD: Schema = {
    "properties": {"ttl": {"properties": {"ttl": {"type": "number", "exclusiveMinimum": 0}}}}
}

_Rule = tuple[Schema | None, Callable[[Any], None] | None]
_NO_RULE: _Rule = (None, None)

_ROUTES: dict[tuple[str, str], _Rule] = {
    **{
        ("POST", path): (_RUN, None)
        for prefix in ("/runs", "/threads/{thread_id}/runs")
        for path in (prefix, f"{prefix}/wait", f"{prefix}/stream")
    },
    ("POST", "/runs/batch"): ({"items": _RUN, "maxItems": MAX_ITEMS}, run_batch.begin),
    ("POST", "/runs/crons"): (_RUN, _cron),
    ("POST", "/threads/{thread_id}/runs/crons"): (_RUN, _cron),
    ("PATCH", "/runs/crons/{cron_id}"): (_RUN, _cron),
    ("POST", "/threads"): (_THREAD, None),
    ("PATCH", "/threads/{thread_id}"): (_THREAD, None),
    ("POST", "/threads/search"): (_SEARCH, None),
    ("POST", "/threads/count"): (_SEARCH, None),
    ("POST", "/threads/prune"): ({"properties": {"thread_ids": {"maxItems": MAX_ITEMS}}}, None),
    ("POST", "/runs/cancel"): ({"properties": {"run_ids": {"maxItems": MAX_ITEMS}}}, None),
    ("PUT", "/store/items"): (None, _put_item),
    ("POST", "/store/items/search"): (None, _search_items),
}

_A2A = "/a2a/{assistant_id}"
_EVENTS = "/threads/{thread_id}/stream/events"

_PARAMS: dict[str, Schema] = {
    "/mcp": {
        "type": "object",
        "properties": {
            "protocolVersion": {"type": "string"},
            "cursor": {
                "type": ["string", "integer"],
                "pattern": "^[0-9]{1,9}$",
                "minimum": 0,
                "maximum": MAX_PAGE,
            },
            "name": {"type": "string"},
            "context": _optional("object"),
        },
    },
    _A2A: {"type": "object"},
}
