"""Effects: let a node call another system once, although its run may be executed again.

An effect is a row that is stored before the call (`started`) and changed after it (`done`). An
attempt that finds `started` cannot know whether the call happened: the effect is `unknown`, and is
never repeated by itself. Without the row of a later attempt, an earlier one starts nothing: its
claim is checked in the transaction that stores the row.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import bindparam, select

from langgraph_runtime_sql import json_codec, process, request_context
from langgraph_runtime_sql.claim import Claim
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import effects as table
from langgraph_runtime_sql.database.schema import runs, thread_checkpoints
from langgraph_runtime_sql.database.statements import InsertNew, LockingSelect, Prepared, Row
from langgraph_runtime_sql.encryption import seal_row
from langgraph_runtime_sql.errors import RuntimeSqlError, SupersededAttempt, WriteConflict
from langgraph_runtime_sql.statuses import RunStatus

Status = Literal["started", "done", "unknown"]

# A checkpoint is stored while its first nodes already work.
CHECKPOINT_SECONDS = 30.0
LOOK_SECONDS = 0.01

_FIND = LockingSelect(select(table).where(table.c.effect_id == bindparam("id")))
_RUN = LockingSelect(select(runs).where(runs.c.run_id == bindparam("id")), shared=True)
_INSERT = Prepared(InsertNew(table))
_CHECKPOINT = Prepared(
    select(thread_checkpoints.c.checkpoint_id).where(
        thread_checkpoints.c.thread_id == bindparam("thread"),
        thread_checkpoints.c.checkpoint_ns == bindparam("ns"),
        thread_checkpoints.c.checkpoint_id == bindparam("id"),
    )
)
_STATUS = Prepared(
    table.update()
    .where(table.c.effect_id == bindparam("id"), table.c.token == bindparam("mine"))
    .values(status=bindparam("new_status"), updated_at=bindparam("now"))
)
_DELETE = Prepared(
    table.delete().where(table.c.effect_id == bindparam("id"), table.c.token == bindparam("mine"))
)


class EffectUnknown(RuntimeSqlError):
    """An earlier attempt at this effect was cut off, so whether it happened is unknown."""


class KeyReused(RuntimeSqlError):
    """Another task of the subgraph has used the key, perhaps before its node was retried."""


class NotDone(Exception):
    """The effect certainly did not happen. Raise it in the function, and it may be tried again."""


class NotInRun(RuntimeSqlError):
    """`effects.once` works only in a node of a run of the platform, with stored checkpoints."""


NOT_DONE = object()
"""What a `check` returns if the effect did not happen."""


async def once(
    key: str,
    do: Callable[[str], Awaitable[Any]],
    *,
    check: Callable[[str], Awaitable[Any]] | None = None,
) -> Any:
    """Do something in another system once, and return its result, also when the node runs again.

    Call it in a node or tool of a run. The effect belongs to the place in the graph (thread,
    checkpoint, task) and `key`.

    Args:
        key: Distinguishes the effects of a node, and those of all tasks of a subgraph, for
            example the id of the tool call.
        do: Does it, and returns a JSON value. Its argument is an id of the effect, the same in each
            attempt: pass it on if the other system takes an idempotency key.
        check: Asks the other system, after an attempt was cut off, whether the effect with this id
            happened. Returns its result, or `NOT_DONE`.

    Raises:
        EffectUnknown: an earlier attempt was cut off, and there is no `check`.
        NotInRun: it is called outside of a run, or the run stores no checkpoints.
        KeyReused: two tasks of a subgraph use the key.
        SupersededAttempt: another process has taken over the run.
    """
    claim = request_context.claim.get()
    if claim is None:
        raise NotInRun
    thread_id, place, task = await _place()
    effect_id = uuid.uuid5(uuid.UUID(thread_id), json_codec.dumps([place, key]))
    token = f"{uuid.uuid4().hex} {task}"
    write = process.current().database.write
    begin = partial(_begin, claim=claim, effect_id=effect_id, token=token, name=key)
    row = await write(begin)
    if row["status"] == "done":
        return _unpack(row)
    if row["token"] != token:
        if check is None:
            raise EffectUnknown(
                f"Effect {key!r} ({effect_id}) was cut off, so whether it happened is unknown. "
                f"Ask the other system, then use `threadhold effects resolve {effect_id}`."
            )
        found = await check(str(effect_id))
        if found is not NOT_DONE:
            return await write(partial(_finish, row=row, token=row["token"], result=found))
        row = await write(partial(begin, over=row["token"]))
    try:
        result = await do(str(effect_id))
    except NotDone:
        await write(lambda conn: conn.execute(_DELETE, {"id": effect_id, "mine": token}))
        raise
    except Exception:
        await write(partial(_set_status, effect_id=effect_id, token=token, status="unknown"))
        raise
    return await write(partial(_finish, row=row, token=token, result=result))


async def _place() -> tuple[str, list[Any], str]:
    """Return the thread, the place in the graph, and the task, when its checkpoints are stored."""
    from langgraph.config import get_config

    config = get_config()
    configurable = config["configurable"]
    thread_id = configurable["thread_id"]
    places: dict[str, str] = configurable.get("checkpoint_map") or {}
    if not places:
        raise NotInRun

    def stored(conn: Connection) -> bool:
        return all(
            conn.fetchone(_CHECKPOINT, {"thread": thread_id, "ns": ns, "id": checkpoint_id})
            for ns, checkpoint_id in places.items()
        )

    read = process.current().database.read
    try:
        # Without its checkpoint, the next attempt would be at another place.
        async with asyncio.timeout(CHECKPOINT_SECONDS):
            while not await read(stored):
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        raise NotInRun(
            "effects.once needs stored checkpoints: do not use durability='exit' or a graph "
            "without a checkpointer"
        ) from None
    ns: str = configurable["checkpoint_ns"]
    root, *inner = ns.split("|")
    if not inner:
        return thread_id, [ns], ns
    # A retry policy begins a subgraph anew, and then its tasks have other ids. They are not part
    # of the place, so that such a retry is noticed.
    # Numbers without a name count the calls of subgraphs, also over retries.
    names = [each.partition(":")[0] for each in inner if not each.isdigit()]
    path = config.get("metadata", {}).get("langgraph_path")
    return thread_id, [places.get(""), root, names, list(path or ())], ns


def _begin(
    conn: Connection,
    claim: Claim,
    effect_id: UUID,
    token: str,
    name: str,
    over: str | None = None,
) -> Row:
    """Store that the effect starts, or return what is stored.

    Args:
        over: The token of the cut-off attempt that is replaced.
    """
    run = conn.fetchone(_RUN, {"id": UUID(claim.run_id)})
    if (
        run is None
        or run["status"] != RunStatus.RUNNING
        or run["attempt"] != claim.attempt
        or claim.owner not in (None, run["claimed_by"])
    ):
        raise SupersededAttempt
    row = conn.fetchone(_FIND, {"id": effect_id})
    now = conn.now()
    if row is not None and row["status"] != "done" and row["token"] == over:
        conn.execute(_DELETE, {"id": effect_id, "mine": over})
        row = None
    if row is not None:
        _refuse_reuse(row, token)
        if row["status"] == "started":
            # Its function may still work, in a process that lost the run. It may yet be done.
            _set_status(conn, effect_id, row["token"], "unknown")
        return row
    made: Row = {
        "effect_id": effect_id,
        "thread_id": run["thread_id"],
        "run_id": run["run_id"],
        "attempt": claim.attempt,
        "token": token,
        "name": name,
        "status": "started",
        "result": None,
        "created_at": now,
        "updated_at": now,
        "tenant": run["tenant"],
    }
    if not conn.execute(_INSERT, made):
        raise WriteConflict
    return made


def _refuse_reuse(row: Row, token: str) -> None:
    """Refuse a key that another task of the subgraph has used.

    That task may be an earlier turn of a loop, or the same task before the node's retry policy
    has called the subgraph again. The one must not stop this effect, the other must.
    """
    if row["token"].partition(" ")[2] != token.partition(" ")[2]:
        raise KeyReused(
            f"Effect {row['name']!r} was used by another task of this subgraph. Use another key in "
            "each task. If a retry policy called the subgraph again, start a new run."
        )


def _finish(conn: Connection, row: Row, token: str, result: Any) -> Any:
    """Store the result. A superseded attempt may do so too, because it says what happened."""
    value = json_codec.plain({"value": result})
    sealed = seal_row(conn, table, row["effect_id"], row["tenant"], {"result": value})
    conn.execute(
        table.update()
        .where(table.c.effect_id == row["effect_id"], table.c.token == token)
        .values(status="done", updated_at=conn.now(), **sealed)
    )
    return value["value"]


def _unpack(row: Row) -> Any:
    # Empty if the tenant's key was erased.
    return (row["result"] or {}).get("value")


def _set_status(conn: Connection, effect_id: UUID, token: str, status: Status) -> None:
    conn.execute(_STATUS, {"id": effect_id, "mine": token, "new_status": status, "now": conn.now()})


def unknown(conn: Connection, limit: int, *, cut_off: bool = False) -> list[Row]:
    """Return effects of which nobody knows whether they happened, the oldest first.

    Args:
        conn: A transaction.
        limit: The maximum number.
        cut_off: Also those that have started, because no process executes any.
    """
    statuses = ["unknown", "started"] if cut_off else ["unknown"]
    columns = [column for column in table.c if column.name != "result"]
    ended = select(runs.c.run_id).where(runs.c.status == RunStatus.RUNNING)
    chosen = table.c.status.in_(statuses) | (
        (table.c.status == "started") & table.c.run_id.not_in(ended)
    )
    return conn.fetchall(select(*columns).where(chosen).order_by(table.c.updated_at).limit(limit))


def resolve(conn: Connection, effect_id: UUID, *, done: bool) -> bool:
    """Say whether an unknown effect happened.

    Return False if there is no such effect, or a process is still at it.

    Args:
        conn: A transaction.
        effect_id: The effect.
        done: Whether it happened; its result is then None. If not, the next attempt does it.
    """
    row = conn.fetchone(_FIND, {"id": effect_id})
    if row is None or row["status"] == "done":
        return False
    run = conn.fetchone(_RUN, {"id": row["run_id"]})
    if row["status"] == "started" and run is not None and _works(conn, run, row["attempt"]):
        return False
    if done:
        _set_status(conn, effect_id, row["token"], "done")
    else:
        conn.execute(_DELETE, {"id": effect_id, "mine": row["token"]})
    return True


def _works(conn: Connection, run: Row, attempt: int) -> bool:
    """Return whether this attempt at a run still has its lease."""
    lease = run["lease_until"]
    same = run["status"] == RunStatus.RUNNING and run["attempt"] == attempt
    return same and lease is not None and lease > conn.now()
