"""Postgres connections: statements are sent to the server in pipelines."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from psycopg import errors
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from langgraph_runtime_sql.clock import STEP
from langgraph_runtime_sql.database.connection import Connection, Limit, Prefetched
from langgraph_runtime_sql.database.postgres.pipeline import Pipeline, Sent
from langgraph_runtime_sql.database.statements import Compiled, Params, Prepared, Row, Statement
from langgraph_runtime_sql.database.visibility import Visibility

DIALECT: Any = PGDialect_psycopg()  # type: ignore[no-untyped-call]
# The same dialect with the server's own parameters, `$1`, `$2`.
_NUMBERED: Any = PGDialect_psycopg(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]
_SET = b"SELECT set_config($1, $2, true)"
# Not `now()`, the start of the transaction: a transaction that waited for a thread's lock must
# get a later time than the one that held it.
_NOW = b"SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
# Our statements contain no other `%`.
_PLACE = re.compile(r"%(?:\((\w+)\))?s")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class PostgresConnection(Connection):
    """A transaction on Postgres. It begins with its first statement.

    Args:
        pipeline: The connection's pipeline.
        begin: The command that begins the transaction.
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
        """Return the driver's connection, for statements outside the pipeline."""
        self._pipeline.flush()
        return self._raw

    @property
    def session(self) -> Pipeline:
        """Return the connection's pipeline, which lives as long as the connection."""
        return self._pipeline

    def now(self) -> datetime:
        """Return the server's time at the first call, or at `prefetch_now`; then later times."""
        if self._last_now is None:
            [[microseconds]] = self._pipeline.rows(self.prefetch_now())
            self._last_now = _EPOCH + timedelta(microseconds=microseconds)
        else:
            self._last_now += STEP
        return self._last_now

    def prefetch_now(self) -> Sent:
        if self._time is None:
            self._time = self._pipeline.add(_NOW)
        return self._time

    def prefetch(self, statement: Statement, params: Params | None = None) -> Prefetched:
        if not isinstance(statement, Prepared):
            return super().prefetch(statement, params)
        compiled, sent = self._add(statement, params)
        return Prefetched(lambda: self._opened(compiled, compiled.rows(self._pipeline.rows(sent))))

    def fetchall(self, statement: Statement, params: Params | None = None) -> list[Row]:
        if not isinstance(statement, Prepared):
            return super().fetchall(statement, params)
        return self.prefetch(statement, params).all()

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
        # The timeout applies to each statement; cursors call `check_deadline` in between.
        self._do(f"SET LOCAL statement_timeout = '{round(seconds * 1000)}ms'")
        # The best plan of a search depends on its values.
        self._do("SET LOCAL plan_cache_mode = auto")
        try:
            yield
        except errors.QueryCanceled as error:
            raise limit.error from error
        finally:
            self._limit = None

    def _do(self, command: str) -> None:
        # Not through the driver, which deallocates all prepared statements after a rollback.
        self._pipeline.add(command.encode())

    def _add(self, statement: Prepared, params: Params | None) -> tuple[Compiled, Sent]:
        compiled = (statement.locking if self.locks else statement).compiled(_NUMBERED)
        return compiled, self._pipeline.add(compiled.command, compiled.bind_in_order(params))


@cache
def _numbered(text: str) -> tuple[bytes, tuple[str, ...]]:
    """Convert the driver's `%s` or `%(name)s` to the server's `$1`.

    Returns:
        The SQL, and the names in the order of their numbers.
    """
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        name = found[1] or f"{len(names)}"
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    command = _PLACE.sub(number, text)
    return command.encode(), tuple(names)
