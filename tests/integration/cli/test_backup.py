"""`threadhold backup` and `migrate`: copies of databases under writes."""

import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from threadhold.cli import main

PAIRS = 500


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Path]:
    """Create a database in WAL mode; a thread writes pairs of rows, each in one transaction."""
    path = tmp_path / "live.db"
    stop, written = threading.Event(), threading.Event()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE pairs (number INTEGER, half TEXT)")
        connection.commit()

    def write() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            number = 0
            while not stop.is_set():
                number += 1
                connection.execute("BEGIN")
                connection.execute("INSERT INTO pairs VALUES (?, 'left')", (number,))
                connection.execute("INSERT INTO pairs VALUES (?, 'right')", (number,))
                connection.execute("COMMIT")
                if number == PAIRS:
                    written.set()

    writer = threading.Thread(target=write)
    writer.start()
    assert written.wait(60)
    try:
        yield path
    finally:
        stop.set()
        writer.join()


def threadhold(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def backup(source: Path, *arguments: str | Path) -> Result:
    return threadhold("backup", "--database-url", f"sqlite:///{source}", *arguments)


def test_copy_of_a_database_under_writes_is_consistent(live: Path, tmp_path: Path) -> None:
    for attempt in range(5):
        copy = tmp_path / f"copy{attempt}.db"
        result = backup(live, copy)
        assert result.exit_code == 0, result.output
        with closing(sqlite3.connect(copy)) as connection:
            [(left, right)] = connection.execute(
                "SELECT sum(half = 'left'), sum(half = 'right') FROM pairs"
            )
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert left == right >= PAIRS
    # Each copy is one file, without temporary files.
    assert {path.name for path in tmp_path.iterdir()} >= {f"copy{n}.db" for n in range(5)}
    assert not [path for path in tmp_path.iterdir() if "copy" in path.name and path.suffix != ".db"]


def test_copy_after_a_crash_includes_the_write_ahead_log(live: Path, tmp_path: Path) -> None:
    """After a crash, only the write-ahead log has the newest commits."""
    crashed = tmp_path / "crashed.db"
    with closing(sqlite3.connect(live)) as holder:
        # An open read transaction prevents a checkpoint of the log.
        holder.execute("BEGIN")
        expected = holder.execute("SELECT count(*) FROM pairs").fetchone()[0]
        shutil.copy(live, crashed)
        shutil.copy(f"{live}-wal", f"{crashed}-wal")
    assert backup(crashed, tmp_path / "copy.db").exit_code == 0
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
        assert connection.execute("SELECT count(*) FROM pairs").fetchone()[0] >= expected


def test_copy_is_readable_by_its_owner_only(live: Path, tmp_path: Path) -> None:
    assert backup(live, tmp_path / "copy.db").exit_code == 0
    assert (tmp_path / "copy.db").stat().st_mode & 0o077 == 0


def test_existing_file_is_replaced_only_with_force(live: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    copy.write_text("precious")
    refused = backup(live, copy)
    assert refused.exit_code == 1
    assert "--force" in refused.output
    assert copy.read_text() == "precious"
    assert backup(live, copy, "--force").exit_code == 0
    assert copy.read_bytes().startswith(b"SQLite format 3\0")


def test_database_itself_is_refused_as_destination(live: Path) -> None:
    refused = backup(live, live, "--force")
    assert refused.exit_code == 1
    assert "the database itself" in refused.output


def test_missing_database_and_missing_folder_are_named(live: Path, tmp_path: Path) -> None:
    missing = backup(tmp_path / "none.db", tmp_path / "copy.db")
    assert missing.exit_code == 1
    assert "There is no database" in missing.output
    nowhere = backup(live, tmp_path / "no" / "folder" / "copy.db")
    assert nowhere.exit_code == 1
    assert "Cannot back up" in nowhere.output


def test_damaged_database_is_not_copied(tmp_path: Path) -> None:
    source = tmp_path / "damaged.db"
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("CREATE TABLE t (x TEXT)")
        connection.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 200)
        connection.commit()
    content = bytearray(source.read_bytes())
    content[4096 * 3 : 4096 * 6] = b"\xee" * (4096 * 3)
    source.write_bytes(content)
    result = backup(source, tmp_path / "copy.db")
    assert result.exit_code == 1
    assert "Error: " in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["damaged.db"]


@pytest.mark.parametrize("url", ["nonsense", "sqlite://", "mysql://u@h/d"])
def test_url_without_a_file_is_refused(tmp_path: Path, url: str) -> None:
    result = threadhold("backup", "--database-url", url, tmp_path / "copy.db")
    assert result.exit_code == 1
    assert "Error: " in result.output
    assert "Traceback" not in result.output


def test_migrate_creates_a_database_and_is_repeatable(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "new.db"
    for _ in range(2):
        result = threadhold("migrate", "--database-url", f"sqlite:///{path}")
        assert result.exit_code == 0, result.output
    with closing(sqlite3.connect(path)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert {"threads", "runs"} <= tables
