"""Transactions: their tenant, their locks, and their error."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from sqlalchemy import Connection, text

T = TypeVar("T")

SHARED = ""
"""Tenant of rows that every tenant may read. A transaction of this tenant sees all rows."""

_SET_TENANT = text("SELECT set_config('threadhold.' || :name, :value, true)")


class TablesError(RuntimeError):
    """The database cannot be used. The message is the reason and what to do.

    A RuntimeError, since the API hides from its callers the message of any class it does not know.
    """


class Transactions(Protocol):
    """Transactions on a database. On Postgres each sees the rows of its tenant and the shared ones,
    and writes only rows of its tenant. One without a tenant sees nothing.

    The functions that they take get a SQLAlchemy connection, which they must not keep, commit or
    roll back. They may be called again if the transaction collides with another one.
    """

    def read(self, work: Callable[[Connection], T], tenant: str | None = None) -> T:
        """Run `work` in a read-only transaction, and return its result. Blocks."""

    def write(self, work: Callable[[Connection], T], tenant: str | None = None) -> T:
        """Run `work` in a transaction that commits unless it raises; return its result. Blocks.

        In a client's request, the platform must have admitted a write.
        """

    async def run(
        self, work: Callable[[Connection], T], tenant: str | None = None, *, write: bool = False
    ) -> T:
        """Run a `read` or `write` without blocking the event loop.

        Args:
            work: Called with the connection, in a thread.
            tenant: The tenant whose rows the transaction may touch.
            write: Whether `work` writes.
        """


class Owner(Transactions, Protocol):
    """Transactions that may also migrate the tables."""

    def alter(self, work: Callable[[Connection], T]) -> T:
        """Run `work`, which may change tables and the rows of all tenants. Blocks."""


def hold(connection: Connection, tenant: str | None) -> None:
    """Limit the current transaction to a tenant's rows, on databases with row-level security."""
    if connection.dialect.name == "postgresql" and tenant is not None:
        setting = ("everything", "on") if tenant == SHARED else ("tenant", tenant)
        connection.execute(_SET_TENANT, dict(zip(("name", "value"), setting, strict=True)))


def lock(connection: Connection, name: str) -> None:
    """Take a lock of this name until the transaction ends. Other transactions wait for it.

    On SQLite it does nothing: there is one writer.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext(:name))"), {"name": name})
