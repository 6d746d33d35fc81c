"""Migrations: the scripts give the schema, and a file of the future is refused."""

import re
import sqlite3
from pathlib import Path

import pytest

from langgraph_runtime_sql import database, migrations
from langgraph_runtime_sql.errors import (
    BadDatabaseUrl,
    DatabaseClosed,
    DatabaseInUse,
    DatabaseTooNew,
)


def _schema(path: Path) -> set[str]:
    """Everything that is defined in the file, however it was written down."""
    with sqlite3.connect(path) as raw:
        rows = raw.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
        found = {" ".join(sql.split()) for kind, _, sql in rows if kind != "table" and sql}
        for kind, name, sql in rows:
            if kind == "table":
                # A column that was added later stands behind the constraints.
                found |= {str((name, *row[1:])) for row in raw.execute(_COLUMNS, (name,))}
                found |= {" ".join((name, *part.split())) for part in _CONSTRAINT.findall(sql)}
                found.add(f"{name} {sql.rpartition(')')[2].strip()}")
    raw.close()
    return found


_COLUMNS = "SELECT * FROM pragma_table_xinfo(?)"
_CONSTRAINT = re.compile(r"CONSTRAINT [^,\n]*(?:\([^)]*\)[^,\n)]*)*")


async def test_replaying_the_scripts_gives_the_schema_of_a_new_file(tmp_path: Path) -> None:
    database.migrate(f"sqlite:///{tmp_path}/new.db")
    raw = sqlite3.connect(tmp_path / "replayed.db", isolation_level=None)
    migrations.replay(raw)
    raw.close()
    database.migrate(f"sqlite:///{tmp_path}/replayed.db")
    new, replayed = _schema(tmp_path / "new.db"), _schema(tmp_path / "replayed.db")
    version = {part for part in new | replayed if "alembic_version" in part}
    assert new - version == replayed - version
    assert any("fk_runs_thread_id" in part and "CASCADE" in part for part in new)


async def test_a_file_of_the_future_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "future.db"
    database.migrate(f"sqlite:///{path}")
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE alembic_version SET version_num = '9999'")
    raw.close()
    before = _schema(path)
    future = database.open_database(f"sqlite:///{path}")
    with pytest.raises(DatabaseTooNew, match="revision 9999"):
        await future.start()
    assert _schema(path) == before
    await future.stop()
    # The lock was let go.
    with pytest.raises(DatabaseTooNew):
        database.migrate(f"sqlite:///{path}")


async def test_migrating_twice_changes_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/twice.db"
    database.migrate(url)
    before = _schema(tmp_path / "twice.db")
    database.migrate(url)
    assert _schema(tmp_path / "twice.db") == before


async def test_a_second_owner_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/owned.db"
    first, second = database.open_database(url), database.open_database(url)
    await first.start()
    with pytest.raises(DatabaseInUse, match="One process owns a SQLite file"):
        await second.start()
    await first.check()
    await first.stop()
    await second.start()
    await second.stop()


async def test_a_closed_database_says_so(tmp_path: Path) -> None:
    closed = database.open_database(f"sqlite:///{tmp_path}/closed.db")
    await closed.start()
    await closed.stop()
    await closed.stop()
    with pytest.raises(DatabaseClosed):
        await closed.check()


@pytest.mark.parametrize(
    "url", ["", "x", "mysql://h/x", "sqlite://", "sqlite:///:memory:", "sqlite:///x.db?mode=ro"]
)
def test_a_url_that_cannot_keep_anything_is_refused(url: str) -> None:
    with pytest.raises(BadDatabaseUrl):
        database.open_database(url)
