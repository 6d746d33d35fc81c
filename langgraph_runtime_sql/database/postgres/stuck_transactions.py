"""Stuck transactions: those of processes that were suspended in the middle of a transaction.

They hold their locks while the process is suspended. `idle_in_transaction_session_timeout` ends the
transactions that wait for their next statement. It does not end one that is sending a pipeline,
where the server waits for the rest, nor one whose client does not read the answer.
"""

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.postgres.engine import APPLICATION

# The commands of a pipeline arrive within milliseconds.
STUCK_SECONDS = 10.0

_END = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = session_user AND application_name = %s
    AND pid <> pg_backend_pid() AND state <> 'idle' AND state_change < now() - %s * interval '1s'
    AND (wait_event = 'ClientRead' OR wait_event = 'ClientWrite' AND backend_xid IS NOT NULL)
"""


def end(conn: Connection) -> int:
    """End these transactions; return how many there were. Their processes reconnect."""
    return len(conn.raw.execute(_END, (APPLICATION, STUCK_SECONDS)).fetchall())
