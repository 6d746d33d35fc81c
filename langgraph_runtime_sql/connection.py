"""Connection: what an operation gets to read and write with, inside its transaction."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy.engine import Dialect

from langgraph_runtime_sql.clock import STEP, now
from langgraph_runtime_sql.statements import Params, Row, Statement, compile_statement


class Connection:
    """A driver's connection in an open transaction that somebody else ends.

    Attributes:
        raw: The driver's own connection. Never commit, roll back or close it.
        dialect_name: `sqlite` or `postgresql`.
        tenant: Whose rows alone this transaction sees, if it is one tenant's. Policies of the
            database see to that; a statement that says so too lets an index be used.
        locks: Whether what is read in order to be changed has to be locked, because
            others write at the same time. SQLite has one writer.
    """

    __slots__ = (
        "_clock",
        "_committed",
        "_dialect",
        "_moment",
        "dialect_name",
        "locks",
        "raw",
        "tenant",
    )

    def __init__(
        self,
        raw: Any,
        dialect: Dialect,
        *,
        locks: bool = False,
        clock: Callable[[], datetime] | None = None,
        tenant: str | None = None,
    ) -> None:
        self.raw = raw
        self.tenant = tenant
        self.locks = locks
        self._clock = clock
        self._moment: datetime | None = None
        self._dialect = dialect
        self.dialect_name = dialect.name
        self._committed: list[Callable[[], None]] = []

    def now(self) -> datetime:
        """The time by the clock that all who write to this database share.

        On Postgres that is the server's, as of the first call; each call gives a later one.
        What is decided by dates (who holds a lease, which run comes first, what is due) must
        not depend on the clock of the machine that happens to ask.
        """
        if self._clock is None:
            return now()
        # Asked for once, and only where it is needed: most transactions of a run do without.
        self._moment = self._clock() if self._moment is None else self._moment + STEP
        return self._moment

    def fetchall(self, statement: Statement, params: Params | None = None) -> list[Row]:
        """Every row of `statement`, as dicts in the types of `tables`."""
        compiled = compile_statement(statement, self._dialect)
        cursor = self.raw.execute(compiled.sql, compiled.bind(params))
        return compiled.rows(cursor.fetchall())

    def fetchone(self, statement: Statement, params: Params | None = None) -> Row | None:
        """The first row of `statement`, or None."""
        rows = self.fetchall(statement, params)
        return rows[0] if rows else None

    def scalar(self, statement: Statement, params: Params | None = None) -> Any:
        """The first column of the first row, or None."""
        row = self.fetchone(statement, params)
        return None if row is None else next(iter(row.values()))

    def execute(self, statement: Statement, params: Params | None = None) -> int:
        """Run `statement`; the number of rows it changed."""
        compiled = compile_statement(statement, self._dialect)
        return int(self.raw.execute(compiled.sql, compiled.bind(params)).rowcount)

    def executemany(self, statement: Statement, params: list[Params]) -> None:
        """Run `statement` once for each of `params`."""
        if not params:
            return
        compiled = compile_statement(statement, self._dialect)
        cursor = self.raw.cursor()
        cursor.executemany(compiled.sql, [compiled.bind(each) for each in params])
        cursor.close()

    @contextmanager
    def undoing(self) -> Iterator[None]:
        """Undo what is written in here, and forget its `after_commit`.

        What is raised in here goes on, and undoes the whole operation.
        """
        noted = len(self._committed)
        self.raw.execute("SAVEPOINT undoing")
        yield
        self.raw.execute("ROLLBACK TO undoing")
        self.raw.execute("RELEASE undoing")
        del self._committed[noted:]

    def after_commit(self, fn: Callable[[], None]) -> None:
        """Call `fn`, which must not fail or wait, once this transaction is committed."""
        self._committed.append(fn)

    def committed(self) -> list[Callable[[], None]]:
        """What to call after the commit; for the owner of the transaction."""
        return self._committed
