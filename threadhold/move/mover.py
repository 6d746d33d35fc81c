"""Mover: check all rows, copy them in batches, compare both databases."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import psycopg

from langgraph_runtime_sql.database.url import database_path, is_postgres, shown
from langgraph_runtime_sql.progress import Progress, Report
from langgraph_runtime_sql.store import postgres_rows
from langgraph_runtime_sql.tenancy import row_security
from threadhold.move import source, target
from threadhold.move.canonical import Checksum
from threadhold.move.errors import MoveFailed, MoveFinished, MoveRefused, Unmovable
from threadhold.move.langgraph_tables import VectorPart, store
from threadhold.move.part import Entry, Part, Row, TablePart, describe_key, first_line
from threadhold.move.schema import Schema
from threadhold.move.source import Source
from threadhold.move.target import Stage, Target

# A batch is one transaction. It is held in memory, and repeated after a crash.
BATCH_ROWS = 500
BATCH_BYTES = 4 * 2**20
# Rows that a message names.
_MAX_PROBLEMS = 20
# Characters of an id in a message.
_MAX_ID_LENGTH = 200
# Rows whose digests are compared at a time, if checksums differ.
_ROWS_IN_MEMORY = 100_000
_REFUSED = (psycopg.DataError, psycopg.IntegrityError, psycopg.errors.ProgramLimitExceeded)


@dataclass(frozen=True)
class Moved:
    """Result of a move.

    Attributes:
        rows: Number of rows of each table in the target.
        unknown: Tables of the source that were not moved, because no schema has them.
    """

    rows: dict[str, int]
    unknown: list[str]


def move(
    from_url: str,
    to_url: str,
    schemas: Sequence[Schema],
    report: Report,
) -> Moved:
    """Move all data from a SQLite file into a Postgres database, or continue an interrupted move.

    The file is only read. Each batch is committed, so the same call continues after a crash.

    Args:
        from_url: `sqlite:///path/to/file.db`
        to_url: `postgresql://user:password@host/database`, an empty database.
        schemas: Tables to move besides langgraph's own.
        report: Called with the progress of the phases `Checking`, `Moving` and `Comparing`, each of
            which reads all rows.

    Raises:
        MoveRefused: a database is in use, of another version or kind, or not empty.
        MoveFinished: the move was finished before.
        Unmovable: Postgres cannot hold some rows.
        MoveFailed: Postgres stopped answering, or the copied rows differ.
    """
    if from_url == to_url:
        raise MoveRefused("--from and --to name the same database")
    if is_postgres(from_url) or not is_postgres(to_url):
        raise MoveRefused(
            "Data is moved from a SQLite file to Postgres: "
            "--from sqlite:///path/to/file.db --to postgresql://user:password@host/database"
        )
    path = database_path(from_url)
    with source.opened(path) as opened_source, target.opened(to_url) as opened_target:
        return _Move(opened_source, opened_target, to_url, schemas, report).run()


class _Move:
    def __init__(
        self,
        opened_source: Source,
        opened_target: Target,
        to_url: str,
        schemas: Sequence[Schema],
        report: Report,
    ) -> None:
        self.source, self.target, self.url = opened_source, opened_target, to_url
        self.schemas, self.report = schemas, report
        self.tables = [TablePart(table) for schema in schemas for table in schema.tables]
        vectors = VectorPart()
        self.all_parts: list[Part] = [*self.tables, TablePart(store), vectors]
        self.parts = [part for part in self.all_parts if opened_source.has(part.source)]
        self.dimensions = (
            vectors.dimensions(opened_source.raw) if opened_source.has(vectors.source) else None
        )
        if self.dimensions is None and vectors in self.parts:
            # Without vectors, the server creates the table once an index is configured.
            self.parts.remove(vectors)

    def run(self) -> Moved:
        self.source.check(self.schemas, self.parts)
        started = self.target.started()
        if started is None:
            self.target.check_empty(self.schemas, self.all_parts)
        else:
            self._check_same(started)
        self._create()
        if started is None:
            self.target.start(str(self.source.path), self.source.fingerprint(), self._check())
        stages = self.target.stages()
        self._copy(stages)
        self._compare(stages)
        for part in self.tables:
            if part in self.parts:
                self.target.advance_sequences(part.name, self.source.last_number(part.source))
        self.target.finish(self.parts)
        # The runs have brought their counters.
        known = {part.source for part in self.all_parts} | {"tenant_runs"}
        known |= {schema.versions for schema in self.schemas}
        return Moved(
            {part.name: stages[part.name].count for part in self.parts},
            self.source.unknown_tables(known),
        )

    def _check_same(self, started: target.StartedMove) -> None:
        """Refuse to continue the move of another or a changed file."""
        again = "create a new, empty database, or drop and create this one"
        if started.source != str(self.source.path):
            raise MoveRefused(f"The target holds what was moved from {started.source}: {again}")
        changed = started.fingerprint != self.source.fingerprint()
        if started.finished_at is not None:
            when = started.finished_at.isoformat(sep=" ", timespec="seconds")
            since = " The file has changed since, and its new data is not there." * changed
            raise MoveFinished(
                f"Everything in {self.source.path} was moved to {shown(self.url)} at {when}, and "
                f"compared. There is nothing left to do: serve it from there.{since}"
            )
        if changed:
            raise MoveRefused(
                f"{self.source.path} has changed since the move began, so the copied rows "
                f"may be out of date. To start again, {again}"
            )

    def _create(self) -> None:
        for schema in self.schemas:
            if self.source.has(schema.versions):
                schema.create(self.url)
        if self.dimensions is not None:
            postgres_rows.ensure_tables(self.target.raw, self.dimensions)
            row_security.ensure(self.target.raw)

    # --- checking ---

    def _check(self) -> dict[str, Stage]:
        """Count and checksum all rows, and check that Postgres can hold them.

        Raises:
            Unmovable: Postgres cannot hold some rows.
        """
        problems = list(self.source.orphans(_MAX_PROBLEMS))
        count = len(problems)
        stages: dict[str, Stage] = {}
        progress = self._progress("Checking")
        for part in self.parts:
            checksum = Checksum()
            for entry in part.entries(self.source.raw):
                problem = entry.problem
                if entry.row is not None:
                    checksum.add(part.digest(entry.row))
                    problem = part.refusal(self.target.raw, entry.row)
                if problem is not None:
                    count += 1
                    if count <= _MAX_PROBLEMS:
                        problems.append(
                            f"{part.source} {_short(describe_key(entry.key))}: {problem}"
                        )
                progress(1)
            stages[part.name] = Stage(checksum.rows, str(checksum))
        if problems:
            raise Unmovable(problems, count)
        return stages

    def _progress(self, phase: str, done: int = 0) -> Callable[[int], None]:
        """Return a function that counts rows of a phase and reports the progress."""
        total = sum(self.source.count(part) for part in self.parts)

        def add(rows: int) -> None:
            nonlocal done
            done += rows
            self.report(Progress(phase, done, total))

        add(0)
        return add

    # --- copying ---

    def _copy(self, stages: dict[str, Stage]) -> None:
        progress = self._progress("Moving", sum(stage.moved for stage in stages.values()))
        for part in self.parts:
            stage = stages[part.name]
            for batch in _batches(part.entries(self.source.raw, stage.after)):
                rows = [entry.row for entry in batch if entry.row is not None]
                stage.moved, stage.after = stage.moved + len(rows), batch[-1].key
                with self.target.raw.transaction():
                    refused = self._put(part, rows)
                    if not refused:
                        self.target.save_progress(part.name, stage)
                if refused:
                    raise Unmovable(refused[:_MAX_PROBLEMS], len(refused))
                progress(len(rows))

    def _put(self, part: Part, rows: Sequence[Row]) -> list[str]:
        """Write rows, and return a message for each row that the target refuses."""
        try:
            with self.target.raw.transaction():
                part.write(self.target.raw, rows)
        except _REFUSED as error:
            if len(rows) == 1:
                return [f"{part.source} {_short(part.describe(rows[0]))}: {first_line(error)}"]
            half = len(rows) // 2
            return self._put(part, rows[:half]) + self._put(part, rows[half:])
        return []

    # --- comparing ---

    def _compare(self, stages: dict[str, Stage]) -> None:
        """Compare the rows of the target with the checksums of the source.

        Raises:
            MoveFailed: rows differ.
        """
        progress = self._progress("Comparing")
        differences = []
        for part in self.parts:
            stage, found = stages[part.name], Checksum()
            for row in part.stored(self.target.raw):
                found.add(part.digest(row))
                progress(1)
            if (found.rows, str(found)) != (stage.count, stage.checksum):
                differences.append(self._difference(part, stage, found))
        if differences:
            raise MoveFailed(
                "The target differs from the source. Do not serve it:\n  "
                + "\n  ".join(differences)
            )

    def _difference(self, part: Part, stage: Stage, found: Checksum) -> str:
        """Name the rows of a part that differ, with a share of them in memory at a time."""
        shares = 1 + max(stage.count, found.rows) // _ROWS_IN_MEMORY
        ids: list[str] = []
        for share in range(shares):
            ours = _digests(part, self._rows(part), shares, share)
            theirs = _digests(part, part.stored(self.target.raw), shares, share)
            ids += [key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)]
        named = "; ".join(map(_short, sorted(ids)[:_MAX_PROBLEMS])) or "none that differs now"
        return (
            f"{part.name}: {stage.count} rows with checksum {stage.checksum} were sent, "
            f"{found.rows} with {found} are there; ids: {named}"
        )

    def _rows(self, part: Part) -> Iterator[Row]:
        return (entry.row for entry in part.entries(self.source.raw) if entry.row is not None)


def _digests(part: Part, rows: Iterable[Row], shares: int, share: int) -> dict[str, bytes]:
    """Return the digests of a share of the rows, by id."""
    keyed = ((part.describe(row), row) for row in rows)
    return {key: part.digest(row) for key, row in keyed if hash(key) % shares == share}


def _short(key: str) -> str:
    return key if len(key) <= _MAX_ID_LENGTH else f"{key[:_MAX_ID_LENGTH]}..."


def _batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        batch.append(entry)
        size += entry.size
        if len(batch) == BATCH_ROWS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
