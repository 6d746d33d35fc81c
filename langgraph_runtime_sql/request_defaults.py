"""What the API's schemas let a request leave out or say, and its handlers cannot take.

`retry_db` stands around every handler, so it is where a body can be completed,
or refused, before the handler reads it. The body is checked against the schema first, as
the handler would, which then finds it ready.
"""

from collections.abc import Callable
from typing import Any

from starlette.requests import Request

from langgraph_runtime_sql import store
from langgraph_runtime_sql.ops.cron_schedule import check_timezone

Body = dict[str, Any]


async def complete(request: Request) -> None:
    """Put into the body of `request` what its route needs."""
    known = _ROUTES.get((request.method, request.scope.get("route", "")))
    if known is None:
        return
    from langgraph_api import validation

    schema, fill_in = known
    # The API's request class checks and keeps the body.
    parsed: Any = request.json
    fill_in(await parsed(getattr(validation, schema)))


def _put_item(body: Body) -> None:
    """Without a `ttl` an item gets the configured one. The route makes no difference between
    that and null, which is no expiry."""
    config = store.Store().ttl_config
    if config is not None:
        body.setdefault("ttl", config.get("default_ttl"))


def _search_items(body: Body) -> None:
    """Without a prefix the whole store is searched; the route would answer 500."""
    body["namespace_prefix"] = body.get("namespace_prefix") or []


def _cron(body: Body) -> None:
    """Time zones are files: for a name that is a folder or too long the route would answer 500."""
    if (timezone := body.get("timezone")) is not None:
        check_timezone(timezone)


_ROUTES: dict[tuple[str, str], tuple[str, Callable[[Body], None]]] = {
    ("PUT", "/store/items"): ("StorePutRequest", _put_item),
    ("POST", "/store/items/search"): ("StoreSearchRequest", _search_items),
    ("POST", "/runs/crons"): ("CronCreate", _cron),
    ("POST", "/threads/{thread_id}/runs/crons"): ("ThreadCronCreate", _cron),
    ("PATCH", "/runs/crons/{cron_id}"): ("CronPatch", _cron),
}
