"""After `keys encrypt`: clients' documents that look encrypted are the same, plain rows are refused."""

import asyncio
import json
import re
import sqlite3
import zlib
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import psycopg
import pytest

from langgraph_runtime_sql import process
from langgraph_runtime_sql.checkpoint import Checkpointer
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.encryption import CannotDecrypt, erase_key, keys
from langgraph_runtime_sql.events.event import START
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.ops.assistants.assistants import Assistants
from langgraph_runtime_sql.ops.assistants.rows import system_id
from langgraph_runtime_sql.ops.crons.crons import Crons
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.store.store import SqlStore
from langgraph_runtime_sql.tenancy import tenants
from langgraph_runtime_sql.tenancy.scope import label
from server.cli import PROGRAM
from tests.support import databases, runtime
from tests.support.encrypted import CANARY, FIRST, SetKeys, ran, said, texts
from tests.support.operations import row, rows
from tests.support.processes import environment, threadhold
from tests.support.processes import ran as ran_command
from threadhold.admin import keys as commands
from threadhold.admin.doctor import examine
from threadhold.tenant_data import export

pytestmark = pytest.mark.usefixtures("each_database", "settings")

FORGED = "AQ" + "A" * 82
"""What has the form of an envelope, of a key that does not exist."""
ESCAPED = b64encode(b'\0{"$sealed":"x"}').decode()
LOOKALIKES: tuple[Any, ...] = tuple({"$sealed": each} for each in ("x", FORGED, ESCAPED, ["x"]))
PLACE = (label("a"), "notes")
OTHER = "other-7d20aa"
GUARDED = "All rows of this database are encrypted"
DRIVER_ERRORS = (sqlite3.Error, psycopg.Error)
REFUSED = "something else than the server wrote it"


async def encrypt(path: Path, *, new_keys: bool = False) -> int:
    url, ignore = databases.url(path), lambda table, count: None
    return await asyncio.to_thread(commands.encrypt, url, ignore, new_keys=new_keys)


async def wrote_lookalikes() -> Callable[[], Awaitable[None]]:
    """Write look-alikes wherever clients write documents; return the check that all are the same."""
    store, checks = SqlStore(), []
    for looks in LOOKALIKES:
        key, assistant, thread, cron = (uuid4() for _ in range(4))
        await store.aput(PLACE, str(key), looks)
        named: Any = {
            "graph_id": "echo",
            "metadata": {**looks},
            "if_exists": "raise",
            "name": str(key),
        }
        await row(Assistants.put(None, assistant, config={}, context={**looks}, **named))
        await row(Threads.put(None, thread, metadata={**looks}, if_exists="raise"))
        given = {"value": {**looks}}
        async with runtime.working():
            run = await runtime.start_run(
                thread,
                "echo",
                given,
                config={"configurable": {**looks}},
                metadata={**looks},
                stream_resumable=True,
            )
            assert await runtime.ended(run["run_id"]) == "success"
        payload = {"assistant_id": "echo", "input": {**looks}, "metadata": {**looks}}
        daily: Any = {"schedule": "0 0 1 1 *", "enabled": False, "metadata": {**looks}}
        await row(Crons.put(None, cron_id=cron, payload=payload, **daily))
        checks.append((looks, key, assistant, thread, run["run_id"], cron))

    async def check() -> None:
        for looks, key, assistant, thread, run, cron in checks:
            item = await store.aget(PLACE, str(key))
            assert item is not None
            assert item.value == looks
            assert (await row(Assistants.get(None, assistant)))["context"] == looks
            shown = await row(Threads.get(None, thread))
            assert (shown["metadata"]["$sealed"], shown["values"]["value"]) == (
                looks["$sealed"],
                looks,
            )
            state = await Threads.State.get(None, {"configurable": {"thread_id": str(thread)}})
            assert state.values["value"] == looks
            assert state.metadata["$sealed"] == looks["$sealed"]
            stored = await row(Runs.get(None, run, thread_id=thread))
            assert stored["kwargs"]["input"] == {"value": looks}
            assert stored["kwargs"]["config"]["configurable"]["$sealed"] == looks["$sealed"]
            found = await row(Crons.get(None, cron))
            assert found["payload"]["input"] == looks
            page = await process.current().bus.followers.read_log(
                StreamKey(None, str(thread)), START
            )
            assert json.dumps(looks).replace(" ", "") in str(page.events)

    await check()
    return check


