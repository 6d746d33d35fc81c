"""Migrations: the scripts create the schema, and other databases are refused."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from langgraph_runtime_sql import migrations
from langgraph_runtime_sql.database.postgres.engine import PostgresEngine
from langgraph_runtime_sql.errors import (
    BadDatabaseUrl,
    DatabaseClosed,
    DatabaseInUse,
    DatabaseTooNew,
    DatabaseTooOld,
)
from langgraph_runtime_sql.migrations.reporting import reporting
from langgraph_runtime_sql.progress import Progress
from tests.support import databases, next_script

pytestmark = pytest.mark.usefixtures("each_database")


def schema(path: Path) -> list[Any]:
    """Return tables, columns, keys and indexes of the database at `path`."""
    if databases.kind() == "sqlite":
        found: list[Any] = [*_of_file(path)]
    else:
        found = [
            *databases.execute(
                path,
                "SELECT table_name, column_name, data_type, is_nullable, column_default"
                " FROM information_schema.columns WHERE table_schema = 'public'",
            ),
            *databases.execute(
                path,
                "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)"
                " FROM pg_constraint WHERE connamespace = 'public'::regnamespace",
            ),
            *databases.execute(path, "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'"),
        ]
    return sorted(str(each) for each in found if "alembic_version" not in str(each))


def _of_file(path: Path) -> Iterator[str]:
    """Yield every definition in a file in a normal form."""
    columns = "SELECT * FROM pragma_table_xinfo(?)"
    for kind, name, sql in databases.execute(path, "SELECT type, name, sql FROM sqlite_master"):
        if kind == "table":
            # A column that was added later stands after the constraints.
            yield from (str((name, *row[1:])) for row in databases.execute(path, columns, name))
            yield from (" ".join((name, *part.split())) for part in _CONSTRAINT.findall(sql))
            yield f"{name} {sql.rpartition(')')[2].strip()}"
        elif sql:
            yield " ".join(sql.split())


_CONSTRAINT = re.compile(r"CONSTRAINT [^,\n]*(?:\([^)]*\)[^,\n)]*)*")


async def test_replayed_scripts_create_the_current_schema(tmp_path: Path) -> None:
    new, replayed = tmp_path / "new.db", tmp_path / "replayed.db"
    migrations.migrate(databases.empty(new))
    url = databases.empty(replayed)
    if databases.kind() == "postgresql":
        migrations.replay_postgres(PostgresEngine(url), migrations.HEAD)
    else:
        with closing(sqlite3.connect(replayed, isolation_level=None)) as raw:
            migrations.replay(raw, migrations.HEAD)
    migrations.migrate(url)
    assert schema(new) == schema(replayed)
    assert any("fk_runs_thread_id" in part and "CASCADE" in part for part in schema(new))


async def test_pending_script_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "older.db"
    url = databases.empty(path)
    migrations.migrate(url)
    next_script.add(tmp_path, monkeypatch)
    told: list[Progress] = []
    for _ in range(2):
        with reporting(told.append):
            migrations.migrate(url)
        assert told == [Progress("Migrating", done, 1, "scripts") for done in (0, 1)]
        revision = "SELECT version_num FROM alembic_version"
        assert databases.execute(path, revision) == [(next_script.REVISION,)]
        assert databases.execute(path, "SELECT next FROM thread_labels") == []


@pytest.mark.parametrize(
    ("revision", "refused", "says"),
    [
        ("9999", DatabaseTooNew, "revision 9999, which this version does not know"),
        (
            "0016",
            DatabaseTooOld,
            "revision 0016, from before the first release.* Commit [0-9a-f]{8} can",
        ),
    ],
)
async def test_database_of_another_version_is_refused_unchanged(
    tmp_path: Path, revision: str, refused: type[Exception], says: str
) -> None:
    path = tmp_path / "other.db"
    url = databases.empty(path)
    migrations.migrate(url)
    databases.execute(path, "UPDATE alembic_version SET version_num = ?", revision)
    before = schema(path)
    other = migrations.open_database(url)
    with pytest.raises(refused, match=says):
        await other.start()
    assert schema(path) == before
    await other.stop()
    # The failed start released the migration lock.
    with pytest.raises(refused):
        migrations.migrate(url)


async def test_migrating_twice_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "twice.db"
    url = databases.empty(path)
    migrations.migrate(url)
    before = schema(path)
    migrations.migrate(url)
    assert schema(path) == before


async def test_second_owner_is_refused_and_the_first_continues(tmp_path: Path) -> None:
    url = databases.url(tmp_path / "owned.db")
    first, second = migrations.open_database(url), migrations.open_database(url)
    await first.start()
    with pytest.raises(DatabaseInUse, match=r"one process can use a SQLite|needs it alone"):
        await second.start()
    await first.check()
    await first.stop()
    await second.start()
    await second.stop()


async def test_closed_database_raises_database_closed(tmp_path: Path) -> None:
    closed = migrations.open_database(databases.url(tmp_path / "closed.db"))
    await closed.start()
    await closed.stop()
    await closed.stop()
    with pytest.raises(DatabaseClosed):
        await closed.check()


@pytest.mark.parametrize(
    "url", ["", "x", "mysql://h/x", "sqlite://", "sqlite:///:memory:", "sqlite:///x.db?mode=ro"]
)
def test_unsupported_database_url_is_refused(url: str) -> None:
    with pytest.raises(BadDatabaseUrl):
        migrations.open_database(url)
