"""Projects: the row that says how far a project is, and what its user wants to happen.

Routes write the flag, the run reads it. Both may be in different processes, so the flag is in the
database. The end of a run and a new flag exclude each other: `end` checks the flag in its own
transaction.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

from sqlalchemy import Connection, Row, select, update

from my_agent.research.tables import projects as table
from my_agent.tables import insert, tables

T = TypeVar("T")

Flag = Literal["", "pause", "finish", "cancel"]
Status = Literal["queued", "running", "paused", "cancelled", "failed", "completed"]
ACTIVE: tuple[Status, ...] = ("queued", "running")
# Longer than any beat of a living run, shorter than the patience of a user.
SILENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Key:
    """The key of a project: its tenant and its id."""

    tenant_id: str
    project_id: str


@dataclass(frozen=True)
class Project:
    """A row of `research_projects`.

    Attributes:
        key: the key.
        question: what was asked.
        status: what the run does.
        flag: what the user wants.
        flag_at: ISO time of the flag.
        run_id: the last run.
        progress: `progress.Progress` as a dict; empty before the first run.
        error: why the project has failed.
        created_at: ISO time.
        updated_at: ISO time.
        beat_at: ISO time of the run's last sign of life.
    """

    key: Key
    question: str
    status: Status
    flag: Flag
    flag_at: str | None
    run_id: str | None
    progress: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    created_at: str = ""
    updated_at: str = ""
    beat_at: str = ""

    @property
    def is_silent(self) -> bool:
        """Return whether an active project has given no sign of life for `SILENCE_SECONDS`."""
        return self.status in ACTIVE and age(self.beat_at) > SILENCE_SECONDS


def now() -> str:
    """Return the current time in UTC, as ISO text."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def age(moment: str | None) -> float:
    """Return the seconds since an ISO time; 0 for None."""
    if not moment:
        return 0.0
    return (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()


async def find(key: Key) -> Project | None:
    """Return a project, or None."""
    return await tables.run(lambda connection: _find(connection, key), key.tenant_id)


async def create(key: Key, question: str) -> bool:
    """Create the row of a project. Return False if there is one already."""

    def work(connection: Connection) -> bool:
        moment = now()
        values = {
            "tenant_id": key.tenant_id,
            "project_id": key.project_id,
            "question": question,
            "status": "queued",
            "flag": "",
            "progress": {},
            "created_at": moment,
            "updated_at": moment,
            "beat_at": moment,
        }
        # The route and the run that it has started create the row at the same time.
        row = insert(connection, table).values(**values).on_conflict_do_nothing()
        return connection.execute(row.returning(table.c.project_id)).first() is not None

    return await _write(key, work)


async def begin(key: Key, question: str, run_id: str | None) -> Project:
    """Note that a run works on the project, unless the user has cancelled it meanwhile.

    A flag stays: it may have been set while the run waited in the queue.
    """
    await create(key, question)

    def work(connection: Connection) -> Project:
        found = _must_find(connection, key)
        if found.status == "cancelled":
            return found
        values = {"status": "running", "run_id": run_id, "error": None, "question": question}
        return _set(connection, found, beat_at=now(), **values)

    return await _write(key, work)


async def end(
    key: Key,
    status: Status,
    error: str | None = None,
    change: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> bool:
    """Note the end of a run, and what it changes of the progress, in one transaction.

    Args:
        key: the project.
        status: how the run has ended.
        error: why it has failed.
        change: returns the last progress, from the progress so far.

    Returns:
        False if the user has changed the flag such that the run must go on: a pause was lifted.
    """

    def work(connection: Connection) -> bool:
        found = _must_find(connection, key)
        if status == "paused" and found.flag != "pause":
            return False
        if found.status not in ACTIVE:
            # It was forced to stop.
            return True
        last = found.progress if change is None else change(found.progress)
        _set(connection, found, status=status, flag="", flag_at=None, error=error, progress=last)
        return True

    return await _write(key, work)


async def change(key: Key, work: Callable[[Project], dict[str, Any]]) -> Project | None:
    """Change a project in one transaction; None if there is none.

    Args:
        key: the project.
        work: returns the columns to change, from the row as it is.
    """

    def run(connection: Connection) -> Project | None:
        found = _find(connection, key, lock=True)
        if found is None:
            return None
        columns = work(found)
        return _set(connection, found, **columns) if columns else found

    return await _write(key, run)


def exists(connection: Connection, key: Key) -> bool:
    """Return whether there is a project, and lock its row."""
    return _find(connection, key, lock=True) is not None


def flagged(flag: Flag) -> dict[str, Any]:
    """Return the columns of a new flag."""
    return {"flag": flag, "flag_at": now() if flag else None}


async def _write(key: Key, work: Callable[[Connection], T]) -> T:
    return await tables.run(work, key.tenant_id, write=True)


def _where(key: Key) -> tuple[Any, Any]:
    return table.c.tenant_id == key.tenant_id, table.c.project_id == key.project_id


def _find(connection: Connection, key: Key, *, lock: bool = False) -> Project | None:
    statement = select(table).where(*_where(key))
    row = connection.execute(statement.with_for_update() if lock else statement).first()
    return None if row is None else _project(row)


def _must_find(connection: Connection, key: Key) -> Project:
    found = _find(connection, key, lock=True)
    if found is None:
        raise LookupError(f"There is no research project {key.project_id}")
    return found


def _set(connection: Connection, found: Project, **columns: Any) -> Project:
    columns = {"updated_at": now(), **columns}
    connection.execute(update(table).where(*_where(found.key)).values(**columns))
    return replace(found, **columns)


def _project(row: Row[Any]) -> Project:
    return Project(
        key=Key(row.tenant_id, row.project_id),
        question=row.question,
        status=row.status,
        flag=row.flag,
        flag_at=row.flag_at,
        run_id=row.run_id,
        progress=row.progress,
        error=row.error,
        created_at=row.created_at,
        updated_at=row.updated_at,
        beat_at=row.beat_at,
    )
