"""The errors of backups."""

from langgraph_runtime_sql.errors import RuntimeSqlError


class BackupFailed(RuntimeSqlError):
    """A backup or restore failed. What was there before is there still."""
