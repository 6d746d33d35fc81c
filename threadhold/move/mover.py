"""The move itself: check everything, copy it in batches, compare both sides."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import psycopg

from langgraph_runtime_sql.database.url import database_path, is_postgres, shown
from langgraph_runtime_sql.store import postgres_rows
from langgraph_runtime_sql.tenancy import row_security
from threadhold.move import source, target
from threadhold.move.canonical import Checksum
from threadhold.move.checkpoints import CheckpointPart
from threadhold.move.errors import MoveFailed, MoveFinished, MoveRefused, Unmovable
from threadhold.move.langgraph_tables import VectorPart, run_writes, store, writes
from threadhold.move.part import Entry, Part, Row, TablePart, first_line, said
from threadhold.move.schema import Schema
from threadhold.move.source import Source
from threadhold.move.target import Stage, Target

# A batch is one transaction: so much is held in memory, and is done again after a crash.
ROWS = 500
BYTES = 4 * 2**20
# So many rows that cannot be moved, or that differ, are named.
_NAMED = 20
# Of an id that is said, so many characters.
_LENGTH = 200
# Rows that are compared one by one at a time, where their sums differ.
_COMPARED = 100_000
_REFUSED = (psycopg.DataError, psycopg.IntegrityError, psycopg.errors.ProgramLimitExceeded)


class Progress(NamedTuple):
    """How far a move has come.

    Attributes:
        phase: `Checking`, `Moving` or `Comparing`: each goes through all rows.
        done: Rows of this phase that are done.
        total: All rows.
    """

    phase: str
    done: int
    total: int


@dataclass(frozen=True)
class Moved:
    """What a move has brought.

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
    report: Callable[[Progress], None],
) -> Moved:
    """Move everything from a SQLite file into a Postgres database, or go on with that.

    The file is only read. What has been moved is kept in batches, so that the same call goes
    on after whatever has ended an earlier one.

    Args:
        from_url: `sqlite:///path/to/file.db`
        to_url: `postgresql://user:password@host/database`, which is empty.
        schemas: What is in it beside langgraph's own tables.
        report: Told now and then how far it has come.

    Raises:
        MoveRefused: a database is in use, of another version or kind, or not empty.
        MoveFinished: it was finished before.
        Unmovable: Postgres cannot hold some rows.
        MoveFailed: the server went away, or what has come is not what was sent.
    """
    if from_url == to_url:
        raise MoveRefused("--from and --to name the same database")
    if is_postgres(from_url) or not is_postgres(to_url):
        raise MoveRefused(
            "Data is moved from a SQLite file to Postgres: "
            "--from sqlite:///path/to/file.db --to postgresql://user:password@host/database"
        )
    path = database_path(from_url)
    with source.opened(path) as here, target.opened(to_url) as there:
        return _Move(here, there, to_url, schemas, report).run()


