"""Pacing: share an event loop among tenants.

A tenant may cause any amount of work on the loop, by requests and by the events of its streams. Each
piece takes a turn first. The pieces that run in one iteration of the loop take about `BUDGET`
milliseconds; the others wait. So the work of one tenant makes each iteration a little longer for all
others, however much of it there is.
"""

import asyncio
from collections import deque
from collections.abc import Hashable
from weakref import WeakKeyDictionary

# Milliseconds. A request takes some ten iterations, and a run some hundred.
BUDGET = 1.0

_Turn = tuple[asyncio.Future[None], float]

_pacers: WeakKeyDictionary[asyncio.AbstractEventLoop, "Pacer"] = WeakKeyDictionary()


class Pacer:
    """The turns of one event loop. Its methods belong to the loop.

    Args:
        loop: The event loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._spent = 0.0
        self._is_scheduled = False
        # What waits, by group and member. Both take turns: the next one is the first.
        self._waiting: dict[Hashable, dict[Hashable, deque[_Turn]]] = {}

    def take(self, cost: float) -> bool:
        """Take a turn if no task waits for one and the iteration has time left. Return whether it did.

        Args:
            cost: The expected time of the work, in milliseconds.
        """
        if self._waiting or self._spent >= BUDGET:
            return False
        self._spend(cost)
        return True

    async def turn(self, group: Hashable, member: Hashable, cost: float) -> None:
        """Wait for a turn.

        Args:
            group: The tenant whose work it is. Groups take turns.
            member: A part of the group, as a user. The members of a group take its turns in turn.
            cost: The expected time of the work, in milliseconds.
        """
        if self.take(cost):
            return
        future: asyncio.Future[None] = self._loop.create_future()
        members = self._waiting.setdefault(group, {})
        members.setdefault(member, deque()).append((future, cost))
        self._schedule()
        await future

    def _spend(self, cost: float) -> None:
        self._spent += cost
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        """Give the turns of the next iteration."""
        # A piece that costs more than an iteration's budget is worked off in several.
        self._is_scheduled, self._spent = False, max(0.0, self._spent - BUDGET)
        if self._spent:
            self._schedule()
        while self._waiting and self._spent < BUDGET:
            future, cost = self._next()
            if not future.done():
                future.set_result(None)
                self._spend(cost)

    def _next(self) -> _Turn:
        """Remove the next turn. Its group and member are the last ones then."""
        group = next(iter(self._waiting))
        members = self._waiting.pop(group)
        member = next(iter(members))
        queue = members.pop(member)
        found = queue.popleft()
        if queue:
            members[member] = queue
        if members:
            self._waiting[group] = members
        return found


def of(loop: asyncio.AbstractEventLoop) -> Pacer:
    """Return the pacer of an event loop."""
    found = _pacers.get(loop)
    if found is None:
        found = _pacers[loop] = Pacer(loop)
    return found


async def turn(group: Hashable, member: Hashable, cost: float) -> None:
    """Wait for a turn of the running loop. Arguments: `Pacer.turn`."""
    await of(asyncio.get_running_loop()).turn(group, member, cost)
