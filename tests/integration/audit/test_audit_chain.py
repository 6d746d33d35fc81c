"""The audit log's chains: what was changed, removed or rolled back is noticed."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from langgraph_runtime_sql import clock, migrations
from langgraph_runtime_sql.audit import log as logs
from langgraph_runtime_sql.audit import retention, triggers
from langgraph_runtime_sql.audit.entry import Actor, Note
from langgraph_runtime_sql.audit.refusals import EACH, Refusals
from langgraph_runtime_sql.audit.verify import Verdict, verify
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from tests.support import databases, runtime

pytestmark = pytest.mark.usefixtures("each_database")

KEY = "k" * 32
ADA = Actor(tenant="acme", user="ada", address="192.0.2.1", method="POST", route="/threads")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime.set_options(monkeypatch, audit_key=(KEY,))


@pytest.fixture
async def db(each_database: str, tmp_path: Path) -> AsyncIterator[Database]:
    async with runtime.opened(tmp_path / "data.db") as opened:
        yield opened


async def write(db: Database, *actions: str) -> None:
    notes = [Note("thread", uuid4(), action) for action in actions]
    await db.write(lambda conn: logs.of(db).append(conn, ADA, notes))


def forge(path: Path, statement: str) -> None:
    """Change the log as an attacker who owns the database does: without its triggers."""
    names = {"sqlite": ("audit_update", "audit_delete")}.get(databases.kind(), ("audit_rows",))
    for name in names:
        on = "" if databases.kind() == "sqlite" else " ON audit_entries"
        databases.execute(path, f"DROP TRIGGER {name}{on}")
    databases.execute(path, statement)


async def verdict(db: Database, *keys: str, **options: Any) -> Verdict:
    return await db.read(lambda conn: verify(conn, keys or (KEY,), **options))


async def test_intact_log_is_verified(db: Database) -> None:
    assert await verdict(db) == Verdict()
    await asyncio.gather(*(write(db, f"a{n}", f"b{n}") for n in range(30)))
    found = await verdict(db)
    assert (found.count, found.status) == (60, "intact")
    assert (await verdict(db, expected=found.newest)).broken is None


@pytest.mark.parametrize(
    "forged",
    [
        "UPDATE audit_entries SET user_id = 'eve' WHERE action = 'second'",
        "UPDATE audit_entries SET decision = 'refused' WHERE action = 'second'",
        "UPDATE audit_entries SET number = 9 WHERE action = 'second'",
        "UPDATE audit_entries SET detail = '{\"x\":1}' WHERE action = 'second'",
    ],
)
async def test_changed_entry_is_named(db: Database, tmp_path: Path, forged: str) -> None:
    await write(db, "first", "second", "third")
    path = tmp_path / "data.db"
    [(seq,)] = databases.execute(path, "SELECT seq FROM audit_entries WHERE action = 'second'")
    forge(path, forged)
    broken = (await verdict(db)).broken
    assert broken is not None
    assert broken.seq == seq


async def test_removed_entry_and_removed_end_are_noticed(db: Database, tmp_path: Path) -> None:
    await write(db, "first", "second", "third")
    path, newest = tmp_path / "data.db", (await verdict(db)).newest
    forge(path, "DELETE FROM audit_entries WHERE action = 'third'")
    assert (await verdict(db)).broken is None, "nothing in the database shows its own end"
    assert (await verdict(db, expected=newest)).broken is not None
    databases.execute(path, "DELETE FROM audit_entries WHERE action = 'first'")
    broken = (await verdict(db)).broken
    assert broken is not None
    assert "missing" in broken.why


@pytest.mark.only("postgresql")  # a file has one chain
async def test_removed_chain_is_noticed_by_the_chain_after_it(db: Database, tmp_path: Path) -> None:
    await write(db, "first")
    other = migrations.open_database(databases.url(tmp_path / "data.db"), exclusive=False)
    await write(other, "second")
    await other.stop()
    assert (await verdict(db)).chains == 2
    forge(tmp_path / "data.db", "DELETE FROM audit_entries WHERE action = 'first'")
    broken = (await verdict(db)).broken
    assert broken is not None
    assert "its chain follows" in broken.why


async def test_database_refuses_to_change_and_delete_entries(db: Database, tmp_path: Path) -> None:
    await write(db, "first")
    statements = ["UPDATE audit_entries SET user_id = NULL", "DELETE FROM audit_entries"]
    if databases.kind() == "postgresql":
        statements.append("TRUNCATE audit_entries")
    for statement in statements:
        with pytest.raises(Exception, match=triggers.MESSAGE):
            databases.execute(tmp_path / "data.db", statement)
    assert (await verdict(db)).count == 1


async def test_rolled_back_change_has_no_entry_and_leaves_no_gap(db: Database) -> None:
    await write(db, "first")

    def fail(conn: Connection) -> None:
        logs.of(db).append(conn, ADA, [Note("thread", uuid4(), "lost")])
        raise RuntimeError("refused")

    with pytest.raises(RuntimeError, match="refused"):
        await db.write(fail)
    await write(db, "second")
    found = await verdict(db)
    assert (found.count, found.broken) == (2, None)


async def test_retention_removes_old_entries_and_chains_still_verify(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "PAGE", 3)
    now = clock.now()
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now", lambda: now - timedelta(days=40))
        for n in range(8):
            await write(db, f"old{n}")
    await write(db, "new")
    assert await retention.remove(db, timedelta(days=30)) == 8
    found = await verdict(db)
    # The new one, and one for each page of removals.
    assert (found.count, found.broken) == (4, None)
    assert await retention.remove(db, timedelta(days=30)) == 0
    with pytest.raises(ValueError, match="at least one day"):
        await retention.remove(db, timedelta(hours=1))
    await write(db, "newer")
    assert (await verdict(db)).broken is None


async def test_equal_refusals_become_one_entry_with_their_number() -> None:
    written: list[Note] = []

    async def keep(actor: Actor, note: Note) -> None:
        written.append(note)

    refusals = Refusals(keep)
    for _ in range(EACH + 7):
        await refusals.record(ADA, Note(None, None, "refuse", "refused", status=401))
    assert len(written) == EACH
    await refusals.flush()
    assert written[-1].detail == {"repeated": 7}
