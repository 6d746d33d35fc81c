"""The target: a Postgres database that nobody serves, and how far the move into it has come."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg import sql

from langgraph_runtime_sql.database.postgres.engine import PostgresEngine
from langgraph_runtime_sql.database.postgres.ownership import PostgresOwnership
from langgraph_runtime_sql.database.shared_lock import exclusive_lock
from langgraph_runtime_sql.errors import DatabaseInUse, DatabaseOverloaded
from langgraph_runtime_sql.tenancy import scope
from threadhold.move.errors import MoveFailed, MoveRefused
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
    """How far one part has come.

    Attributes:
        count, checksum: Of the source's rows.
        moved: How many are in the target.
        after: Key of the last of them.
    """

    count: int
    checksum: str
    moved: int = 0
    after: Key | None = None


@dataclass(frozen=True)
class Begun:
    """A move into this database, whether finished or not."""

    source: str
    fingerprint: str
    finished_at: datetime | None


class Target:
    """The database.

    Attributes:
        raw: A connection to it.
    """

    def __init__(self, raw: Raw) -> None:
        self.raw = raw

    def has(self, table: str) -> bool:
        """Whether there is a table of this name."""
        [(found,)] = self.raw.execute("SELECT to_regclass(%s)", (_name(table),)).fetchall()
        return found is not None

    def begun(self) -> Begun | None:
        """The move that was begun, if one was."""
        if not self.has("moves"):
            return None
        row = self.raw.execute("SELECT source, fingerprint, finished_at FROM moves").fetchone()
        return None if row is None else Begun(*row)

    def check_empty(self, schemas: Iterable[Schema], parts: Iterable[Part]) -> None:
        """Refuse a database that holds anything of others, or of a server.

        Raises:
            MoveRefused: it does.
        """
        found = [part.name for part in parts if self.has(part.name)]
        if found and not any(self.has(schema.versions) for schema in schemas):
            raise MoveRefused(
                f"The target has tables of somebody else ({', '.join(found)}): "
                "move into a database of its own"
            )
        for name in found:
            statement = sql.SQL("SELECT FROM {} LIMIT 1").format(sql.Identifier(name))
            if self.raw.execute(statement).fetchone() is not None:
                raise MoveRefused(
                    f"The target holds data already: its table {name} has rows. Data is moved "
                    "into an empty database only, so make a new one, or drop and create this one"
                )

    def begin(self, source: str, fingerprint: str, stages: dict[str, Stage]) -> None:
        """Note that a move begins, and what it has to bring."""
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
        """How far each part has come, by its name."""
        rows = self.raw.execute("SELECT name, count, checksum, moved, after::text FROM move_parts")
        return {
            name: Stage(count, checksum, moved, None if after is None else tuple(json.loads(after)))
            for name, count, checksum, moved, after in rows
        }

    def note(self, name: str, stage: Stage) -> None:
        """Note how far a part has come, in the caller's transaction."""
        self.raw.execute(
            "UPDATE move_parts SET moved = %s, after = %s::jsonb WHERE name = %s",
            (stage.moved, json.dumps(stage.after), name),
        )

    def count_on(self, table: str, last: int) -> None:
        """Give rows that are added to a table numbers behind `last` and all that are there."""
        for column in self._counted(table):
            name = sql.Identifier(table)
            statement = sql.SQL("SELECT coalesce(max({}), 0) FROM {}")
            [(most,)] = self.raw.execute(statement.format(sql.Identifier(column), name)).fetchall()
            if most := max(most, last):
                self.raw.execute(
                    "SELECT setval(pg_get_serial_sequence(%s, %s), %s)",
                    (_name(table), column, most),
                )

    def _counted(self, table: str) -> list[str]:
        """The columns of a table that a sequence fills."""
        rows = self.raw.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
            " AND NOT attisdropped AND pg_get_serial_sequence(%s, attname) IS NOT NULL",
            (_name(table), _name(table)),
        )
        return [str(name) for (name,) in rows]

    def finish(self, parts: Sequence[Part]) -> datetime:
        """Note that everything has been moved; when."""
        with self.raw.transaction():
            [(when,)] = self.raw.execute(
                "UPDATE moves SET finished_at = now() RETURNING finished_at"
            ).fetchall()
            # Keys are tenants' own.
            self.raw.execute("UPDATE move_parts SET after = NULL")
        for part in parts:
            # Or else its first readers would be planned for empty tables.
            self.raw.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(part.name)))
        found: datetime = when
        return found


@contextmanager
def opened(url: str) -> Iterator[Target]:
    """The database, while nobody can serve it or bring anything into it.

    Raises:
        MoveRefused: it is in use.
        MoveFailed: the server cannot be reached, or is gone.
    """
    engine = PostgresEngine(url)
    ownership = PostgresOwnership(engine)
    with ExitStack() as stack:
        stack.callback(_release, ownership)
        try:
            ownership.take()
            stack.enter_context(exclusive_lock(url))
        except DatabaseInUse as error:
            raise MoveRefused(f"{error} A move needs it for itself.") from error
        except DatabaseOverloaded as error:
            raise MoveFailed(str(error)) from error
        try:
            with engine.open() as raw:
                # Nobody else has any business here that it could be in the way of.
                for setting in ("lock_timeout", "idle_in_transaction_session_timeout"):
                    raw.execute(sql.SQL("SET {} = 0").format(sql.Identifier(setting)))
                # Of all tenants.
                for name, value in scope.EVERYTHING.settings.items():
                    raw.execute("SELECT set_config(%s, %s, false)", (name, value))
                yield Target(raw)
        except psycopg.OperationalError as error:
            raise MoveFailed(
                f"Postgres does not answer any more: {first_line(error)}. Do the same again: what "
                "has been moved is kept, and the rest follows"
            ) from error
        except psycopg.Error as error:
            raise MoveFailed(f"Postgres refuses: {first_line(error)}") from error


def _release(ownership: PostgresOwnership) -> None:
    with suppress(psycopg.Error):
        ownership.release()


def _name(table: str) -> Any:
    return '"' + table.replace('"', '""') + '"'
