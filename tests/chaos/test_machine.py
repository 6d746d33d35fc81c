"""The machine misbehaves: it stops the process, its disk is full, or processes collide."""

import asyncio
import random
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.chaos.ledger import Ledger, load
from tests.chaos.victim import PATIENCE, Victim, lines
from tests.support import databases
from tests.support.processes import environment, free_port, ran, threadhold
from threadhold.admin.backup import back_up

pytestmark = pytest.mark.usefixtures("each_database")

LEASE = 0.6


def steps(victim: Victim) -> list[str]:
    return [line.split()[1] for line in lines(victim.folder / "steps")]


def test_process_stopped_beyond_its_lease_continues_its_run(victim: Victim) -> None:
    """SIGSTOP simulates a debugger, a closed laptop or a migrated virtual machine."""
    victim.start(lease=LEASE)
    thread = victim.thread()
    asked = {"count": 40, "delay": 0.03, "record": str(victim.folder / "steps")}
    run = victim.run(thread, "steps", asked)
    for pause in range(3):
        victim.await_(lambda n=pause: len(steps(victim)) > 5 * n)
        with victim.frozen():
            time.sleep(2 * LEASE)
    assert victim.ended(thread, run) == "success"
    assert steps(victim) == [str(number) for number in range(40)]
    assert victim.sql("SELECT attempt FROM runs") == [(1,)]
    assert victim.findings() == []


def test_requests_to_a_stopped_process_are_answered_later(victim: Victim) -> None:
    victim.start(lease=LEASE)
    with ThreadPoolExecutor(4) as pool:
        with victim.frozen():
            answers = [pool.submit(victim.post, "/threads", {}) for _ in range(4)]
            time.sleep(2 * LEASE)
            assert not any(answer.done() for answer in answers)
        assert len({answer.result(60)["thread_id"] for answer in answers}) == 4


def fill(victim: Victim) -> httpx.Response:
    """Write until a write is refused, and return the refusal."""
    for _ in range(60):
        answer = victim.client.post("/threads", json={"metadata": {"ballast": "x" * 1_000_000}})
        if not answer.is_success:
            return answer
    raise AssertionError("the limit is never met")


# The error of a Postgres server that cannot extend the file of a table.
FULL = """
CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE disk_full USING MESSAGE = 'could not extend file: No space left on device';
END $$
"""


@contextmanager
def full_disk(victim: Victim) -> Iterator[None]:
    """Leave the database hardly any space until the end of the block."""
    if databases.kind() == "sqlite":
        largest = max(path.stat().st_size for path in victim.folder.iterdir())
        victim.limit_files(largest + 2**18)
        yield
        victim.limit_files(None)
        return
    victim.sql(FULL)
    # One table per transaction, so that the locks cannot deadlock with the server.
    for table in databases.tables(victim.database):
        victim.sql(
            f'CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON "{table}"'
            " EXECUTE FUNCTION full_disk()"
        )
    yield
    for table in databases.tables(victim.database):
        victim.sql(f'DROP TRIGGER full_disk ON "{table}"')
    victim.sql("DROP FUNCTION full_disk()")


def test_full_disk_refuses_only_writes(victim: Victim) -> None:
    victim.start()
    thread = victim.thread(metadata={"kept": "yes"})
    idle = victim.thread(metadata={"graph_id": "echo"})
    running = victim.run(thread, "steps", {"count": 20, "delay": 0.05})
    with full_disk(victim):
        _assert_refuses_writes_alone(victim, thread, idle)
    assert victim.thread(metadata={"after": "wards"})
    # A run during the full disk has ended or continues, and the server needs no restart.
    assert victim.ended(thread, running) in ("success", "error")
    other = victim.thread()
    assert victim.ended(other, victim.run(other, "steps", {"count": 3})) == "success"
    assert victim.findings() == []


def _assert_refuses_writes_alone(victim: Victim, thread: str, idle: str) -> None:
    refused = fill(victim)
    assert refused.status_code == 503, refused.text
    assert refused.headers["content-type"].startswith("application/json")
    assert any(words in refused.text for words in ("disk", "full", "No space left"))
    # Operations that need no space still work.
    assert victim.get(f"/threads/{thread}")["metadata"]["kept"] == "yes"
    assert victim.post("/threads/search", {"metadata": {"kept": "yes"}})[0]["thread_id"] == thread
    assert victim.client.get("/ok").status_code == 200
    for path, body in (
        ("/threads", {"metadata": {"ballast": "x" * 1_000_000}}),
        (f"/threads/{idle}/state", {"values": {"value": "x" * 1_000_000}, "as_node": "echo"}),
        (f"/threads/{idle}/runs", {"assistant_id": "echo", "input": {"value": "x" * 1_000_000}}),
        ("/assistants", {"graph_id": "echo", "metadata": {"ballast": "x" * 1_000_000}}),
    ):
        answer = victim.client.post(path, json=body)
        assert answer.status_code == 503, (path, answer.status_code, answer.text[:300])


