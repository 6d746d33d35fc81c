"""Order: which runs may start, and which of them are first.

The oldest are, of those whose thread has none before them. Where more are due than there is
room for, tenants take turns: first comes whoever has the fewest in flight, so that nobody
waits for the whole backlog of somebody else. A tenant alone has all the room there is.

A claim chooses among so many tenants and no more, however many are waiting; the next one among
those that come after them by name, and after the last come the first again. Nobody is passed
over for ever: each is among them time and again, and loses only to who has fewer runs in flight
or an older one, and of older ones there are no new ones.
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
    select,
    true,
)
from sqlalchemy.sql import ColumnElement, FromClause, Select

from langgraph_runtime_sql.database.schema import PENDING_LITERAL, RUNNING_LITERAL, runs

# Tenants that a claim chooses among: so many for each run, and no fewer than these.
TENANTS_EACH = 4
TENANTS_AT_LEAST = 32

_Condition = Callable[[ColumnElement[Any]], ColumnElement[bool]]


def _tenant(of: FromClause) -> ColumnElement[Any]:
    """As the indexes have it: `tables.TENANT`."""
    return case((of.c.tenant.is_(None), literal_column("''", Text)), else_=of.c.tenant)


def _may_start(candidate: FromClause) -> ColumnElement[bool]:
    """Conditions on a run that is due since a date: its thread has none before it.

    One at a time, or in one statement: as soon as it runs, those behind it on its thread are
    passed over without a look at each other, of which there would be thousands.
    """
    running, earlier = runs.alias("running"), runs.alias("earlier")
    return and_(
        candidate.c.status == PENDING_LITERAL,
        candidate.c.created_at <= bindparam("moment"),
        candidate.c.created_at >= bindparam("since"),
        # A list, not a correlated query: it is made once, however many runs are waiting.
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
    """Runs with more than one attempt left: none of them is known to be a danger to others."""
    return candidate.c.attempt != bindparam("last")


def _first_suspect(candidate: FromClause) -> ColumnElement[bool]:
    """The oldest run on its last attempt, unless another has just begun its own.

    A run that kills its process takes the others down with it. Were all of them
    started together each time, they would all use up their attempts.
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


def oldest() -> Select[Any]:
    """The runs that may start, by their numbers, in the order they were made."""
    return select(runs.c.seq).where(_may_start(runs)).order_by(runs.c.created_at, runs.c.seq)


def fairest() -> Select[Any]:
    """The run that may start first where tenants take turns, by its number."""
    waiting, busy = _waiting(), _busy()
    candidate, head = runs.alias("candidate"), runs.alias("head")
    first = (
        select(candidate.c.seq)
        .where(_tenant(candidate) == waiting.c.tenant, _may_start(candidate))
        .order_by(candidate.c.created_at, candidate.c.seq)
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
        .order_by(func.coalesce(busy.c.runs, 0), head.c.created_at, head.c.seq)
        .limit(1)
    )


def fairest_together() -> Select[Any]:
    """The `most` runs that may start first where tenants take turns, locked, by their numbers.

    What another process is about to take is passed over, so they may be fewer.
    """
    waiting, busy = _waiting(), _busy()
    candidate = runs.alias("candidate")
    order = candidate.c.created_at, candidate.c.seq
    each = (
        select(*order, func.row_number().over(order_by=order).label("turn"))
        .where(_tenant(candidate) == waiting.c.tenant, _may_start(candidate))
        .order_by(*order)
        .limit(bindparam("most"))
        .lateral("each")
    )
    turn = func.coalesce(busy.c.runs, 0) + each.c.turn
    first = (
        select(each.c.seq)
        .select_from(waiting.join(each, true()).outerjoin(busy, busy.c.tenant == waiting.c.tenant))
        .order_by(turn, each.c.created_at, each.c.seq)
        .limit(bindparam("most"))
        .cte("first")
    )
    return (
        select(runs.c.seq)
        .where(runs.c.seq.in_(select(first.c.seq)), runs.c.status == PENDING_LITERAL)
        .with_for_update(skip_locked=True, of=runs)
    )


def tenants() -> Select[Any]:
    """The tenants of a claim, in their order: up to `among`, from behind the one named `reached`."""
    waiting = _waiting()
    return select(waiting.c.tenant).order_by(waiting.c.place)


def _waiting() -> CTE:
    """These tenants, at the price of one look into an index for each."""
    reached, among = bindparam("reached", type_=Text), bindparam("among", type_=Integer)
    ahead = _walk("ahead", lambda tenant: tenant > reached, 0)
    behind = _walk("behind", lambda tenant: tenant <= reached, among)
    return (
        select(ahead.c.tenant, ahead.c.place)
        .where(ahead.c.tenant.is_not(None))
        .union_all(select(behind.c.tenant, behind.c.place).where(behind.c.tenant.is_not(None)))
        .limit(among)
        .cte("waiting")
    )


def _walk(name: str, where: _Condition, start: ColumnElement[int] | int) -> CTE:
    """Up to `among` tenants with waiting runs, and None at the end, from the first that fits on."""
    first = select(func.min(_tenant(runs))).where(
        runs.c.status == PENDING_LITERAL, where(_tenant(runs))
    )
    place = cast(start, Integer)
    found = select(first.scalar_subquery().label("tenant"), place.label("place")).cte(
        name, recursive=True
    )
    other = runs.alias("next")
    following = (
        select(func.min(_tenant(other)))
        .where(
            other.c.status == PENDING_LITERAL,
            _tenant(other) > found.c.tenant,
            where(_tenant(other)),
        )
        .correlate(found)
        .scalar_subquery()
    )
    more = found.c.place + 1 < place + bindparam("among", type_=Integer)
    return found.union_all(
        select(following, found.c.place + 1).where(found.c.tenant.is_not(None), more)
    )


def _busy() -> CTE:
    """How many runs each tenant has in flight."""
    tenant = _tenant(runs)
    return (
        select(tenant.label("tenant"), func.count().label("runs"))
        .where(runs.c.status == RUNNING_LITERAL)
        .group_by(tenant)
        .cte("busy")
    )
