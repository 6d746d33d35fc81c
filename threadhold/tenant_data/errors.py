"""Errors of a tenant's data."""

from langgraph_runtime_sql.errors import RuntimeSqlError


class UnknownTenant(RuntimeSqlError):
    """The database has no tenants, or no row of this one."""


class CannotExport(RuntimeSqlError):
    """The data cannot be written to the folder."""


class CannotErase(RuntimeSqlError):
    """A table has no rule, so that the erase would be incomplete."""
