"""Query check: refuse queries and headers on which the stock code would fail with a 500."""

import re

from starlette.datastructures import QueryParams
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Scope

from threadhold.http import validation
from threadhold.http.layers import Exchange

_TEXT_HEADERS = (b"x-request-id", b"last-event-id")
_EVENT_ID = re.compile(rb"-|-1|[0-9]{1,19}(-([0-9]{1,19}|\*))?")


async def check_query(exchange: Exchange) -> ASGIApp | None:
    """Answer 400 to text that is not UTF-8, and 422 to a malformed page or event id."""
    refusal = _refusal(exchange.scope) if exchange.scope["type"] == "http" else None
    return None if refusal is None else JSONResponse({"detail": refusal[1]}, refusal[0])


def _refusal(scope: Scope) -> tuple[int, str] | None:
    """Return status and message if the request must be refused."""
    query = scope.get("query_string", b"")
    headers = [(name, value) for name, value in scope["headers"] if name in _TEXT_HEADERS]
    try:
        for _, value in (*headers, (b"", query)):
            value.decode()
    except UnicodeDecodeError:
        return 400, "The query and the header x-request-id must be UTF-8"
    for name, value in headers:
        if name == b"last-event-id" and value and not _EVENT_ID.fullmatch(value):
            return 422, "The header last-event-id must be an id that this server has sent"
    if b"limit" not in query and b"offset" not in query:
        return None
    for name, number in QueryParams(query).items():
        if name in ("limit", "offset") and not _is_page(number):
            expected = f"a whole number from 0 to {validation.MAX_PAGE}"
            return 422, f"`{name}` must be {expected}, not {number!r}"
    return None


def _is_page(number: str) -> bool:
    return number.isascii() and number.isdigit() and int(number[:11]) <= validation.MAX_PAGE
