"""Pipeline: commands that go to Postgres together, and cost one wait however many they are.

Past the driver's cursors, which take several times as long as the server does for statements
as short as ours, and wait for the answer to each before they send the next.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import psycopg
from psycopg import errors
from psycopg.adapt import PyFormat, Transformer
from psycopg.generators import fetch_many, send
from psycopg.pq import ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

_SAID = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)


@dataclass(slots=True, eq=False)
class Sent:
    """A command. `result` is the server's answer, once there is one."""

    command: bytes
    values: Sequence[Any] | None
    types: tuple[int, ...]
    formats: Sequence[Format]
    result: PGresult | None = None


class Pipeline:
    """The commands to one connection.

    Each is prepared at its first use: there are few of them, and they are used all the time.

    Args:
        raw: The driver's connection. It may be used beside this one whenever nothing is waiting.
    """

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self.raw = raw
        self._pgconn = raw.pgconn
        self._transformer = Transformer(raw)
        self._waiting: list[Sent] = []
        # By their text and the types of their values.
        self._prepared: dict[tuple[bytes, tuple[int, ...]], bytes] = {}
        self._numbers = count()

    def add(self, command: bytes, values: Sequence[Any] = ()) -> Sent:
        """Have `command` sent with the next `flush`.

        Args:
            command: One statement, with `$1`, `$2`... for its values.

        Raises:
            psycopg.DataError, psycopg.ProgrammingError: a value that has no form there.
        """
        adapt = self._transformer
        if values:
            dumped = adapt.dump_sequence(values, [PyFormat.AUTO] * len(values))
            sent = Sent(command, dumped, adapt.types or (), adapt.formats or ())
        else:
            sent = Sent(command, None, (), ())
        self._waiting.append(sent)
        return sent

    def flush(self) -> None:
        """Send what is waiting, and wait for all answers.

        Raises:
            psycopg.Error: what the server said of the first that failed; it did none of those
                after it. Or the connection is lost, and it said nothing of the rest.
        """
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._exchange(waiting)

    def rows(self, sent: Sent) -> list[tuple[Any, ...]]:
        """What a command returned. Flushes if it is still waiting."""
        if sent.result is None:
            self.flush()
        if sent.result is None:
            raise psycopg.InterfaceError("A command was not sent: one before it had failed")
        self._transformer.set_pgresult(sent.result)
        return self._transformer.load_rows(0, sent.result.ntuples, tuple)

    def end(self, command: bytes) -> None:
        """End the transaction at hand, if it was begun, and send nothing of what is waiting.

        A connection that cannot even do this is of no use to the next operation, and closed.
        """
        self._waiting = []
        if self._pgconn.transaction_status != TransactionStatus.IDLE:
            self.add(command)
            try:
                self.flush()
            except psycopg.Error:
                self.raw.close()

    def _exchange(self, waiting: list[Sent]) -> None:
        pgconn = self._pgconn
        new: dict[tuple[bytes, tuple[int, ...]], bytes] = {}
        answering: list[Sent | None] = []
        answers: list[PGresult] = []
        pgconn.enter_pipeline_mode()
        try:
            for sent in waiting:
                key = sent.command, sent.types
                name = self._prepared.get(key) or new.get(key)
                if name is None:
                    name = new[key] = b"threadhold_%d" % next(self._numbers)
                    pgconn.send_prepare(name, sent.command, param_types=sent.types)
                    answering.append(None)
                pgconn.send_query_prepared(
                    name, sent.values, param_formats=sent.formats, result_format=Format.TEXT
                )
                answering.append(sent)
            pgconn.pipeline_sync()
            # With the answer to the sync.
            self.raw.wait(_talk(pgconn, len(answering) + 1, answers))
            pgconn.exit_pipeline_mode()
        except BaseException:
            # What was not read would be taken for the answers to what is asked next.
            self.raw.close()
            self._judge(answering, answers)
            raise
        self._judge(answering, answers)
        self._prepared |= new

    def _judge(self, answering: list[Sent | None], answers: list[PGresult]) -> None:
        """Give each command its answer, up to the first that failed."""
        for sent, result in zip(answering, answers, strict=False):
            if sent is not None:
                sent.result = result
            if result.status not in _SAID:
                error = errors.error_from_result(result, self.raw.info.encoding)
                if isinstance(error, errors.InvalidSqlStatementName):
                    self._prepared.clear()
                raise error


def _talk(pgconn: PGconn, expected: int, answers: list[PGresult]) -> Generator[Any, Any, None]:
    yield from send(pgconn)
    while len(answers) < expected:
        answers.append((yield from fetch_many(pgconn))[-1])
