"""Pruning: delete the checkpoints that a thread does not need in order to continue, in a transaction.

A subgraph without memory of its own has a namespace for each call, with the id of the task after a
colon. Such a call goes once the root graph has gone on from the checkpoint that the call began from.
"""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from langgraph.checkpoint.serde.types import TASKS

from langgraph_runtime_sql.checkpoint import history
from langgraph_runtime_sql.checkpoint.sql import run
from langgraph_runtime_sql.database.connection import Connection

_HEADS = {
    # Of several rows SQLite shows the one with the largest id.
    "sqlite": """
        SELECT checkpoint_ns, max(checkpoint_id),
            json_extract(CAST(metadata AS TEXT), '$.parents.""'), NULL
        FROM checkpoints WHERE thread_id = ? GROUP BY checkpoint_ns
    """,
    "postgresql": f"""
        SELECT DISTINCT ON (checkpoint_ns) checkpoint_ns, checkpoint_id,
            metadata -> 'parents' ->> '',
            CASE WHEN CAST(checkpoint ->> 'v' AS INTEGER) < 4 AND EXISTS (
                SELECT 1 FROM checkpoint_writes AS sent
                WHERE sent.thread_id = checkpoints.thread_id
                AND sent.checkpoint_ns = checkpoints.checkpoint_ns
                AND sent.checkpoint_id = checkpoints.parent_checkpoint_id
                AND sent.channel = '{TASKS}'
            ) THEN parent_checkpoint_id END
        FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_ns, checkpoint_id DESC
    """,
}
_COUNTERS = {
    "sqlite": "json_extract(CAST(metadata AS TEXT), '$.counters_since_delta_snapshot')",
    "postgresql": "metadata -> 'counters_since_delta_snapshot'",
}


class Head(NamedTuple):
    """The newest checkpoint of a namespace.

    Attributes:
        ns: The namespace.
        id: The checkpoint.
        root: The checkpoint of the root graph during which it was stored; None in the root graph.
        sends: Its parent, if it reads its tasks from there, as langgraph did before version 4 of
            its checkpoints.
    """

    ns: str
    id: str
    root: str | None
    sends: str | None


def heads(conn: Connection, thread: str) -> list[Head]:
    """Return the newest checkpoint of each namespace of a thread."""
    return [Head(*row) for row in run(conn, _HEADS[conn.dialect_name], (thread,)).fetchall()]


def of_deltas(conn: Connection, thread: str) -> set[tuple[str, str]]:
    """Return the namespace and id of a thread's checkpoints that have delta channels."""
    counters = _COUNTERS[conn.dialect_name]
    found = run(
        conn,
        "SELECT checkpoint_ns, checkpoint_id FROM checkpoints"
        f" WHERE thread_id = ? AND {counters} IS NOT NULL",
        (thread,),
    )
    return {(ns, checkpoint_id) for ns, checkpoint_id in found.fetchall()}


def ended_calls(found: Iterable[Head], kept: Collection[str]) -> set[str]:
    """Return the namespaces of the subgraph calls that have ended.

    A call that a run is making stays, also if the checkpoint that it began from is not stored yet.

    Args:
        found: All heads of a thread.
        kept: The checkpoints of the root graph that stay, with the calls that began from them.
    """
    newest = max((each.id for each in found if each.ns == ""), default="")
    return {
        each.ns
        for each in found
        if ":" in each.ns and each.root and each.root < newest and each.root not in kept
    }


def prune_thread(conn: Connection, thread_id: Any, keep: Iterable[str] = ()) -> None:
    """Delete the checkpoints that a thread does not need in order to continue.

    In each namespace but those of ended calls the newest checkpoint stays and, if it has delta
    channels, the ancestors that these are rebuilt from.

    Args:
        conn: A transaction that writes.
        thread_id: The thread.
        keep: The ids of further checkpoints that stay in the same way, with their calls.
    """
    thread = str(thread_id)
    # First, so that a checkpoint which another transaction stores meanwhile is not among them.
    found = history.places(conn, thread)
    newest, kept = heads(conn, thread), set(keep)
    ended = ended_calls(newest, kept | {each.id for each in newest if each.ns == ""})
    stay = [each for each in newest if each.ns not in ended]
    needed = {(each.ns, each.id) for each in stay} | {each for each in found if each[1] in kept}
    needed |= history.rebuilt_from(conn, thread, needed & of_deltas(conn, thread))
    needed |= {(each.ns, each.sends) for each in stay if each.sends}
    history.delete(conn, [(thread, *each) for each in found if each not in needed])
