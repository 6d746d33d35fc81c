"""Pruning: delete the checkpoints that a thread does not need in order to continue, in a transaction.

A subgraph without memory of its own has a namespace for each call, with the id of the task after a
colon. Such a call goes once the root graph has gone on from the checkpoint that the call began from.
"""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from sqlalchemy import bindparam, select

from langgraph_runtime_sql.checkpoint import deltas, history
from langgraph_runtime_sql.checkpoint.reading import Key
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import thread_checkpoints
from langgraph_runtime_sql.database.statements import Prepared

_c = thread_checkpoints.c
_HEADS = Prepared(
    select(_c.checkpoint_ns, _c.checkpoint_id, _c.root_id).where(
        _c.thread_id == bindparam("thread"),
        _c.checkpoint_id
        == (
            select((_newer := thread_checkpoints.alias("newer")).c.checkpoint_id)
            .where(
                _newer.c.thread_id == bindparam("thread"),
                _newer.c.checkpoint_ns == _c.checkpoint_ns,
            )
            .order_by(_newer.c.checkpoint_id.desc())
            .limit(1)
            .scalar_subquery()
        ),
    )
)
_OF_DELTAS = Prepared(
    select(_c.checkpoint_ns, _c.checkpoint_id).where(
        _c.thread_id == bindparam("thread"), _c.has_deltas
    )
)


class Head(NamedTuple):
    """The newest checkpoint of a namespace.

    Attributes:
        ns: The namespace.
        id: The checkpoint.
        root: The checkpoint of the root graph during which it was stored; None in the root graph.
    """

    ns: str
    id: str
    root: str | None


def heads(conn: Connection, thread: str) -> list[Head]:
    """Return the newest checkpoint of each namespace of a thread."""
    found = conn.fetchall(_HEADS, {"thread": thread})
    return [Head(each["checkpoint_ns"], each["checkpoint_id"], each["root_id"]) for each in found]


def of_deltas(conn: Connection, thread: str) -> set[Key]:
    """Return the namespace and id of a thread's checkpoints that have delta channels."""
    found = conn.fetchall(_OF_DELTAS, {"thread": thread})
    return {(each["checkpoint_ns"], each["checkpoint_id"]) for each in found}


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
    needed |= deltas.rebuilt_from(conn, thread, needed & of_deltas(conn, thread))
    history.delete(conn, [(thread, *each) for each in found if each not in needed])
