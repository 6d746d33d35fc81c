"""Stuck: transactions of processes that were stopped in the middle of what they were saying.

They hold their locks for as long as the process is stopped. The server ends those that wait for
the next statement (`idle_in_transaction_session_timeout`). But where several are sent at once, as
the driver sends rows, it is promised more after each and waits for ever; nor does it give up on one
that cannot get rid of its answer.
"""

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.postgres.engine import APPLICATION

# What is said at once comes within milliseconds.
STUCK_SECONDS = 10.0

_END = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = session_user AND application_name = %s
    AND pid <> pg_backend_pid() AND state <> 'idle' AND state_change < now() - %s * interval '1s'
    AND (wait_event = 'ClientRead' OR wait_event = 'ClientWrite' AND backend_xid IS NOT NULL)
"""


def end(conn: Connection) -> int:
    """End these transactions; how many there were. Their processes connect again."""
    return len(conn.raw.execute(_END, (APPLICATION, STUCK_SECONDS)).fetchall())
