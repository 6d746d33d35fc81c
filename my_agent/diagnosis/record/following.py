"""Following: wait for the next events of a session.

A writer in this process wakes the followers at once. Events of other processes are found by asking
the database every `POLL_SECONDS`, which each follower does in turn with the reading itself.
"""

import asyncio
import threading
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager

from my_agent.diagnosis.record import log
from my_agent.diagnosis.record.events import Event
from threadhold.tables import Transactions

POLL_SECONDS = 0.03
# A session without events for a while is asked less often by each of its followers.
IDLE_SECONDS, IDLE_AFTER = 0.25, 100
PAGE = 200

_Key = tuple[str, str]
_Waiter = tuple[asyncio.AbstractEventLoop, asyncio.Event]


class TooManyFollowers(RuntimeError):
    """The tenant follows as many sessions in this process as it may."""


_lock = threading.Lock()
_waiters: dict[_Key, set[_Waiter]] = defaultdict(set)
_counts: Counter[str] = Counter()


def wake(tenant: str, session: str) -> None:
    """Let the followers of a session in this process read. Call it after the commit."""
    with _lock:
        waiting = list(_waiters.get((tenant, session), ()))
    for loop, event in waiting:
        try:
            loop.call_soon_threadsafe(event.set)
        except RuntimeError:
            # The loop of an ended test or server is closed; nobody waits there any more.
            continue


async def follow(
    database: Transactions, tenant: str, session: str, after: int
) -> AsyncGenerator[list[Event], None]:
    """Yield the events after `after`, page by page, for ever; an empty list now and then.

    A page holds whole events in their order. The database gives each number only after the number
    before it was committed, so that no event can appear behind a later one.

    Args:
        database: the transactions on the graphs' tables.
        tenant: the tenant.
        session: the id of the session.
        after: the number of the last event that the follower knows.
    """
    with _registered(tenant, session) as woken:
        idle = 0
        while True:
            woken.clear()
            start = after
            found = await database.run(
                lambda conn: log.page(conn, tenant, session, after=start, count=PAGE),  # noqa: B023
                tenant,
            )
            yield found
            if found:
                after, idle = found[-1].seq, 0
                continue
            idle += 1
            pause = POLL_SECONDS if idle < IDLE_AFTER else IDLE_SECONDS
            try:
                await asyncio.wait_for(woken.wait(), pause)
            except TimeoutError:
                continue


@contextmanager
def counted(tenant: str, most: int) -> Iterator[None]:
    """Count a follower of a tenant until the end of the block.

    Raises:
        TooManyFollowers: the tenant has `most` followers in this process.
    """
    with _lock:
        if _counts[tenant] >= most:
            raise TooManyFollowers
        _counts[tenant] += 1
    try:
        yield
    finally:
        with _lock:
            _counts[tenant] -= 1


@contextmanager
def _registered(tenant: str, session: str) -> Iterator[asyncio.Event]:
    waiter = (asyncio.get_running_loop(), asyncio.Event())
    key = (tenant, session)
    with _lock:
        _waiters[key].add(waiter)
    try:
        yield waiter[1]
    finally:
        with _lock:
            _waiters[key].discard(waiter)
            if not _waiters[key]:
                del _waiters[key]
