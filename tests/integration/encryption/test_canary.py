"""Encryption at rest: a text that a person typed is found in no byte of the database."""

import asyncio
import os
import stat
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from langgraph_runtime_sql import migrations
from langgraph_runtime_sql.database.shared_lock import shared_lock
from my_agent.tables import tables
from tests.chaos.victim import write_config
from tests.support import databases
from tests.support.processes import GRAPHS, Running, environment, free_port, threadhold
from tests.support.served import Api, client, served
from threadhold.admin import key_files
from threadhold.admin.backup import back_up
from threadhold.serving.heartbeat import Heartbeat

pytestmark = pytest.mark.usefixtures("each_database")

CANARY = "canary-7f3a9c"
KEY = "0123456789abcdef0123456789abcdef"
FAR = "0 0 1 1 *"


@pytest.fixture(scope="module")
def folder(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("canary")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    config = write_config(folder)
    with served(folder, config, LANGGRAPH_AES_KEY=KEY, ALLOW_PRIVATE_WEBHOOKS="true") as started:
        yield started


@pytest.fixture
async def api(server: Running) -> AsyncIterator[Api]:
    async with client(server) as opened:
        yield opened


def stored(folder: Path) -> bytes:
    """Return all bytes of the database: its files, or every column of every table."""
    if databases.kind() == "sqlite":
        files = sorted(folder.glob("data.db*"))
        assert len(files) > 1
        return b"\n".join(each.read_bytes() for each in files)
    found = []
    with psycopg.connect(databases.url(folder / "data.db"), options=databases.EVERYTHING) as raw:
        tables = raw.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        for (name,) in tables.fetchall():
            rows = raw.execute(sql.SQL("SELECT t.* FROM {} AS t").format(sql.Identifier(name)))
            found += [f"{name}: {row!r}" for row in rows.fetchall()]
    return "\n".join(found).encode()


def said(state: Any) -> list[str]:
    return [message["content"] for message in state["messages"]]


async def test_typed_text_is_in_no_byte_of_the_database(api: Api, folder: Path) -> None:
    message = {"messages": [{"role": "user", "content": f"{CANARY} input"}]}
    # Input, config, context and state.
    thread = await api.thread(title="shown")
    run = await api.run(
        thread,
        "echo",
        {**message, "value": f"{CANARY} value"},
        config={"configurable": {"note": f"{CANARY} config"}},
    )
    assert await api.ended(thread, run) == "success"
    await api.post(f"/threads/{thread}/state", {"values": {"value": f"{CANARY} update"}})
    # A webhook that waits for its receiver, with the values of the run.
    hooked = await api.thread()
    refused = {"webhook": f"http://127.0.0.1:9/{CANARY}"}
    assert await api.ended(hooked, await api.run(hooked, "echo", message, **refused)) == "success"
    # An error, an interrupt with its answer, a queued run, and a stateless one.
    failed = await api.thread()
    failing = {"message": f"{CANARY} error"}
    assert await api.ended(failed, await api.run(failed, "failing", failing)) == "error"
    asked = await api.thread()
    question = {"questions": [f"{CANARY} question"]}
    assert await api.ended(asked, await api.run(asked, "interrupt", question)) == "success"
    # Not called before the run has ended; an address needs no name server.
    webhook = f"https://93.184.216.34/{CANARY}"
    later = await api.run(thread, "echo", message, after_seconds=3600, webhook=webhook)
    answer = await api.post("/runs/wait", {"assistant_id": "echo", "input": message})
    assert said(answer) == [f"{CANARY} input", f"echo: {CANARY} input"]
    # Items, crons and assistants.
    item = {"namespace": ["notes"], "key": "k", "value": {"text": f"{CANARY} item", "n": 1}}
    assert (await api.http.put("/store/items", json=item)).status_code == 204
    payload = {"schedule": FAR, "assistant_id": "echo", "input": message}
    cron = await api.post("/runs/crons", payload)
    context = {"system": f"{CANARY} context"}
    assistant = await api.post("/assistants", {"graph_id": "echo", "context": context})
    copied = await api.post(f"/threads/{thread}/copy")

    async def check() -> None:
        """Check that every API answers with the text."""
        state = await api.get(f"/threads/{thread}/state")
        assert said(state["values"]) == [f"{CANARY} input", f"echo: {CANARY} input"]
        assert state["values"]["value"] == f"{CANARY} update"
        assert (await api.get(f"/threads/{thread}"))["values"] == state["values"]
        history = await api.get(f"/threads/{thread}/history?limit=10")
        assert said(history[-2]["values"]) == [f"{CANARY} input"]
        assert CANARY in str(history[-2]["metadata"])
        copy = await api.get(f"/threads/{copied['thread_id']}/state")
        assert copy["values"] == state["values"]
        kwargs = (await api.get(f"/threads/{thread}/runs/{run}"))["kwargs"]
        assert kwargs["input"]["value"] == f"{CANARY} value"
        assert kwargs["config"]["configurable"]["note"] == f"{CANARY} config"
        queued = (await api.get(f"/threads/{thread}/runs/{later}"))["kwargs"]
        assert (queued["input"], queued["webhook"]) == (message, webhook)
        assert CANARY in str((await api.get(f"/threads/{failed}"))["error"])
        assert CANARY in str((await api.get(f"/threads/{asked}"))["interrupts"])
        found = await api.get("/store/items?namespace=notes&key=k")
        assert found["value"] == item["value"]
        for wanted, count in ((f"{CANARY} item", 1), ("other", 0)):
            search = {"namespace_prefix": ["notes"], "filter": {"text": wanted}}
            assert len((await api.post("/store/items/search", search))["items"]) == count
        [shown] = await api.post("/runs/crons/search", {})
        assert shown["cron_id"] == cron["cron_id"]
        assert shown["payload"]["input"] == message
        same = await api.get(f"/assistants/{assistant['assistant_id']}")
        assert same["context"] == context
        for number, wanted in ((2, "update"), (0, "other")):
            search = {"values": {"value": f"{CANARY} {wanted}"}}
            assert len(await api.post("/threads/search", search)) == number
            assert await api.post("/threads/count", search) == number

    await check()
    found = await asyncio.to_thread(stored, folder)
    assert b"shown" in found, "metadata stays plain"
    place = found.find(CANARY.encode())
    assert place == -1, found[max(0, place - 200) : place + 100]
    # New keys and another encryption of every row, beside the server.
    command = threadhold("keys", "rotate", "--data", "--config", GRAPHS / "langgraph.json")
    command += ["--database-url", databases.url(folder / "data.db")]
    env = environment(LANGGRAPH_AES_KEY=KEY)
    done = await asyncio.to_thread(
        subprocess.run, command, env=env, cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "Encrypted with new data keys" in done.stdout
    await check()
    # From now on the database refuses plain rows. It accepts all that the server writes.
    copy = copied["thread_id"]
    assert await api.ended(copy, await api.run(copy, "echo", message)) == "success"
    answered = await api.run(asked, "interrupt", None, command={"resume": f"{CANARY} answer"})
    assert await api.ended(asked, answered) == "success"
    assert await api.ended(failed, await api.run(failed, "failing", failing)) == "error"
    await api.post(f"/threads/{asked}/state", {"values": {"answers": [f"{CANARY} update"]}})
    await api.post(f"/threads/{copy}/copy")
    await api.post("/runs/wait", {"assistant_id": "echo", "input": message})
    assert (await api.http.put("/store/items", json=item)).status_code == 204
    await api.post("/runs/crons", payload)
    changed = {"context": {"system": f"{CANARY} again"}}
    there = f"/assistants/{assistant['assistant_id']}"
    assert (await api.http.patch(there, json=changed)).status_code == 200
    assert CANARY.encode() not in await asyncio.to_thread(stored, folder)


@pytest.mark.only("sqlite")  # a second server on Postgres is refused before
async def test_server_without_the_keys_refuses_to_start(api: Api, folder: Path) -> None:
    await api.run(await api.thread(), "echo", {"value": CANARY})
    copy = folder / "copy.db"
    await asyncio.to_thread(back_up, databases.url(folder / "data.db"), copy)
    port = str(free_port())
    command = threadhold("serve", "--config", GRAPHS / "langgraph.json", "--port", port)
    command += ["--database-url", databases.url(copy)]

    async def refusal(key: str) -> str:
        env = environment(LANGGRAPH_AES_KEY=key)
        done = await asyncio.to_thread(
            subprocess.run, command, env=env, cwd=folder, capture_output=True, text=True
        )
        assert done.returncode != 0
        assert "Traceback" not in done.stderr
        return done.stderr

    assert "keys import" in await refusal(KEY)
    key_files.import_keys(databases.url(copy), folder / "copy.db.keys")
    assert "OLD_AES_KEYS" in await refusal("another key of 24 bytes.")


@pytest.mark.only("sqlite")  # on Postgres the server owns the files
def test_files_and_folders_are_private(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        path = tmp_path / "new" / "deep" / "data.db"
        opened = migrations.open_database(databases.url(path))
        opened.migrate()
        product = tables.open(databases.url(tmp_path / "other" / "product.db"))
        with shared_lock(databases.url(path)):
            pass
        back_up(databases.url(path), tmp_path / "new" / "copy.db")
        beat = Heartbeat(tmp_path / "new" / "beat")

        async def start() -> None:
            beat.start()

        asyncio.run(start())
        made = {each for name in ("new", "other") for each in (tmp_path / name).rglob("*")}
        names = {each.name for each in made}
        assert {"data.db", "data.db-wal", "data.db.lock", "data.db.shared-lock", "copy.db"} <= names
        assert {"product.db", "beat"} <= names
        for each in {*made, tmp_path / "new", tmp_path / "other"}:
            wanted = 0o700 if each.is_dir() else 0o600
            assert stat.S_IMODE(each.stat().st_mode) == wanted, each
        opened.close()
        product.close()
    finally:
        os.umask(old)
