"""Retention: delete the checkpoints of a thread that a rule does not keep, inside a transaction.

Whatever the rule says, these stay: the newest checkpoint of each namespace, and the ancestors from
which delta channels of a kept checkpoint are rebuilt.
"""

from collections import defaultdict

from langgraph_runtime_sql.checkpoint import history, undo
from langgraph_runtime_sql.checkpoint.sql import run
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.retention_rules import KeepRule

# Checkpoints of one transaction.
BATCH = 200

_ALL = {
    "sqlite": """
        SELECT checkpoint_ns, checkpoint_id,
            json_extract(CAST(metadata AS TEXT), '$.counters_since_delta_snapshot')
        FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_id
    """,
    "postgresql": """
        SELECT checkpoint_ns, checkpoint_id, metadata -> 'counters_since_delta_snapshot'
        FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_id
    """,
}


def expendable(conn: Connection, thread_id: str, rule: KeepRule) -> list[undo.Place]:
    """Return the checkpoints that a thread does not keep, oldest first.

    Args:
        conn: The transaction.
        thread_id: A thread without runs in flight. A run needs the checkpoint that it starts from.
        rule: What is kept.
    """
    found = run(conn, _ALL[conn.dialect_name], (thread_id,)).fetchall()
    by_namespace: dict[str, list[str]] = defaultdict(list)
    for ns, checkpoint_id, _ in found:
        by_namespace[ns].append(checkpoint_id)
    own = by_namespace.get("", [])
    gone = set(rule.expendable(own, conn.now()))
    if not gone:
        return []
    # The checkpoints of subgraphs belong to the steps during which they were stored.
    first_kept = min(each for each in own if each not in gone)
    newest = {(ns, ids[-1]) for ns, ids in by_namespace.items()}
    stays = {
        (ns, each)
        for ns, ids in by_namespace.items()
        for each in ids
        if (each not in gone if ns == "" else each >= first_kept)
    } | newest
    counted = {(ns, each) for ns, each, counters in found if counters}
    if counted:
        stays |= history.rebuilt_from(conn, thread_id, stays & counted)
    return [(thread_id, ns, each) for ns, each, _ in found if (ns, each) not in stays]


def thin(conn: Connection, thread_id: str, rule: KeepRule) -> int:
    """Delete up to `BATCH` checkpoints that a thread does not keep, and return how many.

    The arguments are those of `expendable`.
    """
    gone = expendable(conn, thread_id, rule)[:BATCH]
    history.delete(conn, gone)
    return len(gone)
