"""Problems: an error of SQLite becomes the state of the database that it tells of."""

import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from langgraph_runtime_sql.database.sqlite.problems import problem
from langgraph_runtime_sql.errors import DatabaseBusy, DatabaseDamaged, DatabaseOutage


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "data.db"
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("CREATE TABLE rows (text)")
    yield path


def raised(path: Path, *statements: str, **options: object) -> sqlite3.DatabaseError:
    """Return the error of the last statement."""
    with closing(sqlite3.connect(path, isolation_level=None, **options)) as raw:  # type: ignore[call-overload]
        *before, last = statements
        for each in before:
            raw.execute(each)
        with pytest.raises(sqlite3.DatabaseError) as caught:
            raw.execute(last).fetchall()
    return caught.value


def said(error: BaseException, path: Path) -> str:
    found = problem(error, path)
    assert isinstance(found, DatabaseOutage | DatabaseDamaged)
    return found.state.value


def test_full_database_is_a_full_disk(path: Path) -> None:
    large = "INSERT INTO rows VALUES (zeroblob(100000))"
    assert said(raised(path, "PRAGMA max_page_count = 3", large), path) == "disk full"


def test_refused_write_is_a_full_disk_only_without_room(path: Path) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
    assert said(error, path) == "disk failing"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 1000, hard))
    try:
        assert said(error, path) == "disk full"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_read_only_file_is_read_only(path: Path) -> None:
    error = raised(path, "PRAGMA query_only = 1", "INSERT INTO rows VALUES (1)")
    assert said(error, path) == "read-only"


def test_damaged_page_is_damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * len(content[4096:])
    path.write_bytes(content)
    error = raised(path, "SELECT * FROM rows")
    assert said(error, path) == "damaged"
    assert str(path) in str(problem(error, path))
    assert "threadhold restore" in str(problem(error, path))


def test_locked_file_is_busy_and_a_wrong_statement_is_no_problem(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert isinstance(problem(raised(path, "BEGIN IMMEDIATE", timeout=0), path), DatabaseBusy)
    assert problem(raised(path, "SELECT * FROM nothing"), path) is None
