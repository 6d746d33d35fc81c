"""Errors of an import."""

from langgraph_runtime_sql.errors import RuntimeSqlError


class CannotImport(RuntimeSqlError):
    """The source cannot be read, or says something that cannot be kept."""
