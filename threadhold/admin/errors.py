"""Errors that several administrative commands raise."""

from langgraph_runtime_sql.errors import RuntimeSqlError


class BackupFailed(RuntimeSqlError):
    """The backup or restore failed; nothing was changed."""