@pytest.mark.only("sqlite")  # test_postgres.py, test_processes.py: the same on Postgres
def test_second_process_on_the_file_is_refused(victim: Victim) -> None:
    victim.start()
    url = databases.url(victim.database)
    for command in (
        threadhold(
            "serve",
            "--config",
            victim.folder / "langgraph.json",
            "--port",
            free_port(),
            "--database-url",
            url,
        ),
        threadhold("migrate", "--database-url", url),
    ):
        second = ran(command, victim.folder, environment())
        output = second.stdout + second.stderr
        assert second.returncode not in (0, None), output
        assert f"is in use by process {victim.pid}" in output
        assert "Postgres" in output
        assert "Traceback" not in output
    # The first process still serves.
    assert victim.thread()


@pytest.mark.only("sqlite")  # Postgres has its own backup tools.
async def test_backup_under_load_is_consistent(
    victim: Victim, rng: random.Random, tmp_path: Path
) -> None:
    ledger, copies = Ledger(), []
    await asyncio.to_thread(victim.start)
    clients = asyncio.create_task(load(victim, ledger, 10, rng))
    known: list[str] = []
    for number in range(3):
        await asyncio.sleep(0.3)
        async with asyncio.timeout(PATIENCE):
            while not (known := [name for kind, name in ledger.kept if kind == "thread"]):
                await asyncio.sleep(0.05)
        copy = tmp_path / f"copy-{number}.db"
        await asyncio.to_thread(back_up, databases.url(victim.database), copy)
        copies.append((copy, known))
    await asyncio.to_thread(victim.kill)
    await clients
    assert copies[-1][1]
    for copy, known in copies:
        with closing(sqlite3.connect(copy)) as raw:
            found = {thread for (thread,) in raw.execute("SELECT thread_id FROM threads")}
            assert set(known) - ledger.deleted <= found
            assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
    # A server starts on the copy, and no run is stuck.
    await asyncio.to_thread(_serve_copy, victim, copies[-1][0])


def _serve_copy(victim: Victim, copy: Path) -> None:
    victim.erase()
    victim.database.write_bytes(copy.read_bytes())
    victim.start()
    in_flight = "SELECT count(*) FROM runs WHERE status IN ('pending', 'running')"
    victim.await_(lambda: victim.sql(in_flight) == [(0,)])
    assert victim.findings() == []


# --- many clients on one thread

STRATEGIES = ("enqueue", "interrupt", "rollback", "reject")


async def test_thread_has_one_run_at_a_time_under_mixed_strategies(
    victim: Victim, rng: random.Random
) -> None:
    await asyncio.to_thread(victim.start)
    thread, record = victim.thread(), victim.folder / "steps"
    accepted: dict[str, str] = {}
    refused = 0

    async def client(http: httpx.AsyncClient, strategies: list[str]) -> None:
        nonlocal refused
        for strategy in strategies:
            body: dict[str, Any] = {
                "assistant_id": "steps",
                "input": {"count": 3, "delay": 0.005, "record": str(record)},
                "multitask_strategy": strategy,
            }
            answer = await http.post(f"/threads/{thread}/runs", json=body)
            if strategy == "reject" and answer.status_code == 409:
                refused += 1
            else:
                assert answer.is_success, (answer.status_code, answer.text)
                accepted[answer.json()["run_id"]] = strategy

    limits = httpx.Limits(max_connections=50)
    async with (
        httpx.AsyncClient(base_url=victim.url, timeout=60, limits=limits) as http,
        asyncio.TaskGroup() as group,
    ):
        for _ in range(50):
            asked = rng.choices(STRATEGIES, weights=(6, 1, 1, 2), k=3)
            group.create_task(client(http, asked))
    in_flight = "SELECT count(*) FROM runs WHERE status IN ('pending', 'running')"
    await asyncio.to_thread(victim.await_, lambda: victim.sql(in_flight) == [(0,)])
    assert refused > 0
    order = dict(victim.sql("SELECT run_id, seq FROM runs"))
    # Only a rollback deletes a run.
    assert set(order) <= set(accepted)
    if "rollback" not in accepted.values():
        assert set(order) == set(accepted)
    executed = [line.split()[0] for line in lines(record)]
    turns = [run for run, before in zip(executed, [None, *executed], strict=False) if run != before]
    assert len(turns) == len(set(turns)), "two runs of the thread took turns"
    kept = [order[run] for run in turns if run in order]
    assert kept == sorted(kept), "a run overtook an earlier one"
    ends = dict(victim.sql("SELECT run_id, status FROM runs"))
    assert set(ends.values()) <= {"success", "interrupted"}
    assert victim.get(f"/threads/{thread}")["status"] in ("idle", "interrupted")
    assert victim.findings() == []
