"""Access log: one line for each request, also for the host's own routes."""

import logging
import time
from urllib.parse import quote

from starlette.types import Scope

from langgraph_runtime_sql import process
from langgraph_runtime_sql.audit import recorder
from langgraph_runtime_sql.tenancy import tenants
from threadhold.http import route_names
from threadhold.http.layers import Exchange

LOGGER = "threadhold.access"
# Monitoring requests these every few seconds.
PROBES = ("/health", "/ok", "/metrics")

_logger = logging.getLogger(LOGGER)


async def access_log(exchange: Exchange) -> None:
    """Log method, route, status, duration (ms), tenant and user of a request."""
    scope, started = exchange.scope, time.monotonic()
    # The router changes them.
    path, root = scope["path"], str(scope.get("root_path", ""))

    def write() -> None:
        level = logging.DEBUG if path in PROBES else logging.INFO
        if exchange.status >= 500:
            level = logging.ERROR
        if not _logger.isEnabledFor(level):
            return
        fields = {
            "method": scope.get("method", "WEBSOCKET"),
            "path": route_names.shown(scope, root),
            # 0: the client disconnected before the answer.
            "status": exchange.status,
            "ms": round((time.monotonic() - started) * 1000, 1),
        }
        fields |= _caller(scope)
        if detail := scope.get("error_detail"):
            fields["detail"] = detail
        _logger.log(level, "request", extra={"request": fields})

    exchange.after(write)


def _caller(scope: Scope) -> dict[str, str]:
    """Return the user and the tenant of an authenticated request."""
    user = scope.get("user")
    if user is None or (identity := recorder.identity_of(user)) is None:
        return {}
    tenant = tenants.of_user(user, process.configuration().options.tenant_key)
    named = {"tenant": tenant, "user": identity}
    return {name: _printable(value) for name, value in named.items() if value is not None}


def _printable(text: str) -> str:
    # A line break in a name cannot forge a line.
    return "".join(each if each.isprintable() else quote(each) for each in text)
