"""`threadhold storage` shows what takes room and what rules would free, and deletes nothing."""

import asyncio
import json
import random
import re
import string
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from click.testing import CliRunner, Result

from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.ops.threads import retention
from langgraph_runtime_sql.retention_rules import parse
from langgraph_runtime_sql.runtime import current
from tests.support import databases, runtime
from tests.support.seeds import SEED
from threadhold.admin import storage
from threadhold.cli import main

pytestmark = [
    pytest.mark.usefixtures("each_database", "settings"),
    pytest.mark.graphs("echo", "steps"),
]

RULES = [{"graph": "steps", "keep": {"last": 2}}, {"graph": "echo", "keep": "latest"}]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "full.db"


@pytest.fixture
async def db(path: Path) -> AsyncIterator[Database]:
    async with runtime.opened(path) as opened:
        await runtime.register(["echo", "steps"])
        yield opened


async def talked(graph: str, value: str) -> UUID:
    thread = uuid4()
    async with runtime.working():
        for _ in range(3):
            made = await runtime.start_run(thread, graph, {"value": value})
            assert await runtime.ended(UUID(str(made["run_id"]))) == "success"
    return thread


async def show(path: Path, config: Path) -> Result:
    """Run the command beside the open runtime."""
    arguments = ["storage", "--config", str(config), "--database-url", databases.url(path)]
    return await asyncio.to_thread(CliRunner().invoke, main, arguments, catch_exceptions=False)


async def test_it_shows_what_takes_room_and_what_rules_would_free(
    db: Database, path: Path, tmp_path: Path
) -> None:
    # Text that cannot be compressed.
    long = "".join(random.Random(SEED).choices(string.printable, k=100_000))
    large, small = await talked("echo", long), await talked("steps", "short")
    config = tmp_path / "langgraph.json"
    (tmp_path / "graph.py").write_text("graph = None\n")
    section = {"retention": {"checkpoints": RULES}}
    config.write_text(json.dumps({"graphs": {"echo": "./graph.py:graph"}, "sql": section}))
    before = await asyncio.to_thread(databases.contents, path)
    shown = await show(path, config)
    assert shown.exit_code == 0, shown.output
    lines = [each.split() for each in shown.output.splitlines()]
    assert ["Tables:"] in lines
    assert [each[0] for each in lines if each and each[0] in (str(large), str(small))] == [
        str(large),
        str(small),
    ]
    told = re.findall(r"keep (.+?)\) would free .+: (\d+) checkpoints in 1 threads", shown.output)
    assert await asyncio.to_thread(databases.contents, path) == before
    # What it tells is what the rules then do.
    for at, (rule, kept) in enumerate(zip(parse(RULES), ("the last 2", "the last 1"), strict=True)):
        assert told[at] == (kept, str(await retention.apply(current().database, [rule])))
    assert "would free 0 bytes: 0 checkpoints" in (await show(path, config)).output


async def test_freed_bytes_are_those_of_the_database(db: Database, path: Path) -> None:
    thread = await talked("echo", "word " * 5_000)
    rules = parse(RULES)
    url = databases.url(path)
    before = await asyncio.to_thread(storage.examine, url, rules, top=1)
    await retention.apply(current().database, rules)
    after = await asyncio.to_thread(storage.examine, url, rules, top=1)
    [_, freed] = before.freed
    assert freed.threads == 1
    assert freed.bytes == before.threads[str(thread)] - after.threads[str(thread)] > 0
    assert after.freed == [storage.Freed(), storage.Freed()]


@pytest.mark.only("sqlite")
async def test_database_that_is_missing_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "none" / "none.db"
    arguments = ["storage", "--config", str(tmp_path / "langgraph.json")]
    arguments += ["--database-url", databases.url(missing)]
    shown = await asyncio.to_thread(CliRunner().invoke, main, arguments)
    assert shown.exit_code == 1
    assert f"There is no database at {missing}" in shown.output
