"""Order: find threads without a stored order of the writes of their parallel tasks.

A delta channel is rebuilt from what tasks have written, in the order of their paths. Older versions
stored no paths. The input of a run has none, and neither does an update by a command.
"""

from langgraph_runtime_sql.checkpoint.sql import run
from langgraph_runtime_sql.database.connection import Connection

# Threads of one statement.
PAGE = 200
_PAGE = """
    SELECT max(thread_id), count(*) FROM (
        SELECT DISTINCT thread_id FROM checkpoints WHERE thread_id > ? ORDER BY thread_id LIMIT ?
    ) AS page
"""
# Writes that a run stores at its end bear the number of the step in the id of their task: in the first
# step at its beginning, with zeros after it for the input, in later steps after eight letters f.
_INPUT, _LATER = "%-0000-0000-0000-00000000000_", "ffffffff-%"
_UNORDERED = """
    SELECT DISTINCT thread_id FROM (
        SELECT thread_id FROM {writes} AS stored
        WHERE thread_id > ? AND thread_id <= ? AND task_path = ''
            AND task_id NOT LIKE ?
            AND EXISTS (
                SELECT 1 FROM checkpoints
                WHERE checkpoints.thread_id = stored.thread_id
                AND checkpoints.checkpoint_ns = stored.checkpoint_ns
                AND checkpoints.checkpoint_id = stored.checkpoint_id
                AND {is_delta_channel}
            )
        GROUP BY thread_id, checkpoint_ns, checkpoint_id, channel,
            CASE WHEN task_id LIKE ? THEN substr(task_id, 1, 18) ELSE '' END
        HAVING count(DISTINCT task_id) > 1
    ) AS unordered ORDER BY thread_id
"""


def unordered_threads(conn: Connection, after: str = "") -> tuple[list[str], str | None]:
    """Return which of the next threads have parallel writes without an order.

    Args:
        conn: The transaction.
        after: The thread before the first one.

    Returns:
        The threads, and the last one that was looked at, or None at the end.
    """
    last, count = run(conn, _PAGE, (after, PAGE)).fetchone()
    if last is None:
        return [], None
    found = [each for (each,) in run(conn, _UNORDERED, (after, last, _INPUT, _LATER)).fetchall()]
    return found, last if count == PAGE else None
