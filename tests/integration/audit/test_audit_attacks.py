"""Attacks on the audit log by the database's own role, which has no key."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import insert, select

from langgraph_runtime_sql import clock, migrations
from langgraph_runtime_sql.audit import keys, links, retention
from langgraph_runtime_sql.audit import log as logs
from langgraph_runtime_sql.audit.entry import LINK, LOG, RETENTION, Actor, Note, entry_hash, make
from langgraph_runtime_sql.audit.keys import BadAuditKey
from langgraph_runtime_sql.audit.links import Linker
from langgraph_runtime_sql.audit.removals import MIN_AGE
from langgraph_runtime_sql.audit.retention import AuditBroken
from langgraph_runtime_sql.audit.verify import Verdict, verify
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import audit_entries as entries
from langgraph_runtime_sql.database.statements import Row
from tests.support import databases, runtime

pytestmark = pytest.mark.usefixtures("each_database")

KEY, NEWER = "k" * 32, "n" * 32
ADA = Actor(tenant="acme", user="ada", address="192.0.2.1", method="POST", route="/threads")
OLD = timedelta(days=40)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime.set_options(monkeypatch, audit_key=(KEY,))


@pytest.fixture
async def db(each_database: str, tmp_path: Path) -> AsyncIterator[Database]:
    async with runtime.opened(tmp_path / "data.db") as opened:
        yield opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


async def write(db: Database, *actions: str) -> None:
    notes = [Note("thread", uuid4(), action) for action in actions]
    await db.write(lambda conn: logs.of(db).append(conn, ADA, notes))


async def write_at(db: Database, patch: pytest.MonkeyPatch, at: datetime, *actions: str) -> None:
    with patch.context() as patched:
        patched.setattr(clock, "now", lambda: at)
        await write(db, *actions)


async def verdict(db: Database, *texts: str, expected: str | None = None) -> Verdict:
    return await db.read(lambda conn: verify(conn, texts or (KEY,), expected=expected))


async def why(db: Database, **options: Any) -> str:
    """Return what `verify` finds broken."""
    broken = (await verdict(db, **options)).broken
    assert broken is not None
    return broken.why


async def found(db: Database) -> list[Row]:
    return await db.read(lambda conn: conn.fetchall(select(entries).order_by(entries.c.seq)))


def forge(path: Path, *statements: str) -> None:
    """Change the log as the role that owns the database does: without its triggers."""
    if databases.kind() == "sqlite":
        for name in ("audit_update", "audit_delete"):
            databases.execute(path, f"DROP TRIGGER IF EXISTS {name}")
    else:
        databases.execute(path, "DROP TRIGGER IF EXISTS audit_rows ON audit_entries")
    for statement in statements:
        databases.execute(path, statement)


async def insert_forged(db: Database, row: Row) -> None:
    """Insert a row as it is; without a `seq` it becomes the newest."""
    await db.write(lambda conn: conn.execute(insert(entries).values(**row)))


def without_key(note: Note, after: Row, *, chain: str | None = None) -> Row:
    """Make the entry that anybody can make: its hash needs no key."""
    row = make(ADA if note.kind != LOG else Actor(), note, clock.now())
    row |= {"chain": chain or after["chain"], "number": after["number"] + 1}
    row |= {"previous": after["hash"], "key_id": None}
    return {**row, "hash": entry_hash(row, None)}


async def test_removed_end_leaves_a_gap_before_the_next_entry(db: Database, path: Path) -> None:
    await write(db, "first", "second", "third")
    forge(path, "DELETE FROM audit_entries WHERE action IN ('second', 'third')")
    await write(db, "fourth")
    if databases.kind() == "postgresql":
        # Another connection may have begun a chain. All write once.
        await asyncio.gather(*(write(db, f"more{n}") for n in range(40)))
    assert "missing" in await why(db)


@pytest.mark.parametrize(
    "change",
    [
        "user_id = 'eve'",
        "detail = '{}'",
        "at = EARLIER",
        "number = 9",
        "key_id = NULL",
        # As an erase does it, but without the key.
        "tenant = NULL, user_id = NULL, roles = NULL, address = NULL, detail = NULL, salt = NULL",
    ],
)
async def test_changed_entry_is_named(db: Database, path: Path, change: str) -> None:
    await write(db, "first", "second", "third")
    [seq] = [row["seq"] for row in await found(db) if row["action"] == "second"]
    earlier = "at - 1" if databases.kind() == "sqlite" else "at - interval '1 second'"
    changed = change.replace("EARLIER", earlier)
    forge(path, f"UPDATE audit_entries SET {changed} WHERE seq = {seq}")
    broken = (await verdict(db)).broken
    assert broken is not None
    assert broken.seq == seq


async def test_changed_entry_with_a_new_plain_hash_is_named(db: Database, path: Path) -> None:
    await write(db, "first", "second")
    first, second = await found(db)
    forged = {**without_key(Note("thread", None, "other"), first), "seq": second["seq"]}
    forge(path, f"DELETE FROM audit_entries WHERE seq = {second['seq']}")
    await insert_forged(db, forged)
    assert "has no key" in await why(db)


async def test_forged_removal_explains_nothing(db: Database, path: Path) -> None:
    await write(db, "first", "second", "third")
    noted = (await verdict(db)).newest
    first, *removed = await found(db)
    detail = {
        "before": (clock.now() - OLD).isoformat(),
        "newest": (clock.now() - OLD * 2).isoformat(),
        "days": 30,
        "removed": 2,
        "chains": {first["chain"]: [2, removed[0]["hash"], 3, noted]},
        "followed": [row["hash"] for row in removed],
    }
    forge(path, "DELETE FROM audit_entries WHERE action IN ('second', 'third')")
    start = {**first, "number": 0, "hash": noted}
    removal = Note(LOG, None, RETENTION, detail=detail)
    await insert_forged(db, without_key(removal, start, chain="forged"))
    assert "missing" in await why(db)
    assert "missing" in await why(db, expected=noted)


async def test_server_removes_no_entry_that_only_looks_old(
    db: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write_at(db, monkeypatch, clock.now() - OLD, "old")
    await write(db, "second", "third")
    [old, *_] = await found(db)
    forge(
        path,
        f"UPDATE audit_entries SET at = (SELECT at FROM audit_entries WHERE seq = {old['seq']})"
        " WHERE action = 'second'",
    )
    with pytest.raises(AuditBroken, match="changed"):
        await retention.remove(db, MIN_AGE)
    assert len(await found(db)) == 3


async def test_entries_that_retention_removed_cannot_come_back(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write_at(db, monkeypatch, clock.now() - OLD, "first", "second")
    old = await found(db)
    await write(db, "third")
    assert await retention.remove(db, MIN_AGE) == 2
    assert (await verdict(db)).status == "intact"
    for row in old:
        await insert_forged(db, {name: row[name] for name in row if name != "seq"})
    assert "put it back" in await why(db)


async def test_removal_while_the_clock_was_ahead_is_named(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(db, "first", "second")
    ahead = clock.now() + OLD
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now", lambda: ahead)
        assert await retention.remove(db, timedelta(days=30)) == 2
    await write(db, "third")
    assert "the clock was ahead" in await why(db)


async def test_entries_of_another_database_are_not_accepted(db: Database, tmp_path: Path) -> None:
    await write(db, "first")
    other = migrations.open_database(databases.url(tmp_path / "other.db"))
    await other.start()
    await write(other, "second")
    [row] = await found(other)
    assert (await verdict(other)).status == "intact"
    await other.stop()
    await insert_forged(db, {name: row[name] for name in row if name != "seq"})
    assert "changed" in await why(db)


async def test_entries_of_a_rotated_key_verify(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(db, "first")
    runtime.set_options(monkeypatch, audit_key=(NEWER, KEY))
    other = migrations.open_database(databases.url(tmp_path / "data.db"), exclusive=False)
    other.start_threads()
    await write(other, "second")
    await other.stop()
    assert (await verdict(db, NEWER, KEY)).status == "intact"
    without_old = await verdict(db, NEWER)
    assert without_old.status == "unkeyed"
    assert [each.count for each in without_old.unknown.values()] == [1]
    assert len({row["key_id"] for row in await found(db)}) == 2


async def test_entries_without_a_key_are_not_intact(db: Database) -> None:
    assert (await verdict(db)).status == "unkeyed", "an empty log proves nothing"
    await write(db, "first")
    [first] = await found(db)
    # Such as a process of an older version writes them.
    entry = without_key(Note("thread", uuid4(), "create"), {**first, "number": 0}, chain="older")
    await insert_forged(db, entry)
    unkeyed = await verdict(db)
    assert (unkeyed.status, unkeyed.keyed, unkeyed.unkeyed.count) == ("unkeyed", 1, 1)


async def spread(db: Database, count: int) -> None:
    """Write entries in all chains that the process has at once."""
    await asyncio.gather(*(write(db, f"spread{n}") for n in range(count)))


async def ends_unlinked(db: Database) -> list[Row]:
    """Return the last entry of each chain."""
    rows = await found(db)
    return [row for row in rows if row["hash"] not in {each["previous"] for each in rows}]


async def test_end_of_a_chain_cannot_be_removed_after_a_link(db: Database, path: Path) -> None:
    linker = Linker(db)
    await spread(db, 156)
    await linker.write()
    assert (await verdict(db)).status == "intact"
    for end in await ends_unlinked(db):
        if end["action"] != LINK:
            forge(path, f"DELETE FROM audit_entries WHERE seq = {end['seq']}")
            assert "missing" in await why(db)
            await insert_forged(db, end)
    assert (await verdict(db)).status == "intact"


async def test_whole_chains_cannot_be_removed_after_a_link(db: Database, path: Path) -> None:
    linker = Linker(db)
    await spread(db, 156)
    await linker.write()
    rows = await found(db)
    [link] = [row for row in rows if row["action"] == LINK]
    # As an insider who keeps only the chain of the link: 123 of 156 entries were removed so.
    forge(path, f"DELETE FROM audit_entries WHERE chain <> '{link['chain']}'")
    if len(await found(db)) < len(rows):
        assert "missing" in await why(db)
    forge(path, f"DELETE FROM audit_entries WHERE seq < {link['seq']}")
    assert "missing" in await why(db)


async def test_removed_link_is_named_by_the_next_link_of_its_process(
    db: Database, path: Path
) -> None:
    linker = Linker(db)
    await write(db, "first", "second")
    await linker.write()
    # A consistent earlier state, with all that proves the later one removed.
    forge(path, "DELETE FROM audit_entries WHERE action <> 'first'")
    assert (await verdict(db)).status == "intact", "nothing has been written since"
    await linker.write()
    assert (await verdict(db)).broken is not None


async def test_forged_link_proves_and_breaks_nothing(db: Database) -> None:
    await write(db, "first")
    [first] = await found(db)
    detail = {"heads": [["no chain", 7, "no hash"]], "seals": True}
    await insert_forged(
        db, without_key(Note(LOG, None, LINK, detail=detail), first, chain="forged")
    )
    assert (await verdict(db)).status != "intact"


async def test_idle_processes_write_no_links(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    linkers = Linker(db), Linker(db)
    await write(db, "first")
    for _ in range(3):
        for linker in linkers:
            await linker.write()
    # Each at its start.
    assert [row["action"] for row in await found(db)] == ["first", LINK, LINK]
    monkeypatch.setattr(links, "OVERLAP", 1)
    monkeypatch.setattr(links, "HEADS", 1)
    await spread(db, 20)
    await linkers[0].write()
    assert (await verdict(db)).status == "intact"


async def test_entries_from_before_the_key_are_sealed_and_named(
    db: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if databases.kind() == "sqlite":
        # Without a setting there would be a file. An older version wrote neither.
        monkeypatch.setattr(keys, "configured", lambda *_, **__: ())
    runtime.set_options(monkeypatch)
    await write(db, "first", "second")
    assert (await verdict(db)).status == "unkeyed"
    monkeypatch.undo()
    runtime.set_options(monkeypatch, audit_key=(KEY,))
    other = migrations.open_database(databases.url(path), exclusive=False)
    other.start_threads()
    await Linker(other).write()
    sealed = await verdict(db)
    assert (sealed.status, sealed.sealed.count, sealed.keyed) == ("intact", 2, 1)
    assert sealed.sealed_at is not None
    second = (await found(db))[-2]
    # Entries without a key that come later are not those of an earlier version.
    forged = without_key(Note("thread", None, "third"), second)
    await insert_forged(db, forged)
    assert (await verdict(db)).status == "unkeyed"
    forge(path, "DELETE FROM audit_entries WHERE action = 'third'")
    # What the seal names cannot be written anew.
    forge(path, "DELETE FROM audit_entries WHERE action = 'second'")
    rewritten = without_key(Note("thread", None, "other"), (await found(db))[0])
    await insert_forged(db, {**rewritten, "seq": second["seq"]})
    assert (await verdict(db)).broken is not None
    await other.stop()


@pytest.mark.only("sqlite")  # Postgres has types
@pytest.mark.parametrize("change", ["at = 'x'", "at = 1e300", "action = CAST(x'ff' AS TEXT)"])
async def test_value_of_a_wrong_type_is_reported(db: Database, path: Path, change: str) -> None:
    await write(db, "first")
    forge(path, f"UPDATE audit_entries SET {change}")
    assert "cannot be read" in await why(db)


@pytest.mark.only("sqlite")  # Postgres has no file
async def test_file_beside_a_sqlite_database_holds_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime.set_options(monkeypatch)
    async with runtime.opened(tmp_path / "data.db") as db:
        await write(db, "first")
        file = keys.beside(db.url)
        [text] = keys.configured(db.url, ())
        assert (file.stat().st_mode & 0o777, file.read_text().strip()) == (0o600, text)
        # A setting comes first, and the file's key still verifies.
        assert (await verdict(db, *keys.configured(db.url, (KEY,)))).status == "intact"
        file.chmod(0o640)
        with pytest.raises(BadAuditKey, match="chmod 600"):
            keys.configured(db.url, ())
        file.unlink()
        file.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(BadAuditKey, match="cannot be used"):
            keys.configured(db.url, ())


async def test_removal_names_what_it_removed_and_does_not_replace_a_noted_hash(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write_at(db, monkeypatch, clock.now() - OLD, "first", "second")
    first, second = await found(db)
    assert await retention.remove(db, MIN_AGE) == 2
    [removal] = await found(db)
    detail = json.loads(removal["detail"])
    assert detail["removed"] == 2
    assert detail["chains"] == {first["chain"]: [1, first["hash"], 2, second["hash"]]}
    assert (await verdict(db)).status == "intact"
    assert "no entry" in await why(db, expected=second["hash"])
