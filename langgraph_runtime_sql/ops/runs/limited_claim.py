"""Limited claim: claim runs if tenants, users or assistants have limits, weights or priorities.

The running runs of all processes count. On Postgres, a lock lets processes claim one after the
other, so that together they never exceed a limit.
"""

from typing import Any

from sqlalchemy import BigInteger, Integer, Text, bindparam, cast, func, literal, select
from sqlalchemy.sql import ColumnElement, Select

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import PENDING_LITERAL, RUNNING_LITERAL, Json, runs
from langgraph_runtime_sql.database.statements import Params, Prepared, Row
from langgraph_runtime_sql.limit_settings import Limits
from langgraph_runtime_sql.limits.selection import Candidate, Selection
from langgraph_runtime_sql.ops.runs import order as run_order

# The most groups of tenants that one claim looks at, and the fewest runs of each tenant.
GROUPS = 8
RUNS_EACH = 8
# Any constant number: advisory locks are local to a database.
_LOCK_KEY = 7_215_004_113
_LOCK = Prepared(
    lambda: select(literal(1).label("one")).select_from(
        func.pg_advisory_xact_lock(literal(_LOCK_KEY, BigInteger))
    )
)
_RUNNING = Prepared(
    lambda: select(
        run_order.tenant(runs).label("tenant"), runs.c.user_id, runs.c.assistant_id
    ).where(runs.c.status == RUNNING_LITERAL)
)
_TENANTS = Prepared(run_order.tenants)


def _candidates(dialect: str) -> Select[Any]:
    def among(name: str) -> ColumnElement[Any]:
        if dialect == "sqlite":
            listed = func.json_each(bindparam(name, type_=Json)).table_valued("value")
        else:
            # Imported late: a process on SQLite does not need the dialect.
            from sqlalchemy.dialects.postgresql import JSONB

            listed = func.jsonb_array_elements_text(
                cast(bindparam(name, type_=Json), JSONB)
            ).table_valued("value")
        return select(listed.c.value).scalar_subquery()

    candidate = runs.alias("candidate")
    return (
        select(
            candidate.c.seq,
            run_order.tenant(candidate).label("tenant"),
            candidate.c.user_id,
            candidate.c.assistant_id,
            candidate.c.created_at,
        )
        .where(
            run_order.tenant(candidate) == bindparam("tenant", type_=Text),
            run_order.may_start(candidate),
            func.coalesce(candidate.c.user_id, "").not_in(among("users")),
            cast(candidate.c.assistant_id, Text).not_in(among("assistants")),
        )
        .order_by(*run_order.order(candidate))
        .limit(bindparam("each", type_=Integer))
    )


_CANDIDATES = {
    dialect: Prepared(lambda dialect=dialect: _candidates(dialect))  # type: ignore[misc]
    for dialect in ("sqlite", "postgresql")
}


def pending(number: str) -> Select[Any]:
    """Select and lock the pending run whose number is the parameter `number`."""
    return (
        select(runs.c.seq)
        .where(runs.c.seq == bindparam(number), runs.c.status == PENDING_LITERAL)
        .with_for_update(skip_locked=True, of=runs)
    )


def claim(
    conn: Connection, limits: Limits, start: Prepared, free: int, values: Params, turns: Any
) -> list[Row]:
    """Claim up to `free` runs within the limits.

    Args:
        start: Claims the run `number` and returns its row, or nothing if it is locked.
        values: The parameters of a claim; `unreserved` of the slots are open to any tenant.
        turns: The queue's position among the tenants, which the claim advances.
    """
    if conn.locks:
        conn.fetchone(_LOCK)
    running = [
        (row["tenant"], row["user_id"], row["assistant_id"]) for row in conn.fetchall(_RUNNING)
    ]
    selection = Selection(limits, running, free, values["unreserved"])
    among = max(run_order.TENANTS_AT_LEAST, run_order.TENANTS_EACH * free)
    found: list[Row] = []
    for _ in range(GROUPS):
        asked = {"reached": turns.reached, "among": among}
        tenants = [row["tenant"] for row in conn.fetchall(_TENANTS, asked)]
        if len(tenants) == among:
            turns.reached = tenants[-1]
        found += _claim_among(conn, selection, start, tenants, free, values)
        if selection.is_full or len(tenants) < among:
            break
    return found


def _claim_among(
    conn: Connection,
    selection: Selection,
    start: Prepared,
    tenants: list[str],
    free: int,
    values: Params,
) -> list[Row]:
    """Claim runs of some tenants until the slots are taken or none may start."""
    found: list[Row] = []
    each = max(RUNS_EACH, free // max(1, len(tenants)))
    while True:
        asked = [
            conn.prefetch(
                _CANDIDATES[conn.dialect_name],
                {
                    **values,
                    "tenant": tenant,
                    "users": selection.exhausted_users(tenant),
                    "assistants": selection.exhausted_assistants(tenant),
                    "each": each,
                },
            )
            for tenant in tenants
            if selection.may_start(tenant)
        ]
        candidates = [
            Candidate(
                row["seq"], row["tenant"], row["user_id"], row["assistant_id"], row["created_at"]
            )
            for every in asked
            for row in every.all()
        ]
        chosen = selection.choose(candidates, each)
        if not chosen:
            return found
        started = [(run, conn.prefetch(start, {**values, "number": run.seq})) for run in chosen]
        for run, answer in started:
            if (row := answer.one()) is None:
                selection.lost(run)
            else:
                found.append(row)
