"""Connection: what an operation gets to read and write with, inside its transaction."""

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy.engine import Dialect

from langgraph_runtime_sql.clock import now
from langgraph_runtime_sql.database.statements import (
    Params,
    Row,
    Statement,
    compile_statement,
)
from langgraph_runtime_sql.errors import TooSlow

# SQLite looks at the time after so many instructions, of which a row takes some dozens.
LOOK_EVERY = 10_000


class Limit(NamedTuple):
    """How long a search may take, by `time.monotonic`, and what is raised then."""

    deadline: float
    error: TooSlow

    @classmethod
    def of(cls, seconds: float, advice: str) -> "Limit":
        """One of so many seconds from now."""
        return cls(time.monotonic() + seconds, TooSlow(seconds, advice))

    def is_over(self) -> bool:
        """Whether it has been reached."""
        return time.monotonic() > self.deadline


class Connection:
    """A driver's connection in an open transaction that somebody else ends.

    Attributes:
        dialect_name: `sqlite` or `postgresql`.
        tenant: Whose rows alone this transaction sees, if it is one tenant's. Policies of the
            database see to that; a statement that says so too lets an index be used.
        locks: Whether what is read in order to be changed has to be locked, because
            others write at the same time. SQLite has one writer.
    """

    __slots__ = (
        "_committed",
        "_dialect",
        "_limit",
        "_moment",
        "_raw",
        "dialect_name",
        "locks",
        "tenant",
    )

    def __init__(
        self,
        raw: Any,
        dialect: Dialect,
        *,
        locks: bool = False,
        tenant: str | None = None,
    ) -> None:
        self._raw = raw
        self.tenant = tenant
        self.locks = locks
        self._moment: datetime | None = None
        self._limit: Limit | None = None
        self._dialect = dialect
        self.dialect_name = dialect.name
        self._committed: list[Callable[[], None]] = []

    @property
    def raw(self) -> Any:
        """The driver's own connection. Never commit, roll back or close it."""
        return self._raw

    def now(self) -> datetime:
        """The time by the clock that all who write to this database share.

        On Postgres that is the server's, as of the first call; each call gives a later one.
        What is decided by dates (who holds a lease, which run comes first, what is due) must
        not depend on the clock of the machine that happens to ask.
        """
        return now()

    def ask_now(self) -> object:
        """Have the first `now` mean this moment, and cost no wait of its own."""

    def ask(self, statement: Statement, params: Params | None = None) -> "Asked":
        """Ask for the rows of `statement`. On Postgres it goes with whatever else is said
        before the answer is wanted.
        """
        rows = self.fetchall(statement, params)
        return Asked(lambda: rows)

    def send(self, statement: Statement, params: Params | None = None) -> None:
        """`execute`, where nobody asks how many rows it changed; it may go with what comes next."""
        self.execute(statement, params)

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
        """Run `statement` once for each of `params`; as `send`."""
        if not params:
            return
        compiled = compile_statement(statement, self._dialect)
        self.send_text(compiled.sql, [compiled.bind(each) for each in params])

    def send_text(self, text: str, params: Iterable[Sequence[Any] | Mapping[str, Any]]) -> None:
        """Run SQL in the driver's own writing once for each of `params`; as `send`."""
        with closing(self.raw.cursor()) as cursor:
            cursor.executemany(text, params)

    @contextmanager
    def rolled_back(self) -> Iterator[None]:
        """Roll back to the savepoint before the block at its end, and forget its `after_commit`.

        An exception from the block is raised on, and rolls back the whole operation.
        """
        noted = len(self._committed)
        self._do("SAVEPOINT rolled_back")
        yield
        self._do("ROLLBACK TO rolled_back")
        self._do("RELEASE rolled_back")
        del self._committed[noted:]

    def _do(self, command: str) -> None:
        self.raw.execute(command)

    @contextmanager
    def limited(self, seconds: float, advice: str) -> Iterator[None]:
        """What is in here may take so long: statements are cut off then, and `look_at_time` raises.

        Args:
            seconds: How long.
            advice: A sentence for whoever wanted it, what to ask for instead.

        Raises:
            TooSlow: it was cut off.
        """
        self._limit = limit = Limit.of(seconds, advice)
        self.raw.set_progress_handler(limit.is_over, LOOK_EVERY)
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                raise
            raise limit.error from error
        finally:
            self.raw.set_progress_handler(None, 0)
            self._limit = None

    def look_at_time(self) -> None:
        """For what does much between two statements: whether there is time for it.

        Raises:
            TooSlow: there was a limit, and it is over.
        """
        if self._limit is not None and self._limit.is_over():
            raise self._limit.error

    def after_commit(self, fn: Callable[[], None]) -> None:
        """Call `fn`, which must not fail or wait, once this transaction is committed."""
        self._committed.append(fn)

    def committed(self) -> list[Callable[[], None]]:
        """What to call after the commit; for the owner of the transaction."""
        return self._committed


class Asked:
    """Rows that were asked for."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Callable[[], list[Row]]) -> None:
        self._rows = rows

    def all(self) -> list[Row]:
        """All of them."""
        return self._rows()

    def one(self) -> Row | None:
        """The first, or None."""
        rows = self._rows()
        return rows[0] if rows else None
