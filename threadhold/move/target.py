"""Target: the Postgres database, with the stored progress of the move."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime

import psycopg

from langgraph_runtime_sql.database.postgres.engine import PostgresEngine
from langgraph_runtime_sql.database.postgres.ownership import PostgresOwnership
from langgraph_runtime_sql.database.shared_lock import exclusive_lock
from langgraph_runtime_sql.errors import DatabaseInUse, DatabaseOverloaded
from langgraph_runtime_sql.tenancy import scope
from threadhold.move.errors import MoveFailed, MoveRefused
from threadhold.move.field import quoted
from threadhold.move.part import Key, Part, first_line
from threadhold.move.part import Target as Raw
from threadhold.move.schema import Schema

_LEDGER = (
    """
    CREATE TABLE IF NOT EXISTS moves (
        source TEXT PRIMARY KEY,
        fingerprint TEXT NOT NULL,
        begun_at TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT now(),
        finished_at TIMESTAMP WITH TIME ZONE
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS move_parts (
        name TEXT PRIMARY KEY,
        count BIGINT NOT NULL,
        checksum TEXT NOT NULL,
        moved BIGINT NOT NULL DEFAULT 0,
        after JSONB
    )
    """,
)


@dataclass
class Stage:
    """Progress of one part.

    Attributes:
        count, checksum: Of the source's rows.
        moved: Rows copied to the target.
        after: Key of the last copied row.
    """

    count: int
    checksum: str
    moved: int = 0
    after: Key | None = None


@dataclass(frozen=True)
class StartedMove:
    """A started or finished move into this database."""

    source: str
    fingerprint: str
    finished_at: datetime | None


class Target:
    """The target database.

    Attributes:
        raw: The connection.
    """

    def __init__(self, raw: Raw) -> None:
        self.raw = raw

    def has(self, table: str) -> bool:
        """Return whether the table exists."""
        [(found,)] = self.raw.execute("SELECT to_regclass(%s)", (quoted(table),)).fetchall()
        return found is not None

    def started(self) -> StartedMove | None:
        """Return the move into this database, or None."""
        if not self.has("moves"):
            return None
        row = self.raw.execute("SELECT source, fingerprint, finished_at FROM moves").fetchone()
        return None if row is None else StartedMove(*row)

    def check_empty(self, schemas: Iterable[Schema], parts: Iterable[Part]) -> None:
        """Refuse a database that has other programs' tables, or rows.

        Raises:
            MoveRefused: the database is not empty.
        """
        found = [part.name for part in parts if self.has(part.name)]
        if found and not any(self.has(schema.versions) for schema in schemas):
            raise MoveRefused(
                f"The target has tables of another program ({', '.join(found)}): "
                "create an empty database for the move"
            )
        for name in found:
            if (
                self.raw.execute(f"SELECT FROM {quoted(name)} LIMIT 1".encode()).fetchone()
                is not None
            ):
                raise MoveRefused(
                    f"The target holds data already: its table {name} has rows. Data is moved "
                    "into an empty database only: create a new one, or drop and create this one"
                )

    def start(self, source: str, fingerprint: str, stages: dict[str, Stage]) -> None:
        """Record the start of a move, with counts and checksums of the source."""
        with self.raw.transaction():
            for statement in _LEDGER:
                self.raw.execute(statement)
            self.raw.execute(
                "INSERT INTO moves (source, fingerprint) VALUES (%s, %s)", (source, fingerprint)
            )
            for name, stage in stages.items():
                self.raw.execute(
                    "INSERT INTO move_parts (name, count, checksum) VALUES (%s, %s, %s)",
                    (name, stage.count, stage.checksum),
                )

    def stages(self) -> dict[str, Stage]:
        """Return the progress of each part by its name."""
        rows = self.raw.execute("SELECT name, count, checksum, moved, after::text FROM move_parts")
        return {
            name: Stage(count, checksum, moved, None if after is None else _key(after))
            for name, count, checksum, moved, after in rows
        }

    def save_progress(self, name: str, stage: Stage) -> None:
        """Store the progress of a part, in the caller's transaction."""
        self.raw.execute(
            "UPDATE move_parts SET moved = %s, after = %s::jsonb WHERE name = %s",
            (stage.moved, json.dumps(stage.after, default=_as_json), name),
        )

    def advance_sequences(self, table: str, last: int) -> None:
        """Make the table's sequences continue after `last` and after all of its rows."""
        for column in self._sequence_columns(table):
            statement = f"SELECT coalesce(max({quoted(column)}), 0) FROM {quoted(table)}"
            [(found,)] = self.raw.execute(statement.encode()).fetchall()
            if highest := max(found, last):
                self.raw.execute(
                    "SELECT setval(pg_get_serial_sequence(%s, %s), %s)",
                    (quoted(table), column, highest),
                )

    def _sequence_columns(self, table: str) -> list[str]:
        """Return the columns of a table that a sequence fills."""
        rows = self.raw.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
            " AND NOT attisdropped AND pg_get_serial_sequence(%s, attname) IS NOT NULL",
            (quoted(table), quoted(table)),
        )
        return [str(name) for (name,) in rows]

    def finish(self, parts: Sequence[Part]) -> None:
        """Record the end of the move, and update the planner's statistics."""
        with self.raw.transaction():
            self.raw.execute("UPDATE moves SET finished_at = now()")
            # Keys are data of tenants.
            self.raw.execute("UPDATE move_parts SET after = NULL")
        for part in parts:
            # Otherwise Postgres plans the first queries for empty tables.
            self.raw.execute(f"ANALYZE {quoted(part.name)}".encode())


@contextmanager
def opened(url: str) -> Iterator[Target]:
    """Open the database exclusively: no server and no other move can use it meanwhile.

    Raises:
        MoveRefused: the database is in use.
        MoveFailed: Postgres cannot be reached, or stopped answering.
    """
    engine = PostgresEngine(url)
    ownership = PostgresOwnership(engine)
    with ExitStack() as stack:
        stack.callback(_release, ownership)
        try:
            ownership.take()
            stack.enter_context(exclusive_lock(url))
        except DatabaseInUse as error:
            raise MoveRefused(f"{error} A move needs exclusive access.") from error
        except DatabaseOverloaded as error:
            raise MoveFailed(str(error)) from error
        try:
            with engine.open() as raw:
                # No other process may use the database, so long locks block nothing.
                raw.execute("SET lock_timeout = 0")
                raw.execute("SET idle_in_transaction_session_timeout = 0")
                # See the rows of all tenants.
                for name, value in scope.EVERYTHING.settings.items():
                    raw.execute("SELECT set_config(%s, %s, false)", (name, value))
                yield Target(raw)
        except psycopg.OperationalError as error:
            raise MoveFailed(
                f"Postgres stopped answering: {first_line(error)}. Run the same command again: "
                "it continues after the last batch"
            ) from error
        except psycopg.Error as error:
            raise MoveFailed(f"Postgres refuses: {first_line(error)}") from error


def _release(ownership: PostgresOwnership) -> None:
    with suppress(psycopg.Error):
        ownership.release()


def _as_json(value: bytes) -> dict[str, str]:
    """Return the bytes of an id as JSON."""
    return {"bytes": value.hex()}


def _key(text: str) -> Key:
    """Return the key that `save_progress` has stored."""
    return tuple(json.loads(text, object_hook=lambda found: bytes.fromhex(found["bytes"])))
