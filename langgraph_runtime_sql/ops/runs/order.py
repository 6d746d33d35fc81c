"""Order: which runs may start, and in which order.

On each thread, only the oldest pending run may start, and only while no run is in progress.
Runs start in the order of their creation. If more runs are due than slots are free, tenants take
turns: the tenant with the fewest running runs comes first, and of its runs those of the highest
priority, oldest first. So no tenant waits for the backlog of another.

Some slots are reserved for tenants without a running run. Otherwise one tenant could hold all slots
for as long as its runs take, and another would wait for them.

To bound the cost, a claim considers a limited number of tenants. The next claim continues after
them by name, and wraps around after the last. No tenant starves: the rotation reaches each of
them again, and new runs are never older than waiting ones.
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy import (
    CTE,
    Integer,
    Text,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal_column,
    or_,
    select,
    true,
)
from sqlalchemy.sql import ColumnElement, FromClause, Select

from langgraph_runtime_sql.database.schema import PENDING_LITERAL, RUNNING_LITERAL, runs

# A claim considers this many tenants for each free slot, and at least this many.
TENANTS_EACH = 4
TENANTS_AT_LEAST = 32
# With only reserved slots free, a claim considers this many times as many tenants.
TENANTS_RESTING = 8

_Condition = Callable[[ColumnElement[Any]], ColumnElement[bool]]


def tenant(of: FromClause) -> ColumnElement[Any]:
    """Return the expression of the indexes: `tables.TENANT`."""
    return case((of.c.tenant.is_(None), literal_column("''", Text)), else_=of.c.tenant)


def may_start(candidate: FromClause) -> ColumnElement[bool]:
    """Return the condition for a due run that may start.

    Checks for running threads first: a thread with a long backlog and a running run is skipped
    without a comparison of its pending runs.
    """
    running, earlier = runs.alias("running"), runs.alias("earlier")
    return and_(
        candidate.c.status == PENDING_LITERAL,
        candidate.c.created_at <= bindparam("now"),
        candidate.c.created_at >= bindparam("since"),
        # Not correlated, so that the database evaluates it once.
        candidate.c.thread_id.not_in(
            select(running.c.thread_id).where(running.c.status == RUNNING_LITERAL)
        ),
        ~select(earlier.c.seq)
        .where(
            earlier.c.thread_id == candidate.c.thread_id,
            earlier.c.status == PENDING_LITERAL,
            _is_before(earlier, candidate),
        )
        .exists(),
        _not_suspect(candidate) | _first_suspect(candidate),
    )


def _is_before(one: FromClause, other: FromClause) -> ColumnElement[bool]:
    return (one.c.created_at < other.c.created_at) | and_(
        one.c.created_at == other.c.created_at, one.c.seq < other.c.seq
    )


def _not_suspect(candidate: FromClause) -> ColumnElement[bool]:
    """Return the condition for a run with more than one attempt left."""
    return candidate.c.attempt != bindparam("last")


def _first_suspect(candidate: FromClause) -> ColumnElement[bool]:
    """Return the condition for the oldest run on its last attempt, while no other one has begun.

    A run that ends its process also ends the attempts of the runs beside it. If they always
    started together, all of them would use up their attempts.
    """
    running, older = runs.alias("other"), runs.alias("older")
    return and_(
        ~select(running.c.seq)
        .where(
            running.c.status == RUNNING_LITERAL,
            running.c.attempt > bindparam("last"),
            running.c.updated_at > bindparam("apart"),
        )
        .exists(),
        ~select(older.c.seq)
        .where(
            older.c.status == PENDING_LITERAL,
            older.c.attempt == bindparam("last"),
            _is_before(older, candidate),
        )
        .exists(),
    )


def order(candidate: FromClause) -> tuple[ColumnElement[Any], ...]:
    """Return the order of a tenant's runs, which is that of its index."""
    return candidate.c.priority.desc(), candidate.c.created_at, candidate.c.seq


def oldest() -> Select[Any]:
    """Select the numbers of the runs that may start, oldest first."""
    return select(runs.c.seq).where(may_start(runs)).order_by(runs.c.created_at, runs.c.seq)


