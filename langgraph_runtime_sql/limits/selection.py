"""Selection: choose the runs that start next, within the limits on running runs.

Tenants of a higher priority come first. Among equals, the tenant with the fewest running runs for
its weight has the turn.
"""

import heapq
from collections import Counter, deque
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from langgraph_runtime_sql.limit_settings import Limits
from langgraph_runtime_sql.limits import members


class Candidate(NamedTuple):
    """A pending run that may start.

    Attributes:
        seq: Its number.
        tenant: Its tenant, or an empty text.
    """

    seq: int
    tenant: str
    user: str | None
    assistant: UUID
    created_at: datetime


class Selection:
    """The runs of one claim.

    Args:
        limits: The configured limits.
        running: The tenant, user and assistant of each running run.
        free: How many slots are free.
        unreserved: How many of these any tenant may take.
    """

    def __init__(
        self,
        limits: Limits,
        running: Iterable[tuple[str, str | None, UUID]],
        free: int,
        unreserved: int,
    ) -> None:
        self._limits = limits
        self._tenants: Counter[str] = Counter()
        self._users: Counter[tuple[str, str | None]] = Counter()
        self._assistants: Counter[tuple[str, UUID]] = Counter()
        self._taken: set[int] = set()
        self._lost: set[int] = set()
        self._free, self._unreserved = free, unreserved
        for tenant, user, assistant in running:
            self._count(tenant, user, assistant, 1)

    @property
    def is_full(self) -> bool:
        """Whether no slot is free."""
        return len(self._taken) >= self._free

    def may_start(self, tenant: str) -> bool:
        """Return whether another run of this tenant may start."""
        if self.is_full or (self._only_reserved_left() and self._tenants[tenant]):
            return False
        most = members.of_tenant(self._limits, tenant).running_runs
        return most is None or self._tenants[tenant] < most

    def exhausted_users(self, tenant: str) -> list[str]:
        """Return the users of a tenant who have as many running runs as they may."""
        return [
            user for of, user in self._users if of == tenant and user and self._is_out(of, user)
        ]

    def exhausted_assistants(self, tenant: str) -> list[str]:
        """Return the assistants of which a tenant has as many running runs as it may."""
        return [
            str(each) for of, each in self._assistants if of == tenant and self._is_used(of, each)
        ]

    def choose(self, candidates: Iterable[Candidate], most: int) -> list[Candidate]:
        """Choose the runs to start among candidates, and count them as running.

        Stops before the next turn of a tenant that may have more candidates.

        Args:
            candidates: Each tenant's in the order in which they start.
            most: How many candidates of each tenant there are at most.
        """
        waiting: dict[str, deque[Candidate]] = {}
        known: Counter[str] = Counter()
        for each in candidates:
            known[each.tenant] += 1
            if each.seq not in self._lost:
                waiting.setdefault(each.tenant, deque()).append(each)
        chosen: list[Candidate] = []
        turns = [turn for tenant in waiting if (turn := self._turn(waiting[tenant])) is not None]
        heapq.heapify(turns)
        while turns and not self.is_full:
            *_, tenant = heapq.heappop(turns)
            if not self.may_start(tenant):
                continue
            run = waiting[tenant].popleft()
            self._count(run.tenant, run.user, run.assistant, 1)
            self._taken.add(run.seq)
            chosen.append(run)
            if (turn := self._turn(waiting[tenant])) is not None:
                heapq.heappush(turns, turn)
            elif known[tenant] == most:
                break
        return chosen

    def lost(self, run: Candidate) -> None:
        """Note that a chosen run could not be started, and must not be chosen again."""
        self._count(run.tenant, run.user, run.assistant, -1)
        self._taken.discard(run.seq)
        self._lost.add(run.seq)

    def _turn(self, queue: deque[Candidate]) -> tuple[int, float, datetime, int, str] | None:
        """Return the sort key of a tenant's next run, without those beyond a limit."""
        while queue and (
            self._is_out(queue[0].tenant, queue[0].user)
            or self._is_used(queue[0].tenant, queue[0].assistant)
        ):
            queue.popleft()
        if not queue:
            return None
        run = queue[0]
        quota = members.of_tenant(self._limits, run.tenant)
        share = (self._tenants[run.tenant] + 1) / (quota.weight or 1)
        return -(quota.priority or 0), share, run.created_at, run.seq, run.tenant

    def _only_reserved_left(self) -> bool:
        return len(self._taken) >= self._unreserved

    def _is_out(self, tenant: str, user: str | None) -> bool:
        most = None if user is None else members.of_user(self._limits, user).running_runs
        return most is not None and self._users[tenant, user] >= most

    def _is_used(self, tenant: str, assistant: UUID) -> bool:
        most = members.of_assistant(self._limits, assistant).running_runs
        return most is not None and self._assistants[tenant, assistant] >= most

    def _count(self, tenant: str, user: str | None, assistant: UUID, runs: int) -> None:
        self._tenants[tenant] += runs
        self._users[tenant, user] += runs
        self._assistants[tenant, assistant] += runs
