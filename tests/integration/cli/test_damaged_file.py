"""A damaged database: commands and start say what is damaged, and a server serves the rest."""

import asyncio
import json
import random
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from langgraph_runtime_sql import migrations
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.errors import DatabaseDamaged
from server.cli import main as application
from tests.support import databases
from tests.support.processes import GRAPHS, environment, free_port, ran
from tests.support.processes import threadhold as command
from tests.support.served import client, served
from threadhold.cli import main

pytestmark = pytest.mark.usefixtures("each_database")

PAGE = 4096
REMEDY = "put a backup in its place with `threadhold restore --force`"
COMMANDS = (
    ("doctor",),
    ("doctor", "--fix"),
    ("migrate",),
    ("storage",),
    ("audit",),
    ("webhooks", "list"),
    ("effects", "resolve", "01a20bc8-27e4-7157-ac0e-3b2b12a85270", "--happened", "no"),
    ("keys", "export", "{folder}/keys"),
    ("tenant", "export", "acme", "--to", "{folder}/export"),
    ("backup", "{folder}/copy.db"),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    migrations.migrate(databases.url(tmp_path / "data.db"))
    return tmp_path / "data.db"


def overwrite(path: Path, table: str | None) -> None:
    """Fill the first page of a table with random bytes; None: the second half of the file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        named = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        [page] = raw.execute(named, (table,)).fetchone() or [0]
    content = bytearray(path.read_bytes())
    if table is None:
        del content[len(content) // 2 :]
    else:
        content[(page - 1) * PAGE : page * PAGE] = random.Random(0).randbytes(PAGE)
    path.write_bytes(content)


@pytest.mark.only("sqlite")  # Only SQLite's file is ours.
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_each_command_says_what_is_damaged_and_what_to_do(
    path: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    overwrite(path, None)
    given = [each.format(folder=tmp_path) for each in arguments]
    result = CliRunner().invoke(main, [*given, "--database-url", databases.url(path)])
    assert result.exit_code == 1, result.output
    assert f"Error: {path} is damaged: database disk image is malformed" in result.output
    assert REMEDY in result.output
    # click reports an error; anything else would be a traceback.
    assert isinstance(result.exception, SystemExit)


@pytest.mark.only("sqlite")
@pytest.mark.parametrize("program", [main, application], ids=["threadhold", "server"])
def test_damaged_table_is_named(path: Path, program: object) -> None:
    overwrite(path, "runs")
    for arguments in (["doctor"], ["storage"]):
        url = ["--database-url", databases.url(path)]
        result = CliRunner().invoke(program, [*arguments, *url])  # type: ignore[arg-type]
        assert result.exit_code == 1, result.output
        assert "table runs: database disk image is malformed" in result.output
        assert REMEDY in result.output


@pytest.mark.only("sqlite")
@pytest.mark.parametrize("table", ["runs", "assistants", "alembic_version", None])
def test_serve_says_what_doctor_says(path: Path, tmp_path: Path, table: str | None) -> None:
    overwrite(path, table)
    config, url = str(GRAPHS / "langgraph.json"), databases.url(path)
    serve = command("serve", "--config", config, "--port", str(free_port()), "--database-url", url)
    done = ran(serve, tmp_path, environment())
    assert done.returncode == 3
    printed = done.stdout + done.stderr
    assert "Traceback" not in printed
    where = "" if table is None else f"table {table}: "
    assert f"{path} is damaged: {where}database disk image is malformed" in printed
    assert REMEDY in printed


def damage(path: Path) -> None:
    """Let each insertion of a thread meet damage, as Postgres reports it; on SQLite for real."""
    if databases.kind() == "sqlite":
        overwrite(path, "threads")
    else:
        databases.execute(
            path,
            "CREATE FUNCTION damage() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE"
            " data_corrupted USING MESSAGE = 'invalid page in block 0 of relation'; END $$",
        )
        databases.execute(
            path,
            "CREATE TRIGGER damage BEFORE INSERT ON threads EXECUTE FUNCTION damage()",
        )


@pytest.mark.only("sqlite")
async def test_a_write_that_meets_damage_leaves_the_others_of_its_group(path: Path) -> None:
    overwrite(path, "threads")
    database, gate = migrations.open_database(databases.url(path)), threading.Event()
    await database.start()

    def inserting(statement: str, *params: str) -> Callable[[Connection], int]:
        return lambda conn: int(conn.raw.execute(statement, params).rowcount)

    thread = inserting("INSERT INTO threads (thread_id) VALUES ('a')")
    facts = [inserting("INSERT INTO facts (name, value) VALUES (?, '1')", f"f{n}") for n in "123"]
    try:
        held = asyncio.create_task(database.write(lambda conn: gate.wait(10)))
        group = [facts[0], thread, facts[1], thread, facts[2]]
        waiting = asyncio.gather(*map(database.write, group), return_exceptions=True)
        while database.usage()["write"][2] < len(group):
            await asyncio.sleep(0)
        gate.set()
        answers, _ = await waiting, await held
    finally:
        await database.stop()
    assert [type(each) for each in answers[1::2]] == [DatabaseDamaged] * 2
    assert answers[::2] == [1] * 3
    with closing(sqlite3.connect(path)) as raw:
        [stored] = raw.execute("SELECT count(*) FROM facts WHERE name IN ('f1', 'f2', 'f3')")
    assert stored == (3,)


async def test_server_refuses_what_is_damaged_and_serves_the_rest(
    path: Path, tmp_path: Path
) -> None:
    damage(path)
    with served(tmp_path) as server:
        async with client(server) as api:
            for _ in range(2):
                refused = await api.http.post("/threads", json={})
                assert refused.status_code == 503
                assert refused.json()["database"] == "damaged"
                assert "damaged" in refused.json()["detail"]
                assert str(path) not in refused.text
            assert await api.post("/assistants/search")
            health = await api.http.get("/health")
            assert (health.status_code, health.json()["database"]) == (200, "damaged")
            metrics = (await api.http.get("/metrics")).text
            assert 'threadhold_database_state{state="damaged"} 1.0' in metrics
        lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    found = [each for each in lines if each["level"] != "info" and each["event"] != "request"]
    assert [each.get("action") for each in found] == ["database_damaged"]
