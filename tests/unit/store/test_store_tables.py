"""The store's tables in SQLite are langgraph's own, whoever makes them."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from langgraph.store.sqlite import SqliteStore
from langgraph.store.sqlite.base import MIGRATIONS

from langgraph_runtime_sql.store import sqlite_rows


@pytest.fixture
def ours() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as raw:
        yield raw


@pytest.fixture
def theirs() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as raw:
        SqliteStore(raw).setup()
        yield raw


def definition(raw: sqlite3.Connection) -> list[tuple[object, ...]]:
    """Columns, keys, indexes and the steps that the tables have had."""
    found: list[tuple[object, ...]] = []
    for table in ("store", "store_migrations"):
        found += raw.execute("SELECT * FROM pragma_table_xinfo(?)", (table,))
        found += raw.execute("SELECT * FROM pragma_index_list(?) ORDER BY name", (table,))
    indexes = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql NOT NULL"
    found += (
        (name, " ".join(sql.split())) for name, sql in raw.execute(f"{indexes} ORDER BY name")
    )
    found += raw.execute("SELECT v FROM store_migrations ORDER BY v")
    # Types count in any case: SQLite's own names for them are in none.
    return [tuple(str(part).upper() for part in each) for each in found]


def test_a_new_file_has_what_langgraphs_own_store_makes(
    ours: sqlite3.Connection, theirs: sqlite3.Connection
) -> None:
    """Fails when a release of langgraph adds a step: `sqlite_rows` must know it, too."""
    sqlite_rows.ensure_tables(ours, None)
    assert definition(ours) == definition(theirs)
    sqlite_rows.ensure_tables(ours, None)
    assert definition(ours) == definition(theirs)


@pytest.mark.parametrize("steps", range(1, len(MIGRATIONS)))
def test_an_older_file_gets_the_steps_it_has_not_had(
    ours: sqlite3.Connection, theirs: sqlite3.Connection, steps: int
) -> None:
    ours.execute("CREATE TABLE store_migrations (v INTEGER PRIMARY KEY)")
    for version, step in enumerate(MIGRATIONS[:steps]):
        ours.execute(step)
        ours.execute("INSERT INTO store_migrations (v) VALUES (?)", (version,))
    ours.execute("INSERT INTO store (prefix, key, value) VALUES ('a.b', 'k', '{}')")
    sqlite_rows.ensure_tables(ours, None)
    assert definition(ours) == definition(theirs)
    assert ours.execute("SELECT prefix, key, value FROM store").fetchall() == [("a.b", "k", "{}")]


def test_langgraphs_own_store_finds_nothing_to_do(ours: sqlite3.Connection) -> None:
    sqlite_rows.ensure_tables(ours, None)
    before = ours.execute("SELECT * FROM sqlite_master").fetchall()
    SqliteStore(ours).setup()
    assert ours.execute("SELECT * FROM sqlite_master").fetchall() == before
