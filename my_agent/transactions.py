"""Transactions on the graphs' tables: their tenant, their locks, and their error."""

from sqlalchemy import Connection, text

SHARED = ""
"""Tenant id of rows that every tenant may read. A transaction of this tenant sees all rows."""


class ProductDatabaseError(RuntimeError):
    """The database cannot be used. The message is the reason and what to do.

    A RuntimeError, since the API hides from its callers the message of any class it does not know.
    """


def hold(connection: Connection, tenant: str | None) -> None:
    """Limit the current transaction to a tenant's rows, on databases with row-level security."""
    if connection.dialect.name == "postgresql" and tenant is not None:
        setting = ("everything", "on") if tenant == SHARED else ("tenant", tenant)
        connection.execute(_SET_TENANT, dict(zip(("name", "value"), setting, strict=True)))


_SET_TENANT = text("SELECT set_config('threadhold.' || :name, :value, true)")


def lock(connection: Connection, name: str) -> None:
    """Take a lock of this name until the transaction ends. Other transactions wait for it.

    On SQLite it does nothing: a write transaction already locks the whole file.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext(:name))"), {"name": name})
