"""Turns: choose the runs that a claim starts, with tenants in turn and within the limits.

The running runs of all processes count. On Postgres, a claim locks the counters of the tenants that
it chooses, in the order of their names, before it looks at their runs. So processes together never
exceed a limit and never wait in a circle, and claims for other tenants go on.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Integer, false, func, literal, select

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import RUNNING_LITERAL, runs, tenant_runs
from langgraph_runtime_sql.database.statements import Params, Prepared
from langgraph_runtime_sql.limit_settings import Limits
from langgraph_runtime_sql.limits.selection import Members, choose
from langgraph_runtime_sql.ops.runs import order

# A claim looks at a window of this many tenants for each free slot, and of at least this many.
TENANTS_EACH = 2
TENANTS_AT_LEAST = 32
# With only reserved slots free, it looks at this many times as many. Most of them may be busy.
TENANTS_RESTING = 8
# A claim looks at this many runs of each tenant, but not at more than slots are free.
RUNS_EACH = 20
# A claim looks at the tenants of this many runs that may start, and of one for each free slot.
OLDEST = 8
# So many windows in a row without a run that may start: the queue waits until something happens.
WINDOWS = 8


@dataclass(slots=True)
class TenantRotation:
    """The position of a process in the rotation of tenants.

    Attributes:
        reached: The tenant with which the next window begins.
        fruitless: How many claims in a row have started nothing.
    """

    reached: str = ""
    fruitless: int = 0

    def goes_on(self, started: int, unfinished: bool) -> bool:
        """Return whether the next claim comes at once.

        Args:
            started: How many runs the claim has started.
            unfinished: Whether another claim may start more.
        """
        self.fruitless = 0 if started or not unfinished else self.fruitless + 1
        if self.fruitless == WINDOWS:
            self.fruitless, unfinished = 0, False
        return unfinished


class Chosen(NamedTuple):
    """The choice of a claim.

    Attributes:
        numbers: The runs, in the order in which they start.
        unfinished: Whether tenants or runs remain that it has not looked at.
    """

    numbers: list[int]
    unfinished: bool


def _lock() -> Any:
    """Return the statement that locks the counters of `tenants`, and creates missing ones."""
    from sqlalchemy.dialects.postgresql import insert

    names = select(order.listed("tenants", "postgresql").c.value, literal(0, Integer))
    new = insert(tenant_runs).from_select(["tenant", "running"], names)
    # Locks the row although the condition is false.
    return new.on_conflict_do_update(index_elements=["tenant"], set_={"running": 0}, where=false())


_WAITING = {
    "sqlite": Prepared(lambda: order.waiting("sqlite")),
    "postgresql": Prepared(lambda: order.waiting("postgresql")),
}
_LOCK = Prepared(_lock)
_LOCKED = Prepared(order.locked)
_MEMBERS = Prepared(
    lambda: (
        select(
            order.tenant(runs).label("tenant"),
            runs.c.user_id,
            runs.c.assistant_id,
            func.count().label("runs"),
        )
        .where(runs.c.status == RUNNING_LITERAL)
        .group_by(order.tenant(runs), runs.c.user_id, runs.c.assistant_id)
    )
)


def choose_runs(
    conn: Connection,
    limits: Limits,
    values: Params,
    rotation: TenantRotation,
    *,
    free: int,
    unreserved: int,
) -> Chosen:
    """Choose the runs that a claim starts. Until the commit, no other claim starts runs of their tenants.

    Args:
        limits: The configured limits.
        values: The parameters of `order.may_start`.
        rotation: The position among the tenants, which the choice advances.
        free: How many slots are free.
        unreserved: How many of these any tenant may take.
    """
    among = max(TENANTS_AT_LEAST, TENANTS_EACH * free) * (1 if unreserved else TENANTS_RESTING)
    asked: dict[str, Any] = {
        **values,
        "among": among,
        "reached": rotation.reached,
        "oldest": max(OLDEST, free),
        "resting": int(not unreserved),
        # On Postgres, the first look only chooses the tenants.
        "each": 1 if conn.locks else min(RUNS_EACH, free),
    }
    running = _members(conn, limits)
    found = conn.fetchall(_WAITING[conn.dialect_name], {**asked, **running.out()})
    window = {row["place"]: row["tenant"] for row in found if row["place"] >= 0}
    is_full = len(window) == among
    # Beyond the last tenant, the next window begins anew.
    goes_on = is_full or rotation.reached != ""
    rotation.reached = window[max(window)] if is_full else ""
    choice = choose(limits, found, running, free, unreserved, asked["each"])
    if conn.locks and choice.runs:
        tenants = sorted({run["tenant"] for run in choice.runs})
        # Another claim may be faster with the tenants that fill the slots.
        goes_on = goes_on or len(tenants) == free
        most = max(RUNS_EACH, math.ceil(free / len(tenants)))
        asked |= {"tenants": tenants, "each": min(free, most)}
        conn.send(_LOCK, asked)
        running = _members(conn, limits)
        found = conn.fetchall(_LOCKED, {**asked, **running.out()})
        choice = choose(limits, found, running, free, unreserved, asked["each"])
    return Chosen([run["seq"] for run in choice.runs], goes_on or choice.stopped)


def _members(conn: Connection, limits: Limits) -> Members:
    """Count the running runs of users and assistants if there is a limit on them."""
    is_limited = limits.any_has("running_runs", scopes=("user", "assistant"))
    return Members(limits, conn.fetchall(_MEMBERS) if is_limited else ())
