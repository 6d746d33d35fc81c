"""Tables: a declaration of tables, and the transactions on the database that has them."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import TypeVar
from weakref import WeakSet

from sqlalchemy import Connection, DateTime, MetaData, Table, delete, select, tuple_
from sqlalchemy.exc import DatabaseError, SQLAlchemyError

from threadhold.tables import migrating
from threadhold.tables.columns import UtcDateTime
from threadhold.tables.declaration import Rules, rules_of
from threadhold.tables.engine import Engine
from threadhold.tables.transactions import Owner, TablesError

T = TypeVar("T")

DEFAULT_URL = "sqlite:///./data/threadhold.db"
# Old rows of a table that one transaction deletes.
EXPIRED = 1000

_declared: "WeakSet[Tables]" = WeakSet()
_platform: Owner | None = None
_errors: tuple[type[Exception], ...] = (SQLAlchemyError, TablesError)


def declared() -> "Sequence[Tables]":
    """Return all that this process has declared."""
    return tuple(_declared)


def lend(transactions: Owner, errors: Sequence[type[Exception]] = ()) -> None:
    """Run the transactions of this process here from now on; the platform calls it at its start.

    Args:
        transactions: Those of the platform.
        errors: What they raise, besides errors of SQLAlchemy, if the database cannot be used.
    """
    global _platform, _errors
    _platform, _errors = transactions, (SQLAlchemyError, TablesError, *errors)


class Tables:
    """Tables of an application with one history of scripts.

    Its transactions (`read`, `write`, `run`) are those of `Transactions`. They run on the platform's
    threads and connections in a process that serves it. Elsewhere they run on an engine of their own,
    on the database of `DATABASE_URL`. The first one migrates the tables.

    Args:
        scripts: The folder with `versions`, the Alembic scripts; see `migrating`.
        versions: Name of Alembic's table of versions; the runtime has another one.
        modules: Names of the modules that declare tables on `metadata`. They are imported when the
            rules of all tables are needed, also of those that this process has no other use for.

    Attributes:
        metadata: The tables. Rows of a thread are deleted in the order of the declarations.
        scripts, versions: As given.
    """

    def __init__(self, scripts: Path, *, versions: str, modules: Sequence[str] = ()) -> None:
        self.metadata = MetaData()
        self.versions = versions
        self.scripts = scripts
        self._modules = modules
        self._url: str | None = None
        self._engines: dict[str, Engine] = {}
        self._migrated: WeakSet[Owner] = WeakSet()
        # Without the lock, several first callers would each open their own pool.
        self._opening = threading.Lock()
        _declared.add(self)

    @property
    def heads(self) -> frozenset[str]:
        """The last script of each branch."""
        return migrating.heads(self.scripts)

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What a transaction raises if the database cannot be used, for an `except`."""
        return _errors

    @property
    def is_open(self) -> bool:
        """Whether this process has used the tables on the platform's database."""
        return self._chosen() in self._migrated

    def known(self) -> frozenset[str]:
        """Return the ids of all scripts."""
        return migrating.known(self.scripts)

    def declarations(self) -> Iterator[tuple[Table, Rules]]:
        """Yield each table with its rules, in the order of the declarations."""
        for module in self._modules:
            import_module(module)
        for table in self.metadata.tables.values():
            yield table, rules_of(table)

    def tenants(self) -> dict[str, str]:
        """Return the column with the tenant of each table that has one, also of derived tables."""
        found = {}
        for table, rule in self.declarations():
            found[table.name] = rule.tenant
            found |= {each.name: each.tenant for each in rule.derived}
        return {name: tenant for name, tenant in found.items() if tenant is not None}

    def read(self, work: Callable[[Connection], T], tenant: str | None = None) -> T:
        """Run `work` in a read-only transaction of a tenant, and return its result. Blocks."""
        return self._opened().read(work, tenant)

    def write(self, work: Callable[[Connection], T], tenant: str | None = None) -> T:
        """Run `work` in a transaction of a tenant that commits unless it raises. Blocks."""
        return self._opened().write(work, tenant)

    async def run(
        self, work: Callable[[Connection], T], tenant: str | None = None, *, write: bool = False
    ) -> T:
        """Run `work` in one transaction, and return its result.

        Args:
            work: Called in a thread with the connection, which it must not keep.
            tenant: The tenant whose rows the transaction may touch.
            write: Whether `work` writes.
        """
        chosen = self._chosen()
        if isinstance(chosen, str):
            return await asyncio.to_thread(self.write if write else self.read, work, tenant)
        if chosen not in self._migrated:
            await asyncio.to_thread(self._opened)
        return await chosen.run(work, tenant, write=write)

    def use(self, url: str | None) -> None:
        """Use the database at `url` from now on, also in a process of the platform.

        None: the platform's, or that of `DATABASE_URL`.
        """
        self._url = url

    def open(self, url: str) -> Engine:
        """Return an engine of its own on a database, migrated. The caller closes it.

        Raises:
            TablesError: the database cannot be used, or its schema is newer than this code.
        """
        engine = Engine(url)
        try:
            migrating.upgrade(self, engine)
        except DatabaseError as error:
            engine.close()
            raise TablesError(f"The database cannot be used: {error.orig}") from error
        except BaseException:
            engine.close()
            raise
        return engine

    def close(self) -> None:
        """Close all own engines. The next transaction opens one again."""
        with self._opening:
            for each in self._engines.values():
                each.close()
            self._engines.clear()

    def expire(self, connection: Connection) -> int:
        """Delete rows that are older than their rules keep them; return their number.

        A call deletes up to `EXPIRED` rows of a table, so that its transaction is short, and 0 means
        that none is left. The server calls it each hour, and an engine of its own when it is opened.
        """
        deleted = 0
        for table, rule in self.declarations():
            if rule.age is None or rule.keep_seconds is None:
                continue
            age = table.c[rule.age]
            oldest: object = time.time() - rule.keep_seconds
            if isinstance(age.type, DateTime | UtcDateTime):
                oldest = datetime.now(UTC) - timedelta(seconds=rule.keep_seconds)
            some = select(*table.primary_key).where(age < oldest).limit(EXPIRED)
            old = delete(table).where(tuple_(*table.primary_key).in_(some))
            deleted += connection.execute(old).rowcount
        return deleted

    def _chosen(self) -> str | Owner:
        return self._url or _platform or os.environ.get("DATABASE_URL") or DEFAULT_URL

    def _opened(self) -> Owner:
        """Return the transactions in use. The first call opens and migrates, and blocks meanwhile."""
        chosen = self._chosen()
        with self._opening:
            if isinstance(chosen, str):
                if chosen not in self._engines:
                    self._engines[chosen] = self.open(chosen)
                    while self._engines[chosen].alter(self.expire):
                        pass
                return self._engines[chosen]
            if chosen not in self._migrated:
                migrating.upgrade(self, chosen)
                self._migrated.add(chosen)
            return chosen