def fairest() -> Select[Any]:
    """Select the number of the run that starts next if tenants take turns.

    With `resting`, only a tenant without running runs has a turn.
    """
    waiting, busy = _waiting(), _busy()
    candidate, head = runs.alias("candidate"), runs.alias("head")
    first = (
        select(candidate.c.seq)
        .where(tenant(candidate) == waiting.c.tenant, may_start(candidate))
        .order_by(*order(candidate))
        .limit(1)
        .correlate(waiting)
        .scalar_subquery()
    )
    return (
        select(head.c.seq)
        .select_from(
            waiting.join(head, head.c.seq == first).outerjoin(
                busy, busy.c.tenant == waiting.c.tenant
            )
        )
        .where(or_(bindparam("resting", type_=Integer) == 0, busy.c.runs.is_(None)))
        .order_by(func.coalesce(busy.c.runs, 0), head.c.created_at, head.c.seq)
        .limit(1)
    )


def fairest_together() -> Select[Any]:
    """Select and lock the numbers of the `limit` runs that start next if tenants take turns.

    After the first `unreserved` of them, only first runs of tenants without running runs are
    selected. Skips rows that another process has locked, so the result may be shorter.
    """
    waiting, busy = _waiting(), _busy()
    candidate = runs.alias("candidate")
    sorting = order(candidate)
    each = (
        select(
            candidate.c.created_at,
            candidate.c.seq,
            func.row_number().over(order_by=sorting).label("turn"),
        )
        .where(tenant(candidate) == waiting.c.tenant, may_start(candidate))
        .order_by(*sorting)
        .limit(bindparam("limit"))
        .lateral("each")
    )
    turn = func.coalesce(busy.c.runs, 0) + each.c.turn
    turns = turn, each.c.created_at, each.c.seq
    first = (
        select(
            each.c.seq,
            turn.label("turn"),
            func.row_number().over(order_by=turns).label("place"),
        )
        .select_from(waiting.join(each, true()).outerjoin(busy, busy.c.tenant == waiting.c.tenant))
        .order_by(*turns)
        .limit(bindparam("limit"))
        .cte("first")
    )
    chosen = select(first.c.seq).where(
        or_(first.c.place <= bindparam("unreserved", type_=Integer), first.c.turn == 1)
    )
    return (
        select(runs.c.seq)
        .where(runs.c.seq.in_(chosen), runs.c.status == PENDING_LITERAL)
        .with_for_update(skip_locked=True, of=runs)
    )


def tenants() -> Select[Any]:
    """Select the `among` tenants of a claim, in their order, after the tenant `reached`."""
    waiting = _waiting()
    return select(waiting.c.tenant).order_by(waiting.c.place)


def _waiting() -> CTE:
    """Select these tenants, with one index lookup for each."""
    reached, among = bindparam("reached", type_=Text), bindparam("among", type_=Integer)
    ahead = _walk("ahead", lambda name: name > reached, 0)
    behind = _walk("behind", lambda name: name <= reached, among)
    return (
        select(ahead.c.tenant, ahead.c.place)
        .where(ahead.c.tenant.is_not(None))
        .union_all(select(behind.c.tenant, behind.c.place).where(behind.c.tenant.is_not(None)))
        .limit(among)
        .cte("waiting")
    )


def _walk(name: str, where: _Condition, start: ColumnElement[int] | int) -> CTE:
    """Select up to `among` tenants with pending runs that satisfy `where`, then None."""
    first = select(func.min(tenant(runs))).where(
        runs.c.status == PENDING_LITERAL, where(tenant(runs))
    )
    place = cast(start, Integer)
    found = select(first.scalar_subquery().label("tenant"), place.label("place")).cte(
        name, recursive=True
    )
    other = runs.alias("next")
    following = (
        select(func.min(tenant(other)))
        .where(
            other.c.status == PENDING_LITERAL,
            tenant(other) > found.c.tenant,
            where(tenant(other)),
        )
        .correlate(found)
        .scalar_subquery()
    )
    more = found.c.place + 1 < place + bindparam("among", type_=Integer)
    return found.union_all(
        select(following, found.c.place + 1).where(found.c.tenant.is_not(None), more)
    )


def _busy() -> CTE:
    """Select the number of running runs of each tenant."""
    of = tenant(runs)
    return (
        select(of.label("tenant"), func.count().label("runs"))
        .where(runs.c.status == RUNNING_LITERAL)
        .group_by(of)
        .cte("busy")
    )