class _Move:
    def __init__(
        self,
        here: Source,
        there: Target,
        to_url: str,
        schemas: Sequence[Schema],
        report: Callable[[Progress], None],
    ) -> None:
        self.here, self.there, self.url = here, there, to_url
        self.schemas, self.report = schemas, report
        self.counted = [TablePart(table) for schema in schemas for table in schema.tables]
        vectors = VectorPart()
        others: list[Part] = [CheckpointPart(), *map(TablePart, (writes, run_writes, store))]
        self.all: list[Part] = [*self.counted, *others, vectors]
        self.parts = [part for part in self.all if here.has(part.source)]
        self.dimensions = vectors.dimensions(here.raw) if here.has(vectors.source) else None
        if self.dimensions is None and vectors in self.parts:
            # The target's own table is made when the index is configured there.
            self.parts.remove(vectors)

    def run(self) -> Moved:
        self.here.check(self.schemas, self.parts)
        begun = self.there.begun()
        if begun is None:
            self.there.check_empty(self.schemas, self.all)
        else:
            self._check_same(begun)
        self._create()
        if begun is None:
            self.there.begin(str(self.here.path), self.here.fingerprint(), self._checked())
        stages = self.there.stages()
        self._copy(stages)
        self._compare(stages)
        for part in self.counted:
            if part in self.parts:
                self.there.count_on(part.name, self.here.last(part.source))
        self.there.finish(self.parts)
        known = {part.source for part in self.all} | {schema.versions for schema in self.schemas}
        return Moved(
            {part.name: stages[part.name].count for part in self.parts}, self.here.others(known)
        )

    def _check_same(self, begun: target.Begun) -> None:
        """Refuse to go on with another move than the one that was begun."""
        again = "make a new, empty database, or drop and create this one"
        if begun.source != str(self.here.path):
            raise MoveRefused(f"The target holds what was moved from {begun.source}: {again}")
        changed = begun.fingerprint != self.here.fingerprint()
        if begun.finished_at is not None:
            when = begun.finished_at.isoformat(sep=" ", timespec="seconds")
            since = " The file has changed since, and what is new in it is not there." * changed
            raise MoveFinished(
                f"Everything in {self.here.path} was moved to {shown(self.url)} at {when}, and "
                f"compared. There is nothing left to do: serve it from there.{since}"
            )
        if changed:
            raise MoveRefused(
                f"{self.here.path} has changed since the move was begun, so what has been moved "
                f"may be out of date. To begin anew, {again}"
            )

    def _create(self) -> None:
        for schema in self.schemas:
            if self.here.has(schema.versions):
                schema.create(self.url)
        if self.dimensions is not None:
            postgres_rows.ensure_tables(self.there.raw, self.dimensions)
            row_security.ensure(self.there.raw)

    # --- checking ---

    def _checked(self) -> dict[str, Stage]:
        """What there is to move; everything of it can be stored.

        Raises:
            Unmovable: not everything.
        """
        problems = list(self.here.orphans(_NAMED))
        count = len(problems)
        stages: dict[str, Stage] = {}
        progress = self._progress("Checking")
        for part in self.parts:
            checksum = Checksum()
            for entry in part.entries(self.here.raw):
                problem = entry.problem
                if entry.row is not None:
                    checksum.add(part.digest(entry.row))
                    problem = part.refusal(self.there.raw, entry.row)
                if problem is not None:
                    count += 1
                    if count <= _NAMED:
                        problems.append(f"{part.source} {_short(said(entry.key))}: {problem}")
                progress(1)
            stages[part.name] = Stage(checksum.rows, str(checksum))
        if problems:
            raise Unmovable(problems, count)
        return stages

    def _progress(self, phase: str, done: int = 0) -> Callable[[int], None]:
        """Counts rows of a phase."""
        total = sum(self.here.count(part) for part in self.parts)

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
            for batch in _batches(part.entries(self.here.raw, stage.after)):
                rows = [entry.row for entry in batch if entry.row is not None]
                stage.moved, stage.after = stage.moved + len(rows), batch[-1].key
                with self.there.raw.transaction():
                    refused = self._put(part, rows)
                    if not refused:
                        self.there.note(part.name, stage)
                if refused:
                    raise Unmovable(refused[:_NAMED], len(refused))
                progress(len(rows))

    def _put(self, part: Part, rows: Sequence[Row]) -> list[str]:
        """Write rows; those that the target refuses, and why."""
        try:
            with self.there.raw.transaction():
                part.write(self.there.raw, rows)
        except _REFUSED as error:
            if len(rows) == 1:
                return [f"{part.source} {_short(part.said(rows[0]))}: {first_line(error)}"]
            half = len(rows) // 2
            return self._put(part, rows[:half]) + self._put(part, rows[half:])
        return []

    # --- comparing ---

    def _compare(self, stages: dict[str, Stage]) -> None:
        """Raise unless the target has what was in the source.

        Raises:
            MoveFailed: it has not.
        """
        progress = self._progress("Comparing")
        differences = []
        for part in self.parts:
            stage, found = stages[part.name], Checksum()
            for row in part.stored(self.there.raw):
                found.add(part.digest(row))
                progress(1)
            if (found.rows, str(found)) != (stage.count, stage.checksum):
                differences.append(self._difference(part, stage, found))
        if differences:
            raise MoveFailed(
                "What is in the target is not what is in the source. Do not serve it:\n  "
                + "\n  ".join(differences)
            )

    def _difference(self, part: Part, stage: Stage, found: Checksum) -> str:
        """Which rows of a part differ, a share of them in memory at a time."""
        shares = 1 + max(stage.count, found.rows) // _COMPARED
        ids: list[str] = []
        for share in range(shares):
            ours = _shared(part, self._rows(part), shares, share)
            theirs = _shared(part, part.stored(self.there.raw), shares, share)
            ids += [key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)]
        named = "; ".join(map(_short, sorted(ids)[:_NAMED])) or "none that differs now"
        return (
            f"{part.name}: {stage.count} rows with checksum {stage.checksum} were sent, "
            f"{found.rows} with {found} are there; ids: {named}"
        )

    def _rows(self, part: Part) -> Iterator[Row]:
        return (entry.row for entry in part.entries(self.here.raw) if entry.row is not None)


def _shared(part: Part, rows: Iterable[Row], shares: int, share: int) -> dict[str, bytes]:
    """The digests of a share of rows, by id."""
    keyed = ((part.said(row), row) for row in rows)
    return {key: part.digest(row) for key, row in keyed if hash(key) % shares == share}


def _short(key: str) -> str:
    return key if len(key) <= _LENGTH else f"{key[:_LENGTH]}..."


def _batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        batch.append(entry)
        size += entry.size
        if len(batch) == ROWS or size >= BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
