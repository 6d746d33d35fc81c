"""Pipeline: several commands reach Postgres together and cost one round trip.

It bypasses the driver's cursors. For statements as short as ours they take several times as long as
the server, and they wait for each answer before they send the next command.
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

_OK = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)


@dataclass(slots=True, eq=False)
class Sent:
    """A command. `result` is the server's answer, once it has arrived."""

    command: bytes
    values: Sequence[Any] | None
    types: tuple[int, ...]
    formats: Sequence[Format]
    result: PGresult | None = None


class Pipeline:
    """The commands to one connection.

    Each is prepared at its first use: there are few of them, and they repeat.

    Args:
        raw: The driver's connection. It may be used directly whenever no command is waiting.

    Attributes:
        audit_head: The `audit.chain.Head` of the connection's chain; None before its first entry.
    """

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self.raw = raw
        self._pgconn = raw.pgconn
        self._transformer = Transformer(raw)
        self._waiting: list[Sent] = []
        # The prepared statements' names, by text and the types of their values.
        self._prepared: dict[tuple[bytes, tuple[int, ...]], bytes] = {}
        self._numbers = count()
        self.audit_head: Any = None

    def add(self, command: bytes, values: Sequence[Any] = ()) -> Sent:
        """Queue `command` for the next `flush`.

        Args:
            command: One statement, with `$1`, `$2`... for its values.
            values: The values.

        Raises:
            psycopg.DataError, psycopg.ProgrammingError: a value cannot be encoded.
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
        """Send the waiting commands, and wait for all answers.

        Raises:
            psycopg.Error: the error of the first failed command. The server skips all later ones.
                If the connection is lost, their outcome is unknown.
        """
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._exchange(waiting)

    def rows(self, sent: Sent) -> list[tuple[Any, ...]]:
        """Return the rows of a command. Flushes if it is still waiting."""
        if sent.result is None:
            self.flush()
        if sent.result is None:
            raise psycopg.InterfaceError(
                "A command was not executed, because an earlier one failed"
            )
        self._transformer.set_pgresult(sent.result)
        return self._transformer.load_rows(0, sent.result.ntuples, tuple)

    def end(self, command: bytes) -> None:
        """End the transaction, if one has begun, and drop the waiting commands.

        A failure closes the connection, which the next operation could not use.
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
            # One more than the commands: the answer to the sync.
            self.raw.wait(_talk(pgconn, len(answering) + 1, answers))
            pgconn.exit_pipeline_mode()
        except BaseException:
            # Unread answers would be taken for those of the next commands.
            self.raw.close()
            self._assign(answering, answers)
            raise
        self._assign(answering, answers)
        self._prepared |= new

    def _assign(self, answering: list[Sent | None], answers: list[PGresult]) -> None:
        """Assign each command its answer; raise at the first failed one."""
        for sent, result in zip(answering, answers, strict=False):
            if sent is not None:
                sent.result = result
            if result.status not in _OK:
                error = errors.error_from_result(result, self.raw.info.encoding)
                if isinstance(error, errors.InvalidSqlStatementName):
                    self._prepared.clear()
                raise error


def _talk(pgconn: PGconn, expected: int, answers: list[PGresult]) -> Generator[Any, Any, None]:
    yield from send(pgconn)
    while len(answers) < expected:
        answers.append((yield from fetch_many(pgconn))[-1])
