"""Order: which runs may start, and in which order.

On each thread, only the oldest pending run may start, and only while no run is in progress. A
process claims runs that no build has claimed, and those of its own build.

Runs start in the order of their creation. With tenants, or limits on running runs, tenants take
turns (`turns`), and a tenant's runs of the highest priority come first, oldest first.

To bound its cost, a claim looks at the tenants of the oldest runs, and at a window of tenants. The
next window continues with its last tenant, and the one after the last tenant begins anew. No tenant
starves: the rotation reaches each of them again, and new runs are never older than waiting ones.
"""

from typing import Any

from sqlalchemy import (
    CTE,
    DateTime,
    Integer,
    Text,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy.sql import ColumnElement, FromClause, Select

from langgraph_runtime_sql.database.schema import (
    PENDING_LITERAL,
    RUNNING_LITERAL,
    Json,
    runs,
    tenant_runs,
)

# Between the starts of two runs on their last attempt.
APART_SECONDS = 30.0
# A claim looks at the tenants of this many due runs, the oldest.
OLDEST = 256


def tenant(of: FromClause) -> ColumnElement[Any]:
    """Return the expression of the indexes: `schema.TENANT`."""
    return case((of.c.tenant.is_(None), literal_column("''", Text)), else_=of.c.tenant)


def may_start(
    candidate: FromClause,
    now: ColumnElement[Any] | None = None,
    apart: ColumnElement[Any] | None = None,
) -> ColumnElement[bool]:
    """Return the condition for a due run that may start.

    Checks for running threads first: a thread with a long backlog and a running run is skipped
    without a comparison of its pending runs.

    Args:
        candidate: The run.
        now, apart: The time, and the time `APART_SECONDS` before. Default: parameters.
    """
    running, earlier = runs.alias("running"), runs.alias("earlier")
    now = bindparam("now") if now is None else now
    apart = bindparam("apart") if apart is None else apart
    return and_(
        candidate.c.status == PENDING_LITERAL,
        candidate.c.created_at <= now,
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
        _is_of_build(candidate),
        _not_suspect(candidate) | _first_suspect(candidate, apart),
    )


def _is_before(one: FromClause, other: FromClause) -> ColumnElement[bool]:
    return (one.c.created_at < other.c.created_at) | and_(
        one.c.created_at == other.c.created_at, one.c.seq < other.c.seq
    )


def _is_of_build(candidate: FromClause) -> ColumnElement[bool]:
    """Return the condition for a run that this build may claim."""
    return or_(candidate.c.build.is_(None), candidate.c.build == bindparam("own_build", type_=Text))


def _not_suspect(candidate: FromClause) -> ColumnElement[bool]:
    """Return the condition for a run with more than one attempt left."""
    return candidate.c.attempt != bindparam("last")


def _first_suspect(candidate: FromClause, apart: ColumnElement[Any]) -> ColumnElement[bool]:
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
            running.c.updated_at > apart,
        )
        .exists(),
        ~select(older.c.seq)
        .where(
            older.c.status == PENDING_LITERAL,
            older.c.attempt == bindparam("last"),
            _is_of_build(older),
            _is_before(older, candidate),
        )
        .exists(),
    )


def oldest() -> Select[Any]:
    """Select and lock the numbers of the `limit` oldest runs that may start."""
    return (
        select(runs.c.seq)
        .where(may_start(runs))
        .order_by(runs.c.created_at, runs.c.seq)
        .limit(bindparam("limit"))
        .with_for_update(skip_locked=True, of=runs)
    )


def waiting(dialect: str) -> Select[Any]:
    """Select the tenants of a window and those of the oldest runs, with up to `each` runs of each.

    A tenant whose runs must wait has a row without a run. The window is the next `among` tenants
    from `reached` on; `place` orders it, and is -1 beyond it.
    """
    names = ("status", "created_at", "seq", "thread_id", "attempt", "build", "tenant")
    due = (
        select(*(runs.c[name] for name in names))
        .where(runs.c.status == PENDING_LITERAL, runs.c.created_at <= _clock(dialect)[0])
        .order_by(runs.c.created_at, runs.c.seq)
        .limit(literal_column(str(OLDEST), Integer))
        .cte("due")
    )
    eldest = (
        select(tenant(due).label("tenant"), literal(-1, Integer).label("place"))
        .where(may_start(due, *_clock(dialect)))
        .limit(bindparam("oldest", type_=Integer))
        .cte("eldest")
    )
    window = _window()
    named = select(window).where(window.c.tenant.is_not(None))
    every = named.union_all(select(eldest)).cte("every")
    known = (
        select(every.c.tenant, func.max(every.c.place).label("place"))
        .group_by(every.c.tenant)
        .cte("known")
    )
    return _runs_of(known, dialect)