async def test_documents_that_look_sealed_stay_the_same_before_and_after_encrypt(
    db: Database, path: Path, use: SetKeys
) -> None:
    use(None)
    before = await wrote_lookalikes()
    use(FIRST)
    await before()
    between = await wrote_lookalikes()
    thread = await ran("a", CANARY)
    assert await encrypt(path) > 0
    use(FIRST)
    after = await wrote_lookalikes()
    assert await encrypt(path, new_keys=True) > 0
    use(FIRST)
    for check in (before, between, after):
        await check()
    assert await said(thread) == CANARY
    assert CANARY not in texts(path)
    assert await asyncio.to_thread(examine, databases.url(path)) == []


async def test_encrypt_goes_on_past_values_that_older_versions_stored(
    db: Database, path: Path, use: SetKeys
) -> None:
    use(None)
    store = SqlStore()
    for key in ("malformed", "forged"):
        await store.aput(PLACE, key, {"v": 1})
        looks = json.dumps({"$sealed": FORGED if key == "forged" else "x"})
        databases.execute(path, "UPDATE store SET value = ? WHERE key = ?", looks, key)
    thread = await ran("a", CANARY)
    assert CANARY in texts(path)
    use(FIRST)
    # A key may be missing, so the server does not guess that an envelope of it is data.
    with pytest.raises(commands.NotAllEncrypted, match=r"1 rows .* store/.*/forged is missing"):
        await encrypt(path)
    assert CANARY not in texts(path)
    item = await store.aget(PLACE, "malformed")
    assert item is not None
    assert item.value == {"$sealed": "x"}
    databases.execute(path, "DELETE FROM store WHERE key = 'forged'")
    assert await encrypt(path) == 0
    use(FIRST)
    assert await said(thread) == CANARY


def drop_guards(path: Path) -> None:
    """Remove the triggers that refuse plain rows, as only the tables' owner can."""
    if databases.kind() == "sqlite":
        named = "SELECT name FROM sqlite_master WHERE name LIKE 'only_sealed%'"
        for (name,) in databases.execute(path, named):
            databases.execute(path, f"DROP TRIGGER {name}")
    else:
        databases.execute(path, "DROP FUNCTION only_sealed CASCADE")


class Plain(NamedTuple):
    """A way to write a plain value into a table, and an operation that reads it.

    Attributes:
        sets: The column and the SQL of its new value.
        key: The columns that name a row.
    """

    table: str
    sets: tuple[str, str]
    key: tuple[str, ...]
    read: Callable[[UUID], Awaitable[Any]]

    def write(self, path: Path) -> None:
        column, value = self.sets
        databases.execute(path, f'UPDATE {self.table} SET "{column}" = {value}')

    @contextmanager
    def written(self, path: Path) -> Iterator[None]:
        databases.execute(path, f"CREATE TABLE saved AS SELECT * FROM {self.table}")
        self.write(path)
        yield
        same = " AND ".join(f"{self.table}.{name} = saved.{name}" for name in self.key)
        restore = f'"{self.sets[0]}" = saved."{self.sets[0]}" FROM saved WHERE {same}'
        databases.execute(path, f"UPDATE {self.table} SET {restore}")
        databases.execute(path, "DROP TABLE saved")


async def thread_row(thread: UUID) -> Any:
    return await row(Threads.get(None, thread))


async def state(thread: UUID) -> Any:
    return await Threads.State.get(None, {"configurable": {"thread_id": str(thread)}})


async def history(thread: UUID) -> Any:
    config: Any = {"configurable": {"thread_id": str(thread)}}
    return [each async for each in Checkpointer().alist(config)]


async def run_rows(thread: UUID) -> Any:
    return await rows(Runs.search(None, thread, limit=10, offset=0))


async def assistant_rows(_: UUID) -> Any:
    return await row(Assistants.get(None, system_id("echo")))


async def item(_: UUID) -> Any:
    return await SqlStore().aget(PLACE, "k")


async def events(thread: UUID) -> Any:
    return (
        await process.current().bus.followers.read_log(StreamKey("a", str(thread)), START)
    ).events


PLACED = ("thread_id", "checkpoint_ns", "checkpoint_id")
DOCUMENT = "'{\"a\": 1}'"


def plain() -> Iterator[Plain]:
    is_sqlite = databases.kind() == "sqlite"
    yield Plain("threads", ("values", DOCUMENT), ("thread_id",), thread_row)
    yield Plain("runs", ("kwargs", DOCUMENT), ("run_id",), run_rows)
    yield Plain("assistants", ("context", DOCUMENT), ("assistant_id",), assistant_rows)
    yield Plain("store", ("value", DOCUMENT), ("prefix", "key"), item)
    yield Plain("thread_checkpoints", ("type", "'msgpack+zstd'"), PLACED, state)
    yield Plain("thread_writes", ("type", "'msgpack'"), (*PLACED, "task_id", "idx"), history)
    number = ("thread_id", "epoch", "first")
    body = (
        "CAST(x'00' || substr(events, 2) AS BLOB)"
        if is_sqlite
        else r"'\x00' || substring(events FROM 2)"
    )
    yield Plain("event_segments", ("events", body), number, events)


