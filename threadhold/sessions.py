"""Sessions: end requests and streams when their token expires or is revoked.

The project's `authenticate` handler calls `begin` with the ASGI scope, the token's end and its
`Target`s. From then on the platform closes the request, its stream or its WebSocket at that time,
and `CHECK_SECONDS` after a revocation at the latest. Each command of a WebSocket is checked.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Collection, Mapping, MutableMapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from langgraph_runtime_sql.errors import RuntimeSqlError
from langgraph_runtime_sql.ops import revocations
from langgraph_runtime_sql.ops.revocations import Target
from langgraph_runtime_sql.periodic import periodic

__all__ = [
    "CHECK_SECONDS",
    "Session",
    "Target",
    "begin",
    "is_revoked",
    "lift",
    "listed",
    "revoke",
    "watching",
]

logger = logging.getLogger(__name__)

CHECK_SECONDS = 5.0
"""Time after which a process looks again whether something is revoked."""

EXPIRED = "The token has expired"
REVOKED = "The token is revoked"

_SCOPE_KEY = "threadhold.session"
# Keys that a process remembers.
_MAX_KNOWN = 20_000
# A timer of the event loop takes no date in the year 9999.
_MAX_TIMER = 86_400.0


class Session:
    """A request, stream or WebSocket that may end before it is complete.

    Args:
        limit: Cancels its task. None: a host's own route asks `is_over` itself.

    Attributes:
        ended: The reason why it was ended, or None.
    """

    def __init__(self, limit: asyncio.Timeout | None = None) -> None:
        self.ended: str | None = None
        self._limit = limit
        self._expires_at = float("inf")
        self._targets: tuple[Target, ...] = ()

    @property
    def keys(self) -> frozenset[str]:
        """The keys of the revocations that end it."""
        return frozenset(target.key for target in self._targets)

    def begin(self, expires_at: float, targets: Collection[Target]) -> None:
        """End this session at a time, in seconds since 1970, or when a target is revoked."""
        self._expires_at, self._targets = expires_at, tuple(targets)
        if self._limit is not None:
            self._set_timer(self._limit)
            # Not earlier: requests of graphs to their own server may run in other threads.
            _open.add(self)

    def take_over(self, scope: MutableMapping[str, Any]) -> None:
        """Become the session of a request, and end when the one that a host's own route began ends."""
        if (earlier := of(scope)) is not None and earlier._targets:
            self.begin(earlier._expires_at, earlier._targets)
        scope[_SCOPE_KEY] = self

    def _set_timer(self, limit: asyncio.Timeout) -> None:
        left = min(self._expires_at - time.time(), _MAX_TIMER)
        limit.reschedule(asyncio.get_running_loop().time() + left)

    def check(self, revoked: Collection[str]) -> None:
        """End this session if it has expired, or one of its keys is among the revoked ones."""
        if time.time() >= self._expires_at:
            self.end(EXPIRED)
        elif not self.keys.isdisjoint(revoked):
            self.end(REVOKED)
        elif (
            self._limit is not None
            and not self._limit.expired()
            and self._expires_at < float("inf")
        ):
            # The clock may have been set.
            self._set_timer(self._limit)

    def end(self, reason: str) -> None:
        """End this session now. Its task is cancelled."""
        if self.ended is not None or (self._limit is not None and self._limit.expired()):
            return
        self.ended = reason
        if self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time())

    def close(self) -> None:
        """Note that its request has been answered."""
        _open.discard(self)

    async def is_over(self) -> bool:
        """Return whether it has ended, after looking for revocations."""
        if time.time() >= self._expires_at:
            self.end(EXPIRED)
        elif await is_revoked(self._targets):
            self.end(REVOKED)
        return self.ended is not None


_open: set[Session] = set()
# By key: until when the answer is used, by `time.monotonic`, and the answer.
_known: dict[str, tuple[float, bool]] = {}
# The look-ups under way. Requests with the same token share one of their loop, because a burst of them
# would make all others wait for the database.
_under_way: dict[tuple[asyncio.AbstractEventLoop, frozenset[str]], asyncio.Task[set[str]]] = {}
# How often the answers were forgotten: a look-up that began earlier must not be remembered.
_forgotten = 0