def locked() -> Select[Any]:
    """Select up to `each` runs that may start of each tenant in the list `tenants`. Postgres only."""
    name = listed("tenants", "postgresql").c.value
    known = select(name.label("tenant"), literal(0, Integer).label("place")).cte("known")
    return _runs_of(known, "postgresql")


def _runs_of(known: CTE, dialect: str) -> Select[Any]:
    """Select the tenants `known`, each with its number of running runs and its next runs.

    With `resting`, only tenants without a running run have next runs.
    """
    other, candidate = runs.alias("none"), runs.alias("candidate")
    # Triggers count the runs of tenants only.
    of_none = select(func.count()).where(other.c.status == RUNNING_LITERAL, tenant(other) == "")
    counted = case(
        (known.c.tenant == "", of_none.scalar_subquery()),
        else_=func.coalesce(tenant_runs.c.running, 0),
    )
    tenants = (
        select(known.c.tenant, known.c.place, counted.label("running"))
        .select_from(known.outerjoin(tenant_runs, tenant_runs.c.tenant == known.c.tenant))
        .cte("waiting")
    )
    names = ("seq", "user_id", "assistant_id", "priority", "created_at")
    sqlite = dialect == "sqlite"
    user, assistant = func.coalesce(candidate.c.user_id, ""), cast(candidate.c.assistant_id, Text)
    found = (
        select(*(candidate.c[name] for name in (names[:1] if sqlite else names)))
        .where(
            tenant(candidate) == tenants.c.tenant,
            may_start(candidate, *_clock(dialect)),
            or_(bindparam("resting", type_=Integer) == 0, tenants.c.running == 0),
            tuple_(tenants.c.tenant, user).not_in(_pairs("users", dialect)),
            tuple_(tenants.c.tenant, assistant).not_in(_pairs("assistants", dialect)),
        )
        .order_by(candidate.c.priority.desc(), candidate.c.created_at, candidate.c.seq)
        .limit(bindparam("each", type_=Integer))
        .correlate(tenants)
    )
    if sqlite:
        run: Any = runs.alias("run")
        joined = tenants.outerjoin(run, run.c.seq.in_(found))
    else:
        run = found.lateral("run")
        joined = tenants.outerjoin(run, true())
    return (
        select(tenants, *(run.c[name] for name in names))
        .select_from(joined)
        .order_by(run.c.priority.desc(), run.c.created_at, run.c.seq)
    )


def _clock(dialect: str) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    """Return the parameters `now` and `apart`.

    On Postgres, the server's clock lets a statement go out together with the question for the time.
    """
    if dialect == "sqlite":
        return bindparam("now"), bindparam("apart")
    clock = "statement_timestamp()"
    before = f"{clock} - interval '{APART_SECONDS:g} seconds'"
    return literal_column(clock, DateTime(timezone=True)), literal_column(before, DateTime(True))


def listed(name: str, dialect: str, *, texts: bool = True) -> Any:
    """Return the elements of the parameter `name`, a list, as rows."""
    listed = bindparam(name, type_=Json)
    if dialect == "sqlite":
        return func.json_each(listed).table_valued("value", name=name)
    # Imported late: a process on SQLite does not need the dialect.
    from sqlalchemy.dialects.postgresql import JSONB

    of = func.jsonb_array_elements_text if texts else func.jsonb_array_elements
    return of(cast(listed, JSONB)).table_valued("value", name=name)


def _pairs(name: str, dialect: str) -> Select[Any]:
    """Select the pairs in the parameter `name`, a list of lists of two texts."""
    value = listed(name, dialect, texts=False).c.value
    return select(*(value.op("->>", return_type=Text)(literal_column(str(n))) for n in (0, 1)))


def numbered() -> Select[Any]:
    """Select and lock the pending run whose number is the parameter `number`."""
    return (
        select(runs.c.seq)
        .where(runs.c.seq == bindparam("number"), runs.c.status == PENDING_LITERAL)
        .with_for_update(skip_locked=True, of=runs)
    )


def _window() -> CTE:
    """Select the next `among` tenants with pending runs, with one index lookup for each, then None."""
    name, other = tenant(runs), runs.alias("next")
    first = select(func.min(name)).where(
        runs.c.status == PENDING_LITERAL, name >= bindparam("reached", type_=Text)
    )
    found = select(first.scalar_subquery().label("tenant"), literal(0, Integer).label("place")).cte(
        "window", recursive=True
    )
    following = (
        select(func.min(tenant(other)))
        .where(other.c.status == PENDING_LITERAL, tenant(other) > found.c.tenant)
        .correlate(found)
        .scalar_subquery()
    )
    more = found.c.place + 1 < bindparam("among", type_=Integer)
    return found.union_all(
        select(following, found.c.place + 1).where(found.c.tenant.is_not(None), more)
    )
