"""Selection: choose the runs that start next, within the limits on running runs.

Tenants of a higher priority come first. Among equals, the tenant with the fewest running runs for
its weight has the turn.
"""

import heapq
import math
from collections import Counter, deque
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.limit_settings import Limits
from langgraph_runtime_sql.limits import members


class Members:
    """How many running runs the users and assistants of each tenant have.

    Args:
        limits: The configured limits.
        running: The number of running `runs` of each tenant, user and assistant.
    """

    def __init__(self, limits: Limits, running: Iterable[Row]) -> None:
        self._limits = limits
        self._users: Counter[tuple[str, str]] = Counter()
        self._assistants: Counter[tuple[str, UUID]] = Counter()
        for row in running:
            self.count(row, row["runs"])

    def count(self, run: Row, runs: int = 1) -> None:
        """Count more running runs of a run's user and assistant."""
        if run["user_id"]:
            self._users[run["tenant"], run["user_id"]] += runs
        self._assistants[run["tenant"], run["assistant_id"]] += runs

    def have_room(self, run: Row) -> bool:
        """Return whether a run of this user and assistant may start."""
        user, assistant = run["user_id"], run["assistant_id"]
        return not (
            (user and self._is_user_out(run["tenant"], user))
            or self._is_assistant_out(run["tenant"], assistant)
        )

    def out(self) -> dict[str, list[list[str]]]:
        """Return the users and the assistants without room, each with its tenant."""
        return {
            "users": [[of, user] for of, user in self._users if self._is_user_out(of, user)],
            "assistants": [
                [of, str(each)] for of, each in self._assistants if self._is_assistant_out(of, each)
            ],
        }

    def _is_user_out(self, tenant: str, user: str) -> bool:
        most = members.of_user(self._limits, user).running_runs
        return most is not None and self._users[tenant, user] >= most

    def _is_assistant_out(self, tenant: str, assistant: UUID) -> bool:
        most = members.of_assistant(self._limits, assistant).running_runs
        return most is not None and self._assistants[tenant, assistant] >= most


class Choice(NamedTuple):
    """The runs to start.

    Attributes:
        runs: The runs, in the order of their turns.
        stopped: Whether the choice stopped before the turn of a tenant that may have more runs.
    """

    runs: list[Row]
    stopped: bool


def choose(
    limits: Limits,
    waiting: Iterable[Row],
    running: Members,
    free: int,
    unreserved: int,
    each: int,
) -> Choice:
    """Choose the runs to start.

    Args:
        limits: The configured limits.
        waiting: Runs with their tenant and its number of `running` runs, each tenant's in the
            order in which they start. Rows without a run are passed over.
        running: The running runs of users and assistants, which gets the chosen runs.
        free: How many slots are free.
        unreserved: How many of these any tenant may take.
        each: A tenant with so many waiting runs may have more.
    """
    tenants: dict[str, int] = {}
    queues: dict[str, deque[Row]] = {}
    for run in waiting:
        if run["seq"] is not None:
            tenants[run["tenant"]] = run["running"]
            queues.setdefault(run["tenant"], deque()).append(run)
    long = {tenant for tenant, queue in queues.items() if len(queue) == each > 1}
    chosen: list[Row] = []

    def turn(tenant: str) -> tuple[int, float, datetime, int, str] | None:
        """Return the sort key of a tenant's next run, without those beyond a limit."""
        queue = queues[tenant]
        while queue and not running.have_room(queue[0]):
            queue.popleft()
        if not queue:
            return None
        of = members.of_tenant(limits, tenant)
        share = (tenants[tenant] + 1) / (of.weight or 1)
        return -(of.priority or 0), share, queue[0]["created_at"], queue[0]["seq"], tenant

    turns = [found for tenant in queues if (found := turn(tenant)) is not None]
    heapq.heapify(turns)
    while turns and len(chosen) < free:
        *_, tenant = heapq.heappop(turns)
        most = members.of_tenant(limits, tenant).running_runs or math.inf
        if tenants[tenant] >= most or (tenants[tenant] and len(chosen) >= unreserved):
            continue
        run = queues[tenant].popleft()
        tenants[tenant] += 1
        running.count(run)
        chosen.append(run)
        if (following := turn(tenant)) is not None:
            heapq.heappush(turns, following)
        elif tenant in long:
            return Choice(chosen, stopped=True)
    return Choice(chosen, stopped=False)
