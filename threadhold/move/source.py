"""Source: the SQLite file, read in one transaction and never written."""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from langgraph_runtime_sql.database.shared_lock import exclusive_lock
from langgraph_runtime_sql.database.sqlite.ownership import Ownership
from langgraph_runtime_sql.errors import DatabaseInUse
from threadhold.move.errors import MoveRefused
from threadhold.move.field import quoted
from threadhold.move.part import Part
from threadhold.move.schema import Schema

# Version tables of langgraph's store.
_VERSIONS = {"store_migrations", "vector_migrations"}


class Source:
    """The source file in one read transaction.

    Attributes:
        path: Its path.
        raw: The connection.
    """

    def __init__(self, path: Path, raw: sqlite3.Connection) -> None:
        self.path = path
        self.raw = raw
        self._tables = {
            str(name): str(statement or "")
            for name, statement in raw.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'table'"
            )
        }

    def fingerprint(self) -> str:
        """Return a text that changes with each write to the file."""
        parts = [self.path, self.path.with_name(f"{self.path.name}-wal")]
        found = (part.stat() for part in parts if part.exists())
        return " ".join(f"{each.st_size}@{each.st_mtime_ns}" for each in found if each.st_size)

    def has(self, table: str) -> bool:
        """Return whether the table exists."""
        return table in self._tables

    def count(self, part: Part) -> int:
        """Return the number of rows of a part; 0 if its table does not exist."""
        if not self.has(part.source):
            return 0
        row = self.raw.execute(f"SELECT count(*) FROM {quoted(part.source)}").fetchone()
        return int(row[0])

    def last_number(self, table: str) -> int:
        """Return the last AUTOINCREMENT number of a table; 0 if it has none."""
        if not self.has("sqlite_sequence"):
            return 0
        row = self.raw.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)
        ).fetchone()
        return 0 if row is None else int(row[0])

    def check(self, schemas: Iterable[Schema], parts: Iterable[Part]) -> None:
        """Check the schema version of the file.

        Raises:
            MoveRefused: the file is older or newer than this program.
        """
        for schema in schemas:
            self._check_version(schema)
        for part in parts:
            if not self.has(part.source):
                continue
            rows = self.raw.execute(f"PRAGMA table_info({quoted(part.source)})")
            found = {str(row[1]) for row in rows}
            if missing := sorted(set(part.columns) - found):
                raise self._older(f"{part.source} has no {', '.join(missing)}")
            if unknown := sorted(found - set(part.columns)):
                raise self._newer(f"{part.source} has {', '.join(unknown)}")

    def _check_version(self, schema: Schema) -> None:
        if not self.has(schema.versions):
            if schema.required:
                raise MoveRefused(
                    f"{self.path} is no database of Threadhold: it has no {schema.versions}"
                )
            return
        rows = self.raw.execute(f"SELECT version_num FROM {quoted(schema.versions)}")
        found = {str(version) for (version,) in rows}
        if unknown := sorted(found - schema.known()):
            raise self._newer(f"it has had {', '.join(unknown)}")
        if found != schema.heads:
            raise self._older(f"it is at {', '.join(sorted(found)) or 'no revision'}")

    def _older(self, why: str) -> MoveRefused:
        return MoveRefused(
            f"{self.path} is of an older version ({why}). Bring it up to date first: "
            f"threadhold migrate --database-url sqlite:///{self.path}"
        )

    def _newer(self, why: str) -> MoveRefused:
        return MoveRefused(
            f"{self.path} is of a newer version ({why}): move it with the version of Threadhold "
            "that has served it last"
        )

    def unknown_tables(self, known: Iterable[str]) -> list[str]:
        """Return the tables that are neither in `known` nor SQLite's own."""
        derived = tuple(
            f"{name}_" for name, statement in self._tables.items() if "VIRTUAL TABLE" in statement
        )
        return sorted(
            name
            for name, statement in self._tables.items()
            if name not in known
            and name not in _VERSIONS
            and "VIRTUAL TABLE" not in statement
            and not name.startswith(("sqlite_", *derived))
        )

    def orphans(self, limit: int) -> Iterator[str]:
        """Describe up to `limit` rows whose parent is missing, which Postgres would refuse."""
        found = self.raw.execute("PRAGMA foreign_key_check")
        for table, row, parent, _ in found.fetchmany(limit):
            where = f"row {row}" if row is not None else "a row"
            yield f"{table}: {where} belongs to a row of {parent} that does not exist"


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """Open the file exclusively: no server and no other move can use it meanwhile.

    Raises:
        MoveRefused: the file does not exist, is in use, or is no SQLite database.
    """
    if not path.is_file():
        raise MoveRefused(f"There is no database at {path}")
    if not os.access(path.parent, os.W_OK):
        raise MoveRefused(f"{path.parent} cannot be written to, where SQLite keeps its locks")
    ownership = Ownership(path)
    with ExitStack() as stack:
        stack.callback(ownership.release)
        try:
            ownership.take()
            stack.enter_context(exclusive_lock(f"sqlite:///{path}"))
        except DatabaseInUse as error:
            raise MoveRefused(f"{error} A move needs exclusive access.") from error
        raw = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)
        stack.callback(raw.close)
        # Invalid UTF-8 must not fail here: the check reports it with its row.
        raw.text_factory = _text
        try:
            raw.execute("BEGIN")
            yield Source(path, raw)
        except sqlite3.DatabaseError as error:
            raise MoveRefused(f"{path} cannot be read: {error}") from error


def _text(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")
