"""A tenant's data: exports hold all of it, and after an erase no byte of it is in the database's files."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from click.testing import CliRunner, Result
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import insert
from sqlalchemy.exc import DBAPIError

from langgraph_runtime_sql.audit.verify import verify
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.migrations import open_database
from my_agent.chat.tables import documents, files, passages
from my_agent.diagnosis.reading.digest import Digest, Group
from my_agent.diagnosis.record import log as diagnosis
from my_agent.diagnosis.record import texts
from my_agent.tables import tables
from server.cli import PROGRAM, main
from tests.support import databases
from tests.support.diagnosis import note as remark
from tests.support.diagnosis import opened
from tests.support.issuer import SECRET, bearer, token
from tests.support.processes import GRAPHS, ROOT, environment, free_port, running
from tests.support.served import client
from threadhold.cli import main as plain
from threadhold.tenant_data import RUNTIME

pytestmark = pytest.mark.usefixtures("each_database")

CANARY = f"canary{uuid4().hex}"
OTHER = f"other{uuid4().hex}"
AUDIT_KEY = uuid4().hex
Run = Callable[..., Result]


@pytest.fixture(scope="module")
async def path(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    """A database in which two tenants have rows in the tables of the runtime and of the chat."""
    import sys

    folder = tmp_path_factory.mktemp("tenants")
    config = {
        "graphs": {name: f"{GRAPHS}/{name}.py:graph" for name in ("echo", "memory")},
        "auth": {"path": "hooks.auth:auth"},
        "sql": {"tenant_key": "tenant_id"},
    }
    (folder / "langgraph.json").write_text(json.dumps(config))
    port = free_port()
    command = [sys.executable, "-m", "server", "serve", "--port", str(port)]
    command += ["--config", str(folder / "langgraph.json")]
    command += ["--database-url", databases.url(folder / "data.db")]
    env = environment(
        APP_ENV="production", JWT_SECRET=SECRET, PYTHONPATH=str(ROOT), AUDIT_KEY=AUDIT_KEY
    )
    with running(command, port, folder, env) as server:
        for name in (CANARY, OTHER):
            sent = bearer(token(tenant_id=name, sub=f"{name}-ada"))
            async with client(server, **sent) as api:
                long, *_, thread = [await api.thread(topic=f"{name} topic") for _ in range(20)]
                run = await api.run(thread, "echo", {"value": 1}, metadata={"m": f"{name} meta"})
                assert await api.ended(thread, run) == "success"
                said = [{"role": "user", "content": f"{name} said {n} " * 20} for n in range(50)]
                run = await api.run(long, "echo", {"messages": said})
                assert await api.ended(long, run) == "success"
                run = await api.run(thread, "memory", {"who": f"{name} prompt"})
                assert await api.ended(thread, run) == "success"
                await api.post("/assistants", {"graph_id": "echo", "name": f"{name} assistant"})
                body = {"assistant_id": "echo", "schedule": "0 0 1 1 *"}
                await api.post(f"/threads/{thread}/runs/crons", body)
                item = {"namespace": ["n"], "key": f"{name} key", "value": {"v": f"{name} item"}}
                assert (await api.http.put("/store/items", json=item)).is_success
                gone = await api.thread(topic=f"{name} deleted")
                assert (await api.http.delete(f"/threads/{gone}")).is_success
    database = tables.open(databases.url(folder / "data.db"))
    for name in (CANARY, OTHER):
        note = folder / f"{name}.md"
        note.write_text(f"{name} document")
        own = {"tenant_id": name, "document_id": f"{name} id"}
        with database.writing(name) as connection:
            connection.execute(insert(documents).values(**own, digest=name))
            connection.execute(insert(files).values(**own, path=str(note)))
            # An upload has a name instead of a path.
            connection.execute(insert(files).values(**own, path=f"upload/{name}.txt"))
            text = {"number": 1, "title": "t", "section": "s", "text": f"{name} passage"}
            connection.execute(insert(passages).values(**own, **text, vector=b"1234"))
            notes = [remark(f"{name} note {number}") for number in range(30)]
            diagnosis.append(connection, name, "incident", [*opened(), *notes], snapshot=True)
            texts.write(connection, name, "incident", "s1", f"{name} log\n" * 40_000)
            digest = Digest(groups=[Group("text", name, "", "neutral", "", name, 1, [])])
            texts.keep_digest(connection, name, "incident", "s1", 1, digest)
    database.close()
    yield folder / "data.db"


@pytest.fixture
def run(path: Path) -> Run:
    def invoke(*arguments: str | Path, command: Any = main) -> Result:
        given = [*map(str, arguments), "--database-url", databases.url(path)]
        return CliRunner().invoke(command, given, env={"AUDIT_KEY": AUDIT_KEY})

    return invoke


async def test_every_table_has_a_rule(path: Path) -> None:
    ruled = {rule.table for rule in PROGRAM.tenant_rules()}
    assert set(databases.tables(path)) - ruled == set()
    names = [rule.table for rule in PROGRAM.tenant_rules()]
    assert len(names) == len(set(names))


async def test_table_without_a_rule_is_refused(run: Run) -> None:
    # The library alone does not know the tables of the application.
    refused = run("tenant", "erase", CANARY, command=plain)
    assert refused.exit_code == 1
    assert "chat_document" in refused.output
    assert "chat_document" not in {rule.table for rule in RUNTIME}


async def test_export_holds_all_rows_and_files_of_the_tenant_alone(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "export"
    # A file of the operator that has the name of an upload by chance.
    (tmp_path / "upload").mkdir()
    (tmp_path / "upload" / f"{CANARY}.txt").write_text("the operator's own")
    monkeypatch.chdir(tmp_path)
    done = run("tenant", "export", CANARY, "--to", folder)
    assert done.exit_code == 0, done.output
    lines = {each.stem: each.read_text().splitlines() for each in folder.glob("*.jsonl")}
    tables = (
        "threads",
        "runs",
        "thread_checkpoints",
        "crons",
        "assistants",
        "store",
        "chat_passage",
    )
    for table in (*tables, "diagnosis_events", "diagnosis_texts"):
        assert lines[table], table
    assert len(lines["audit_entries"]) > 20
    # The row of the long conversation names the checkpoint; the export shows the messages.
    threads = map(json.loads, lines["threads"])
    [messages] = [each["values"]["messages"] for each in threads if each["long_values"]]
    assert [f"{CANARY} said 49" in each["content"] for each in messages[-2:]] == [True, True]
    # So do the checkpoints themselves, although each is stored as the difference to another one.
    stored = [json.loads(each)["value"]["checkpoint"] for each in lines["thread_checkpoints"]]
    assert any(f"{CANARY} said 49" in json.dumps(each["channel_values"]) for each in stored)
    assert f"{CANARY} document" in {each.read_text() for each in (folder / "files").iterdir()}
    everything = b"".join(each.read_bytes() for each in folder.rglob("*") if each.is_file())
    assert OTHER.encode() not in everything
    assert b"the operator's own" not in everything and "upload/" not in done.output
    assert all(each.stat().st_mode & 0o077 == 0 for each in folder.rglob("*"))
    assert "is not empty" in run("tenant", "export", CANARY, "--to", folder).output
    entered = [json.loads(each) for each in run("audit", "--kind", "tenant").output.splitlines()]
    assert [(each["tenant"], each["action"], each["route"]) for each in entered] == [
        (CANARY, "export", "tenant export")
    ]
    assert entered[0]["user"], "the user of the system who ran the command"
    assert run("tenant", "export", CANARY[:-1], "--to", tmp_path / "none").exit_code == 1


async def test_nothing_is_erased_without_the_exact_name(run: Run, path: Path) -> None:
    before = databases.contents(path)
    shown = run("tenant", "erase", CANARY)
    assert shown.exit_code == 0, shown.output
    assert "threads: 20" in shown.output
    assert f"--confirm {CANARY}" in shown.output
    assert run("tenant", "erase", CANARY, "--confirm", CANARY.upper()).exit_code == 2
    assert databases.contents(path) == before


async def test_after_an_erase_no_byte_is_left_and_other_tenants_and_the_audit_chain_stay(
    run: Run, path: Path, each_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = {
        table: [row for row in rows if OTHER in "".join(row)]
        for table, rows in databases.contents(path).items()
        # The index of words is built anew.
        if not table.startswith("chat_passage_words")
    }
    assert bytes_of(path, each_database).count(CANARY.encode()) > 20, "the search finds nothing"
    research = path.parent / "task-data"
    monkeypatch.setenv("RESEARCH_DATA_FOLDER", str(research))
    for name in (CANARY, OTHER):
        (research / name / "backups").mkdir(parents=True)
        (research / name / "project.md").write_text(name)
    assert f"Folder: {research / CANARY}" in run("tenant", "erase", CANARY).output
    assert (research / CANARY).exists()
    done = run("tenant", "erase", CANARY, "--confirm", CANARY)
    assert done.exit_code == 0, done.output
    assert f"{CANARY}.md" in done.output
    assert [each.name for each in research.iterdir()] == [OTHER]
    left = bytes_of(path, each_database)
    assert OTHER.encode() in left
    assert CANARY.encode() not in left
    after = databases.contents(path)
    assert all(row in after[table] for table, rows in others.items() for row in rows)
    assert "Would erase 0 rows" in run("tenant", "erase", CANARY).output

    def check(conn: Connection) -> None:
        assert verify(conn, (AUDIT_KEY,)).status == "intact"

    database = open_database(databases.url(path), exclusive=False)
    database.read_sync(check)
    database.close()
    # The one exception is over: the events of the other tenant cannot be deleted.
    product = tables.open(databases.url(path))
    with product.reading(OTHER) as connection:
        assert diagnosis.last_seq(connection, OTHER, "incident") == 35
    with pytest.raises(DBAPIError, match="never changed"), product.writing(OTHER) as connection:
        connection.exec_driver_sql("DELETE FROM diagnosis_events")
    with pytest.raises(DBAPIError, match="never changed"), product.writing(OTHER) as connection:
        connection.exec_driver_sql("DELETE FROM diagnosis_texts")
    product.close()
    listed = run("audit", "--limit", "1").output
    assert json.loads(listed)["action"] == "erase"
    assert "are intact" in run("audit", "--verify").output


def bytes_of(path: Path, kind: str) -> bytes:
    """Return all bytes of a database's files, on Postgres also those of the server's log of writes."""
    if kind == "sqlite":
        return b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*"))
    own = conninfo_to_dict(databases.url(path))["dbname"]
    with psycopg.connect(databases.server().admin, autocommit=True) as raw:
        asked = "SELECT current_setting('data_directory'), oid FROM pg_database WHERE datname = %s"
        [[folder, oid]] = raw.execute(asked, (own,)).fetchall()
        # Old segments are removed instead of renamed.
        raw.execute("ALTER SYSTEM SET wal_recycle = off")
        raw.execute("SELECT pg_reload_conf()")
        for _ in range(2):
            raw.execute("SELECT pg_switch_wal()")
            raw.execute("CHECKPOINT")
        raw.execute("ALTER SYSTEM RESET wal_recycle")
        raw.execute("SELECT pg_reload_conf()")
    # The server has databases of other tests, too.
    places = [each for each in Path(folder).iterdir() if each.is_dir() and each.name != "base"]
    found = []
    for place in (*places, Path(folder, "base", str(oid))):
        for each in place.rglob("*"):
            with suppress(FileNotFoundError, IsADirectoryError):
                found.append(each.read_bytes())
    return b"".join(found)
