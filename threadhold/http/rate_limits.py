"""Rate limits: requests a second and open streams, in this process.

Each process counts for itself, because a count in the database would cost more than most requests.
"""

import time
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Scope
from starlette.websockets import WebSocketClose

from langgraph_runtime_sql.errors import LimitReached
from langgraph_runtime_sql.limit_settings import Limits, Quota
from langgraph_runtime_sql.limits import members
from langgraph_runtime_sql.limits.refusals import refuse
from langgraph_runtime_sql.tenancy import tenants
from threadhold.http.error_handlers import limit_reached
from threadhold.http.layers import Exchange, Step

# The members whose use is remembered. One that was idle for a second needs no memory.
REMEMBERED = 10_000
STREAM_SECONDS = 5.0
# Routes whose answer ends with a run or a client.
_OPEN = ("/stream", "/wait", "/join", "/stream/events")
# Closes a WebSocket that may be opened again later.
_TRY_AGAIN_LATER = 1013

_TOO_MANY_STREAMS = "Close some of them, or try again later."

Member = tuple[str, str]
"""A scope, and the tenant, user or thread."""


class RateLimits:
    """What the members of a process use now."""

    def __init__(self, limits: Limits, tenant_key: str | None) -> None:
        self._limits, self._tenant_key = limits, tenant_key
        # Until when the requests so far use up the limit, on the clock `time.monotonic`.
        self._until: OrderedDict[Member, float] = OrderedDict()
        self._open: Counter[Member] = Counter()

    def check_request(self, user: Any) -> None:
        """Count a request.

        Raises:
            LimitReached: it is one too many.
        """
        now = time.monotonic()
        after: dict[Member, float] = {}
        for member, quota in self._members(user):
            if (most := quota.requests_per_second) is None:
                continue
            until = max(self._until.get(member, 0.0), now) + 1 / most
            # At least one request, also where a second allows less.
            if until - now > max(1.0, 1 / most) + 1e-9:
                seconds = until - now - 1.0
                raise refuse(member[0], "requests_per_second", most, "requests a second", seconds)
            after[member] = until
        for member, until in after.items():
            self._until[member] = until
            self._until.move_to_end(member)
        while len(self._until) > REMEMBERED:
            self._until.popitem(last=False)

    @contextmanager
    def stream(self, user: Any, thread: str | None) -> Iterator[None]:
        """Count a stream as open within the block.

        Args:
            user: The user.
            thread: The thread that the path names, if it names one.

        Raises:
            LimitReached: it is one too many.
        """
        counted = []
        for member, quota in self._followers(user, thread):
            if (most := quota.open_streams) is not None:
                if self._open.get(member, 0) >= most:
                    scope, seconds = member[0], STREAM_SECONDS
                    what, advice = "open streams", _TOO_MANY_STREAMS
                    raise refuse(scope, "open_streams", most, what, seconds, advice)
                counted.append(member)
        self._open.update(counted)
        try:
            yield
        finally:
            self._open.subtract(counted)
            for member in counted:
                if not self._open[member]:
                    del self._open[member]

    def _followers(self, user: Any, thread: str | None) -> Iterator[tuple[Member, Quota]]:
        """Yield what a stream counts for, the smallest first."""
        if thread is not None:
            # A tenant that only knows the id does not use up the streams of the thread's own.
            place = f"{tenants.of_user(user, self._tenant_key) or ''}\0{thread.lower()}"
            yield ("thread", place), members.of_thread(self._limits)
        yield from self._members(user)
        yield ("process", ""), members.of_process(self._limits)

    def _members(self, user: Any) -> Iterator[tuple[Member, Quota]]:
        tenant = tenants.of_user(user, self._tenant_key)
        yield ("tenant", tenant or ""), members.of_tenant(self._limits, tenant)
        identity = getattr(user, "identity", None)
        if identity:
            yield ("user", f"{tenant or ''}\0{identity}"), members.of_user(self._limits, identity)


class RateLimit:
    """Answer 429 to a request beyond its user's limits.

    Args:
        opens: Whether the answer ends with a run or a client, so that it counts as a stream.
    """

    def __init__(self, *, opens: bool) -> None:
        self._opens = opens

    async def __call__(self, exchange: Exchange) -> ASGIApp | None:
        scope = exchange.scope
        user = scope.get("user")
        try:
            count(scope, user)
            if self._opens or scope["type"] == "websocket":
                thread = scope.get("path_params", {}).get("thread_id")
                exchange.enter(stream(user, thread))
        except LimitReached as error:
            return await _refusal(scope, error)
        return None


async def _refusal(scope: Scope, error: LimitReached) -> Response | WebSocketClose:
    if scope["type"] == "websocket":
        return WebSocketClose(_TRY_AGAIN_LATER, error.detail[:120])
    return await limit_reached(Request(scope), error)


_COUNTED = "threadhold.counted"
_here: RateLimits | None = None
"""Those of this process; there is one platform."""


def count(scope: Scope, user: Any) -> None:
    """Count a request once, also where several layers count it.

    Raises:
        LimitReached: it is one too many for its user.
    """
    if _here is not None and _COUNTED not in scope:
        _here.check_request(user)
        scope[_COUNTED] = True


def stream(user: Any, thread: str | None) -> AbstractContextManager[None]:
    """Count a stream as open within the block. The arguments are those of `RateLimits.stream`."""
    return nullcontext() if _here is None else _here.stream(user, thread)


def install(limits: Limits, tenant_key: str | None) -> None:
    """Begin to count in this process, if there is a limit on requests or streams."""
    global _here
    if limits.any_has("requests_per_second", "open_streams"):
        _here = RateLimits(limits, tenant_key)


def steps(path: str) -> list[Step]:
    """Return the steps of a route, or none without a limit."""
    return [] if _here is None else [RateLimit(opens=path.endswith(_OPEN))]