def begin(scope: Mapping[str, Any], *, expires_at: float, targets: Collection[Target]) -> None:
    """End the request of an ASGI scope when its token expires or is revoked.

    Without the platform around the request, this function does nothing.

    Args:
        scope: The ASGI scope that an `authenticate` handler gets.
        expires_at: The end of the token, in seconds since 1970.
        targets: What is revoked with this token: the token, and its user.
    """
    session = scope.get(_SCOPE_KEY)
    if isinstance(session, Session):
        session.begin(expires_at, targets)


def prepare(scope: MutableMapping[str, Any]) -> None:
    """Let `begin` note the end of a request that a host's own route answers."""
    scope.setdefault(_SCOPE_KEY, Session())


def of(scope: Mapping[str, Any]) -> Session | None:
    """Return the session of a request, or None."""
    session = scope.get(_SCOPE_KEY)
    return session if isinstance(session, Session) else None


async def is_revoked(targets: Collection[Target]) -> bool:
    """Return whether one of the targets is revoked. The answer may be `CHECK_SECONDS` old."""
    keys = {target.key for target in targets}
    now = time.monotonic()
    answers = {key: _known[key][1] for key in keys if _known.get(key, (0.0, False))[0] > now}
    if missing := keys - answers.keys():
        found = await _look_up_together(frozenset(missing))
        answers |= {key: key in found for key in missing}
    return any(answers.values())


async def _look_up_together(keys: frozenset[str]) -> set[str]:
    place = asyncio.get_running_loop(), keys
    task = _under_way.get(place)
    if task is None:
        task = _under_way[place] = asyncio.create_task(_look_up(keys))
        task.add_done_callback(partial(_finish, place))
    # The others go on if this request is cancelled.
    return await asyncio.shield(task)


def _finish(
    place: tuple[asyncio.AbstractEventLoop, frozenset[str]], task: asyncio.Task[set[str]]
) -> None:
    if _under_way.get(place) is task:
        del _under_way[place]
    if not task.cancelled():
        # Mark it as retrieved: all requests may have been cancelled.
        task.exception()


async def _look_up(keys: Collection[str]) -> set[str]:
    until, forgotten = time.monotonic() + CHECK_SECONDS, _forgotten
    found = await revocations.find(keys)
    if forgotten == _forgotten:
        if len(_known) + len(keys) > _MAX_KNOWN:
            _known.clear()
        _known.update({key: (until, key in found) for key in keys})
    return found


def _forget() -> None:
    """Forget all answers, also those that are on their way."""
    global _forgotten
    _forgotten += 1
    _known.clear()
    _under_way.clear()


async def revoke(
    target: Target,
    *,
    seconds: float | None = None,
    reason: str | None = None,
    owner: Mapping[str, Any] | None = None,
) -> int:
    """Revoke a token or a user, and end the sessions of this process at once.

    Args:
        target: The token or the user.
        seconds: The time for which it is refused; None has no end.
        reason: Note for operators.
        owner: The metadata of the crons to disable.

    Returns:
        The number of crons that were disabled.
    """
    disabled = await revocations.revoke(target, seconds=seconds, reason=reason, owner=owner)
    _forget()
    for session in list(_open):
        session.check({target.key})
    return disabled


async def lift(target: Target) -> bool:
    """Remove a revocation, and return whether there was one. Crons stay disabled."""
    found = await revocations.lift(target)
    _forget()
    return found


async def listed() -> list[dict[str, Any]]:
    """Return the revocations in force, newest first, at most 1000."""
    return [dict(row) for row in await revocations.listed()]


@asynccontextmanager
async def watching() -> AsyncIterator[None]:
    """End open sessions that expire or are revoked, within the block."""
    _forget()
    watch = periodic(_check_all, CHECK_SECONDS, "Sessions not checked", "sessions_failed")
    task = asyncio.create_task(watch, name="sessions")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _check_all() -> None:
    keys = frozenset[str]().union(*(session.keys for session in list(_open)))
    try:
        revoked = await _look_up(keys) if keys else set[str]()
    except RuntimeSqlError as error:
        # Requests are refused meanwhile, and the next look finds what this one missed.
        logger.warning("Revocations could not be read", exc_info=error)
        revoked = set[str]()
    for session in list(_open):
        session.check(revoked)
