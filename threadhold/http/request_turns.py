"""Request turns: requests of several tenants take turns on the event loop.

A request takes its turn before its authentication, which is a large part of a small request. So its
tenant is not known yet. The server remembers the tenants of the credentials that it has seen. Requests
with other credentials take the turns of their address, one credential after the other.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

from starlette.types import Message, Scope

from langgraph_runtime_sql import pacing, process
from langgraph_runtime_sql.tenancy import tenants
from threadhold.http.layers import Exchange

# The expected time of a small request on the loop, in milliseconds.
REQUEST_MS = 1.0
REMEMBERED = 10_000
_TAKEN = "threadhold.turn_taken"
_CREDENTIALS = (b"authorization", b"cookie")
# Authentication handlers may read any header. Those of proxies and traces differ in each request.
_CUSTOM, _NOT_CUSTOM = b"x-", (b"x-request-id", b"x-forwarded-", b"x-real-ip", b"x-b3-")


class RequestTurns:
    """Let each request wait for its turn, once.

    Without `sql.tenant_key`, each user is a tenant.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[int, Hashable] = OrderedDict()

    async def __call__(self, exchange: Exchange) -> None:
        scope = exchange.scope
        if _TAKEN in scope:
            return
        scope[_TAKEN] = True
        credentials = _credentials(scope)
        group = self._known.get(credentials)
        if group is None:
            group = ("address", (scope.get("client") or ("",))[0])
        await pacing.turn(group, credentials, REQUEST_MS)

        async def remember(message: Message) -> None:
            if message["type"].endswith((".start", ".accept")):
                self._remember(credentials, scope.get("user"))

        exchange.at_start(remember)

    def _remember(self, credentials: int, user: Any) -> None:
        identity = getattr(user, "identity", None)
        if not identity:
            return
        # Now, because a server is put together before the platform starts.
        tenant = tenants.of_user(user, process.configuration().options.tenant_key)
        self._known[credentials] = ("user", identity) if tenant is None else tenant
        self._known.move_to_end(credentials)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


def _credentials(scope: Scope) -> int:
    """Return a hash of what may tell the user of a request."""
    return hash(
        tuple(
            (name, value)
            for name, value in scope["headers"]
            if name in _CREDENTIALS
            or (name.startswith(_CUSTOM) and not name.startswith(_NOT_CUSTOM))
        )
    )
