"""Retention: delete the checkpoints of a thread that a rule does not keep, inside a transaction.

Whatever the rule says, these stay: the newest checkpoint of each namespace but those of ended calls,
and the ancestors from which delta channels of a kept checkpoint are rebuilt.
"""

from langgraph_runtime_sql.checkpoint import deltas, history, pruning
from langgraph_runtime_sql.checkpoint.rows import Place
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.retention_rules import KeepRule

# Checkpoints of one transaction.
BATCH = 200


def expendable(conn: Connection, thread_id: str, rule: KeepRule) -> list[Place]:
    """Return the checkpoints that a thread does not keep, oldest first.

    Args:
        conn: The transaction.
        thread_id: A thread without runs in flight. A run needs the checkpoint that it starts from.
        rule: What is kept.
    """
    found, newest = history.places(conn, thread_id), pruning.heads(conn, thread_id)
    own = [checkpoint_id for ns, checkpoint_id in found if ns == ""]
    if not own:
        return []
    kept = set(own) - set(rule.expendable(own, conn.now()))
    ended = pruning.ended_calls(newest, kept)
    # The checkpoints of subgraphs belong to the steps during which they were stored.
    first = min(kept)
    stays = {(each.ns, each.id) for each in newest if each.ns not in ended}
    stays |= {
        (ns, each)
        for ns, each in found
        if (each in kept if ns == "" else each >= first and ns not in ended)
    }
    stays |= deltas.rebuilt_from(conn, thread_id, stays & pruning.of_deltas(conn, thread_id))
    return [(thread_id, *each) for each in found if each not in stays]


def thin(conn: Connection, thread_id: str, rule: KeepRule) -> int:
    """Delete up to `BATCH` checkpoints that a thread does not keep, and return how many.

    The arguments are those of `expendable`.
    """
    gone = expendable(conn, thread_id, rule)[:BATCH]
    history.delete(conn, gone)
    return len(gone)
