"""PostgresConnection: a connection whose statements go to the server together, where they can."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from psycopg import errors
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from langgraph_runtime_sql.clock import STEP
from langgraph_runtime_sql.database.connection import Asked, Connection, Limit
from langgraph_runtime_sql.database.postgres.pipeline import Pipeline, Sent
from langgraph_runtime_sql.database.statements import (
    Compiled,
    Params,
    Prepared,
    Row,
    Statement,
)
from langgraph_runtime_sql.database.visibility import Visibility

DIALECT: Any = PGDialect_psycopg()  # type: ignore[no-untyped-call]
# The same, as the server itself takes it.
_NUMBERED: Any = PGDialect_psycopg(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]
_SET = b"SELECT set_config($1, $2, true)"
# Not `now()`, the transaction's begin: who waited for a thread's lock comes after who had it.
_NOW = b"SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
# As none of these statements has any other `%`.
_PLACE = re.compile(r"%(?:\((\w+)\))?s")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class PostgresConnection(Connection):
    """A transaction on Postgres, which begins with its first statement.

    Args:
        pipeline: Of the connection.
        begin: The command that begins it.
        visibility: The rows that it sees.
        locks: As in `Connection`.
    """

    __slots__ = ("_pipeline", "_time")

    def __init__(
        self, pipeline: Pipeline, begin: bytes, visibility: Visibility, *, locks: bool
    ) -> None:
        super().__init__(pipeline.raw, DIALECT, locks=locks, tenant=visibility.tenant)
        self._pipeline = pipeline
        self._time: Sent | None = None
        pipeline.add(begin)
        for setting in visibility.settings.items():
            pipeline.add(_SET, setting)

    @property
    def raw(self) -> Any:
        """The driver's own connection, for what is not said through this one."""
        self._pipeline.flush()
        return self._raw

    def now(self) -> datetime:
        """The time by the server's clock, as of the first call or of `ask_now` before it."""
        if self._moment is None:
            [[microseconds]] = self._pipeline.rows(self.ask_now())
            self._moment = _EPOCH + timedelta(microseconds=microseconds)
        else:
            self._moment += STEP
        return self._moment

    def ask_now(self) -> Sent:
        if self._time is None:
            self._time = self._pipeline.add(_NOW)
        return self._time

    def ask(self, statement: Statement, params: Params | None = None) -> Asked:
        if not isinstance(statement, Prepared):
            return super().ask(statement, params)
        compiled, sent = self._add(statement, params)
        return Asked(lambda: compiled.rows(self._pipeline.rows(sent)))

    def fetchall(self, statement: Statement, params: Params | None = None) -> list[Row]:
        if not isinstance(statement, Prepared):
            return super().fetchall(statement, params)
        return self.ask(statement, params).all()

    def execute(self, statement: Statement, params: Params | None = None) -> int:
        if not isinstance(statement, Prepared):
            return super().execute(statement, params)
        _, sent = self._add(statement, params)
        self._pipeline.flush()
        return 0 if sent.result is None else sent.result.command_tuples or 0

    def send(self, statement: Statement, params: Params | None = None) -> None:
        if isinstance(statement, Prepared):
            self._add(statement, params)
        else:
            super().send(statement, params)

    def executemany(self, statement: Statement, params: list[Params]) -> None:
        if isinstance(statement, Prepared):
            for each in params:
                self._add(statement, each)
        else:
            super().executemany(statement, params)

    def send_text(self, text: str, params: Iterable[Sequence[Any] | Mapping[str, Any]]) -> None:
        command, names = _numbered(text)
        for each in params:
            values = [each[n] for n in names] if isinstance(each, Mapping) else each
            self._pipeline.add(command, values)

    @contextmanager
    def limited(self, seconds: float, advice: str) -> Iterator[None]:
        self._limit = limit = Limit.of(seconds, advice)
        # Of each statement: between those of a cursor somebody has to look at the time.
        self._do(f"SET LOCAL statement_timeout = '{round(seconds * 1000)}ms'")
        try:
            yield
        except errors.QueryCanceled as error:
            raise limit.error from error
        finally:
            self._limit = None

    def _do(self, command: str) -> None:
        # Not by the driver, which forgets what it has prepared, and has the session do so, too.
        self._pipeline.add(command.encode())

    def _add(self, statement: Prepared, params: Params | None) -> tuple[Compiled, Sent]:
        compiled = statement.compiled(_NUMBERED)
        return compiled, self._pipeline.add(compiled.command, compiled.bind_in_order(params))


@cache
def _numbered(text: str) -> tuple[bytes, tuple[str, ...]]:
    """SQL of the driver's, with `%s` or `%(name)s` for values, as the server takes it.

    Returns:
        The SQL, and the names in the order of the numbers.
    """
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        name = found[1] or f"{len(names)}"
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    command = _PLACE.sub(number, text)
    return command.encode(), tuple(names)
