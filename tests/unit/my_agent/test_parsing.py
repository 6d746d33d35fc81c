"""Parsing: workers have limits of time and memory, and end with the process that started them."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from my_agent.parsing import Pool, Unreadable
from my_agent.turns import TenantThreads, TooManyWaiting
from tests.support import parsers
from tests.support.processes import ROOT, environment

MEMORY = 2**28
# Begins a task that never ends, and says so once its worker runs.
STARTED = """
from my_agent.parsing import Pool
from tests.support import parsers
pool = Pool()
pool.submit(parsers.length, "", tenant="a").result()
pool.submit(parsers.waits_forever, "b", tenant="a", seconds=600)
{then}
"""


@pytest.fixture
def pool() -> Iterator[Pool]:
    started = Pool(2)
    yield started
    started.stop()


async def gone(pids: list[int]) -> None:
    """Wait until processes have ended."""
    async with asyncio.timeout(60):
        while set(pids) & set(parsers.workers(os.getpid())):
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("parser", "said"),
    [
        (parsers.waits_forever, "it takes more than 1 seconds to read"),
        (parsers.fills_memory, "it takes too much memory to read"),
        (parsers.aborts, "its parser has crashed"),
        (parsers.fails, r"it is damaged \(KeyError\)"),
    ],
)
def test_parser_that_misbehaves_is_an_error_and_the_next_one_works(
    pool: Pool, parser: object, said: str
) -> None:
    pool.submit(parsers.length, "", tenant="a").result()
    seconds = 1 if parser is parsers.waits_forever else 60
    with pytest.raises(Unreadable, match=f"^{said}$"):
        pool.submit(parser, "b", tenant="a", seconds=seconds, memory=MEMORY).result()  # type: ignore[arg-type]
    assert pool.submit(parsers.length, "four", tenant="a").result() == 4
    assert len(pool.pids()) == 1


def test_worker_inherits_no_variables(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JWT_SECRET", "secret")
    names = pool.submit(parsers.variables, "", tenant="a").result()
    assert not [each for each in names if each not in {"PATH", "PYTHONPATH", "LC_CTYPE"}]


def test_one_tenant_leaves_a_worker_to_the_others(pool: Pool) -> None:
    stuck = [pool.submit(parsers.waits_forever, "b", tenant="a", seconds=60) for _ in range(4)]
    assert pool.submit(parsers.length, "four", tenant="b").result() == 4
    assert not any(each.done() for each in stuck)
    pool.stop()
    with pytest.raises(Unreadable):
        stuck[0].result()
    assert [each.cancelled() for each in stuck[1:]] == [True] * 3


def test_waiting_work_of_a_tenant_is_limited() -> None:
    turns = TenantThreads("limited", most=1)
    with turns._lock:
        turns._begun["a"] = 1
    turns.submit("a", int)
    with pytest.raises(TooManyWaiting, match="try again later"):
        turns.submit("a", int)
    assert turns.submit("b", int).result() == 0
    turns.cancel()


async def test_stopped_pool_has_no_workers(pool: Pool) -> None:
    pool.submit(parsers.length, "", tenant="a").result()
    pids = pool.pids()
    assert set(pids) <= set(parsers.workers(os.getpid()))
    pool.stop()
    await gone(pids)


@pytest.mark.parametrize("then", ["print('ready', flush=True); input()", "pool.stop()"])
async def test_workers_end_with_their_server(then: str) -> None:
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", STARTED.format(then=then)),
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    async with asyncio.timeout(120):
        if await server.stdout.readline():
            assert parsers.workers(server.pid)
            server.kill()
        await server.wait()
        while parsers.workers(server.pid):
            await asyncio.sleep(0)
