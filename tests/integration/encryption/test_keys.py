"""Keys of tenants: bound ciphertext, rotation, erasure, and rows from before a key was set."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import encryption
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import packed_id, runs
from langgraph_runtime_sql.encryption import CannotDecrypt, KeyErased, keys
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.search import examined_search
from langgraph_runtime_sql.store.store import SqlStore
from langgraph_runtime_sql.tenancy import scope
from langgraph_runtime_sql.tenancy.scope import label
from tests.support import databases, runtime
from tests.support.encrypted import CANARY, FIRST, SECOND, SetKeys, ran, said, texts
from tests.support.operations import page, row
from threadhold.admin import key_files
from threadhold.admin import keys as commands
from threadhold.admin.backup import back_up
from threadhold.admin.doctor import examine
from threadhold.move import move, runtime_schema

pytestmark = pytest.mark.usefixtures("each_database", "settings")


async def test_ciphertext_of_another_row_is_refused(db: Database, path: Path) -> None:
    mine, theirs = await ran("a", "mine"), await ran("a", "theirs")
    swap = (
        'UPDATE threads SET "values" = (SELECT "values" FROM threads WHERE thread_id = ?)'
        " WHERE thread_id = ?"
    )
    databases.execute(path, swap, str(theirs), str(mine))
    with pytest.raises(CannotDecrypt, match="not authentic"):
        await row(Threads.get(None, mine))
    assert await said(theirs) == "theirs"


async def test_ciphertext_of_another_tenant_is_refused(db: Database, path: Path) -> None:
    thread = await ran("a", "mine")
    # The whole row is given to another tenant.
    databases.execute(path, "UPDATE threads SET tenant = 'b' WHERE thread_id = ?", str(thread))
    with pytest.raises(CannotDecrypt, match="another tenant"):
        await row(Threads.get(None, thread))


async def test_checkpoint_of_another_thread_is_refused(db: Database, path: Path) -> None:
    thread, other = str(await ran("a", "mine")), str(await ran("a", "theirs"))
    here, there = packed_id(thread), packed_id(other)
    databases.execute(path, "DELETE FROM thread_checkpoints WHERE thread_id = ?", there)
    moved = "UPDATE thread_checkpoints SET thread_id = ? WHERE thread_id = ?"
    databases.execute(path, moved, there, here)
    with pytest.raises(CannotDecrypt, match="not authentic"):
        config = {"configurable": {"thread_id": other}}
        [each async for each in encrypted_history(config)]


async def encrypted_history(config: Any) -> AsyncIterator[Any]:
    from langgraph_runtime_sql.checkpoint import Checkpointer

    async for found in Checkpointer().alist(config):
        yield found


async def test_thread_that_changes_its_tenant_stays_readable(db: Database) -> None:
    thread = await ran(None, "hello")
    await row(Threads.patch(None, thread, metadata={"tenant_id": "a"}))
    assert (await row(Threads.get(None, thread)))["values"]["messages"][0]["content"] == "hello"


async def test_erased_key_makes_only_its_tenants_data_unreadable(db: Database, path: Path) -> None:
    gone, kept, shared = await ran("a", "gone"), await ran("b", "kept"), await ran(None, "shared")
    store = SqlStore()
    await store.aput((label("a"), "notes"), "k", {"text": "gone"})
    backup = databases.execute(path, "SELECT key_id, tenant, version FROM tenant_keys")
    assert {tenant for _, tenant, _ in backup} == {"", "a", "b"}
    assert await db.write(lambda conn: encryption.erase_key(conn, "a")) == 1
    assert await db.write(lambda conn: encryption.erase_key(conn, "a")) == 0
    # Its documents read as empty, so that lists and queues work; its state answers 410.
    assert (await row(Threads.get(None, gone)))["values"] == {}
    with pytest.raises(KeyErased):
        await Threads.State.get(None, {"configurable": {"thread_id": str(gone)}})
    item = await store.aget((label("a"), "notes"), "k")
    assert item is not None
    assert item.value == {}
    assert [await said(each) for each in (kept, shared)] == ["kept", "shared"]
    # New data of the tenant has a new key.
    assert await said(await ran("a", "again")) == "again"
    wrapped = "SELECT version FROM tenant_keys WHERE tenant = 'a' AND wrapped IS NOT NULL"
    assert databases.execute(path, wrapped) == [(2,)]


async def test_rotation_of_the_master_key(db: Database, path: Path, use: SetKeys) -> None:
    first = await ran("a", "first")
    use(SECOND)
    with pytest.raises(CannotDecrypt, match="OLD_AES_KEYS"):
        await db.read(keys.check)
    with pytest.raises(CannotDecrypt):
        await row(Threads.get(None, first))
    use(SECOND, FIRST)
    await db.read(keys.check)
    assert await said(first) == "first"
    url = databases.url(path)
    assert await asyncio.to_thread(commands.rotate, url) > 0
    assert await asyncio.to_thread(commands.rotate, url) == 0
    use(SECOND)
    await db.read(keys.check)
    assert await said(first) == "first"
    # New data keys, and every row has one of them.
    stale = {key for (key,) in databases.execute(path, "SELECT key_id FROM tenant_keys")}
    await asyncio.to_thread(commands.encrypt, url, lambda table, count: None, new_keys=True)
    old = "UPDATE tenant_keys SET wrapped = NULL, master = NULL, erased_at = created_at WHERE key_id = ?"
    for key in stale:
        databases.execute(path, old, key)
    use(SECOND)
    assert await said(first) == "first"


async def test_rows_from_before_the_key_are_read_and_then_encrypted(
    db: Database, path: Path, use: SetKeys
) -> None:
    use(None)
    thread = await ran("a", CANARY)
    store, place = SqlStore(), (label("a"), "notes")
    await store.aput(place, "k", {"text": CANARY})
    assert CANARY in texts(path)
    assert databases.execute(path, "SELECT * FROM tenant_keys") == []
    use(FIRST)
    assert await said(thread) == CANARY
    url = databases.url(path)
    changed = await asyncio.to_thread(commands.encrypt, url, lambda table, count: None)
    assert changed > 0
    use(FIRST)
    assert await said(thread) == CANARY
    item = await store.aget(place, "k")
    assert item is not None
    assert item.value == {"text": CANARY}
    assert CANARY not in texts(path)
    if databases.kind() == "sqlite":
        assert CANARY.encode() not in b"".join(
            each.read_bytes() for each in path.parent.glob("keys.db*")
        )
    again = await asyncio.to_thread(commands.encrypt, url, lambda table, count: None)
    assert again == 0


async def test_search_by_encrypted_values_is_bounded(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examined_search, "EXAMINED", 4)
    monkeypatch.setattr(examined_search, "PAGE", 2)
    for number in range(3):
        await row(Threads.put(None, uuid4(), metadata={"n": number}, if_exists="raise"))
    wanted: dict[str, Any] = {"values": {"count": 1}, "metadata": {}, "status": None}
    assert await Threads.count(None, **wanted) == 0
    for number in range(2):
        await row(Threads.put(None, uuid4(), metadata={"n": number}, if_exists="raise"))
    with pytest.raises(HTTPException, match="at most 4"):
        await Threads.count(None, **wanted)
    found, _ = await page(
        Threads.search(None, limit=5, offset=0, **{**wanted, "metadata": {"n": 2}})
    )
    assert found == []


async def test_codec_binds_data_to_its_tenant_and_place(db: Database, use: SetKeys) -> None:
    place = ("events", "1")
    with pytest.raises(CannotDecrypt, match="prepare"):
        encryption.seal("a", b"secret", place)
    await encryption.prepare("a")
    sealed = encryption.seal("a", b"secret", place)
    assert b"secret" not in sealed
    assert encryption.open_("a", sealed, place) == b"secret"
    for tenant, where in (("b", place), ("a", ("events", "2")), (None, place)):
        with pytest.raises(CannotDecrypt):
            encryption.open_(tenant, sealed, where)
    with pytest.raises(CannotDecrypt):
        encryption.open_("a", sealed[:-1] + bytes([sealed[-1] ^ 1]), place)

    def inside(conn: Connection) -> bytes:
        data = encryption.seal("c", b"inside", place, conn)
        return encryption.open_("c", data, place, conn)

    assert await db.write(inside) == b"inside"
    use(None)
    plain = encryption.seal("a", b"plain", place)
    use(FIRST)
    assert encryption.open_("a", plain, place) == b"plain"


async def test_rolled_back_key_is_not_used(db: Database, path: Path) -> None:
    def fail(conn: Connection) -> None:
        encryption.seal("new", b"x", ("t",), conn)
        raise ValueError("rolled back")

    with pytest.raises(ValueError, match="rolled back"):
        await db.write(fail)
    assert databases.execute(path, "SELECT * FROM tenant_keys WHERE tenant = 'new'") == []
    sealed = await db.write(lambda conn: encryption.seal("new", b"x", ("t",), conn))
    keys._of_databases.clear()
    opened = await db.read(lambda conn: encryption.open_("new", sealed, ("t",), conn))
    assert opened == b"x"


async def test_document_that_looks_sealed_is_returned_as_it_is(db: Database, use: SetKeys) -> None:
    use(None)
    store = SqlStore()
    for value in ({"$sealed": "x"}, {"$sealed": "AQ" + "A" * 80}):
        await store.aput(("notes",), "k", value)
        item = await store.aget(("notes",), "k")
        assert item is not None
        assert item.value == value


@pytest.mark.only("sqlite")  # the source of a move
async def test_encrypted_database_is_moved_and_examined(
    db: Database, path: Path, use: SetKeys, tmp_path: Path
) -> None:
    threads = [await ran("a", CANARY), await ran("b", CANARY)]
    store = SqlStore()
    await store.aput((label("a"), "notes"), "k", {"text": CANARY})
    # The doctor reads no encrypted column, so it needs no key.
    await db.write(lambda conn: conn.execute(runs.update().values(status="running")))
    use(None)
    found = await asyncio.to_thread(examine, databases.url(path))
    assert {each.what for each in found} == {"run", "thread"}
    use(FIRST)
    await db.write(lambda conn: conn.execute(runs.update().values(status="success")))
    source = databases.url(path)
    await asyncio.to_thread(commands.encrypt, source, lambda table, count: None)
    use(FIRST)
    await db.stop()
    with databases.on("postgresql"):
        target = databases.empty(tmp_path / "moved.db")
        arguments = (source, target, [runtime_schema()], lambda progress: None)
        await asyncio.to_thread(move, *arguments)
        assert CANARY not in texts(tmp_path / "moved.db")
        use(FIRST)
        async with runtime.opened(tmp_path / "moved.db"):
            assert [await said(each) for each in threads] == [CANARY, CANARY]
            # The target refuses plain rows as the source does.
            with pytest.raises(psycopg.Error, match="All rows of this database are encrypted"):
                databases.execute(tmp_path / "moved.db", "UPDATE runs SET kwargs = '[1]'")
            item = await store.aget((label("a"), "notes"), "k")
            assert item is not None
            assert item.value == {"text": CANARY}


@pytest.mark.only("sqlite")  # Postgres has its own tools for backups
async def test_erased_tenant_stays_erased_in_a_restored_backup(
    db: Database, path: Path, tmp_path: Path
) -> None:
    gone, kept = await ran("a", CANARY), await ran("b", "kept")
    before = tmp_path / "before.db"
    await asyncio.to_thread(back_up, databases.url(path), before)
    [wrapped] = {each for (each,) in databases.execute(before, "SELECT wrapped FROM tenant_keys")}
    assert wrapped is None
    await db.write(lambda conn: encryption.erase_key(conn, "a"))
    newest = tmp_path / "newest.keys"
    exported = await asyncio.to_thread(key_files.export_keys, databases.url(path), newest)
    assert exported == len(databases.execute(path, "SELECT * FROM tenant_keys")) - 1
    await db.stop()
    with pytest.raises(CannotDecrypt, match="keys import"):
        async with runtime.opened(before) as restored:
            await restored.read(keys.check)
    await asyncio.to_thread(key_files.import_keys, databases.url(before), newest)
    async with runtime.opened(before) as restored:
        await restored.read(keys.check)
        assert await said(kept) == "kept"
        assert (await row(Threads.get(None, gone)))["values"] == {}


async def test_tenant_makes_and_uses_only_its_own_key(db: Database, path: Path) -> None:
    place = ("t", "1")

    async def seal(tenant: str) -> bytes:
        with scope.within(scope.TenantScope(tenant)):
            return await db.write(lambda conn: encryption.seal(tenant, b"x", place, conn))

    async def opened(tenant: str, sealed: bytes) -> bytes:
        # Without the cache of the process, the policies decide what the tenant finds.
        keys._of_databases.clear()
        with scope.within(scope.TenantScope(tenant)):
            return await db.read(lambda conn: encryption.open_(tenant, sealed, place, conn))

    mine, theirs = await seal("a"), await seal("b")
    shared = await db.write(lambda conn: encryption.seal(None, b"x", place, conn))
    assert await opened("a", mine) == b"x"
    assert await opened("a", shared) == b"x"
    with pytest.raises(CannotDecrypt):
        await opened("a", theirs)
    tenants = databases.execute(path, "SELECT tenant FROM tenant_keys ORDER BY tenant")
    assert {"a", "b", ""} == {tenant for (tenant,) in tenants}