async def test_plain_row_is_refused_once_all_are_encrypted(
    db: Database, path: Path, use: SetKeys
) -> None:
    thread, url = await ran("a", CANARY), databases.url(path)
    await SqlStore().aput(PLACE, "k", {"text": CANARY})
    assert await events(thread)
    await encrypt(path)
    use(FIRST)
    for each in plain():
        with pytest.raises(DRIVER_ERRORS, match=GUARDED):
            each.write(path)
    # A server that was started without the key, of whatever version, writes nothing.
    use(None)
    with pytest.raises(CannotDecrypt, match="LANGGRAPH_AES_KEY"):
        await db.read(keys.check)
    with pytest.raises(DRIVER_ERRORS, match=GUARDED):
        await SqlStore().aput(PLACE, "k", {"text": "plain"})
    for each in plain():
        drop_guards(path)
        with each.written(path):
            for key in (FIRST, None):
                use(key)
                with pytest.raises(CannotDecrypt, match=REFUSED if key else "plain|AES_KEY"):
                    await each.read(thread)
            use(FIRST)
            found = [f for f in await asyncio.to_thread(examine, url) if "rows are plain" in f.why]
            assert [f.id.partition(".")[0] for f in found] == [each.table]
            # `keys encrypt` does not make it credible.
            with pytest.raises(commands.NotAllEncrypted, match=REFUSED):
                await encrypt(path)
    # Each command, as each start of a server, brings the triggers back.
    await encrypt(path)
    with pytest.raises(DRIVER_ERRORS, match=GUARDED):
        next(plain()).write(path)
    use(FIRST)
    assert await said(thread) == CANARY


def readable(body: str) -> bytes:
    """Return the bytes of an exported value. The log compresses long segments."""
    found = b64decode(body)
    return zlib.decompress(found[2:]) if found[:2] == b"\0z" else found


async def test_export_of_an_encrypted_database_is_decrypted_or_refused(
    db: Database, path: Path, use: SetKeys, tmp_path: Path
) -> None:
    await tenants.adopt(db, "tenant_id")
    thread = await ran("a", CANARY)
    await ran("b", OTHER)
    await SqlStore().aput(PLACE, "k", {"text": CANARY})
    await encrypt(path)
    assert CANARY not in texts(path)
    url, folder, rules = databases.url(path), tmp_path / "export", PROGRAM.tenant_rules()
    command = threadhold("tenant", "export", "a", "--to", folder, "--database-url", url)
    for key in ({}, {"LANGGRAPH_AES_KEY": "another key of 24 bytes."}):
        refused = await asyncio.to_thread(ran_command, command, tmp_path, environment(**key))
        assert refused.returncode == 1
        assert "encrypted with the master key" in refused.stderr
        assert "Traceback" not in refused.stderr
        assert not folder.exists()
    env = environment(LANGGRAPH_AES_KEY=FIRST.decode())
    done = await asyncio.to_thread(ran_command, command, tmp_path, env)
    assert done.returncode == 0, done.stderr
    tables = {each.stem: each.read_text() for each in folder.glob("*.jsonl")}
    for name in ("threads", "runs", "store", "thread_checkpoints", "thread_writes"):
        assert CANARY in tables[name], name
    bodies = re.findall(r'"base64": "([^"]+)"', tables["event_segments"])
    assert CANARY.encode() in b"".join(map(readable, bodies))
    everything = "".join(tables.values())
    assert "$sealed" not in everything and "+sealed" not in everything and OTHER not in everything
    # A row that cannot be read ends the export, and its files are removed.
    use(FIRST)
    databases.execute(path, "UPDATE runs SET tenant = 'b' WHERE thread_id = ?", str(thread))
    for there in (False, True):
        broken = tmp_path / f"broken-{there}"
        if there:
            broken.mkdir()
        with pytest.raises(CannotDecrypt, match="another tenant"):
            await asyncio.to_thread(export, url, "b", broken, rules)
        assert list(tmp_path.glob("broken-*/*")) == []
        assert broken.exists() == there
    # What was erased reads as empty.
    await db.write(lambda conn: erase_key(conn, "a"))
    await asyncio.to_thread(export, url, "a", tmp_path / "erased", rules)
    erased = "".join(each.read_text() for each in (tmp_path / "erased").glob("*.jsonl"))
    assert CANARY not in erased and "$sealed" not in erased
