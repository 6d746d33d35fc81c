"""`useStream` of @langchain/react in Node, as users have it from the npm registry."""

import asyncio
import json
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support import databases
from tests.support.javascript import JAVASCRIPT
from tests.support.processes import GRAPHS, Running, environment, free_port, threadhold
from tests.support.processes import running as run
from tests.support.served import Api, client, served

PATIENCE = 40.0
Shown = dict[str, Any]

pytestmark = pytest.mark.usefixtures("each_database", "packages")


@pytest.fixture(scope="module")
def folder(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hook")


@pytest.fixture(scope="module")
def server(each_database: str, folder: Path) -> Iterator[Running]:
    with served(folder) as started:
        yield started


@pytest.fixture
async def api(server: Running) -> AsyncIterator[Api]:
    async with client(server) as found:
        yield found


class Hook:
    """A component with the hook.

    Attributes:
        shown: What it has shown, oldest first.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.shown: list[Shown] = []

    def do(self, **asked: Any) -> None:
        """Call the method `submit` or `respond` of the hook."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")

    def talk(self, **more: Any) -> None:
        """Send a message of a user."""
        self.do(submit={"messages": [{"type": "human", "content": "hi"}], **more})

    async def until(self, is_wanted: Callable[[Shown], Any]) -> Shown:
        """Return what the component shows from now on, once `is_wanted` is true of it."""
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            while True:
                line = await self._process.stdout.readline()
                assert line, "the component has ended"
                self.shown.append(json.loads(line))
                if is_wanted(self.shown[-1]):
                    return self.shown[-1]


@asynccontextmanager
async def hook(url: str, graph: str, thread: str) -> AsyncIterator[Hook]:
    """Show a thread with the hook until the end of the block."""
    process = await asyncio.create_subprocess_exec(
        *("node", str(JAVASCRIPT / "hook.mjs"), url, graph, thread),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        found = Hook(process)
        await found.until(lambda shown: not shown["hydrating"])
        yield found
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


def texts(shown: Shown) -> list[str]:
    return [each["text"] for each in shown["messages"]]


def counted(n: int) -> str:
    return "".join(f"{i} " for i in range(n))


def is_done(shown: Shown) -> bool:
    return not shown["loading"]


async def talked(shown: Hook, **more: Any) -> Shown:
    """Send a message, and return what is shown after the run."""
    shown.talk(**more)
    await shown.until(lambda each: each["loading"])
    return await shown.until(is_done)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
async def test_each_token_is_shown_once_after_an_end_of_the_server(
    end: signal.Signals, tmp_path: Path
) -> None:
    port = free_port()
    command = threadhold("serve", "--config", GRAPHS / "langgraph.json", "--port", str(port))
    command += ["--database-url", databases.url(tmp_path / "data.db")]
    # The run takes longer than the grace period.
    env = environment(SHUTDOWN_GRACE_SECONDS="1")
    url, thread = f"http://127.0.0.1:{port}", str(uuid4())
    with run(command, port, tmp_path, env) as first:
        async with client(first) as api:
            await api.post("/threads", {"thread_id": thread})
        async with hook(url, "tokens", thread) as shown:
            # The run does not end before the server, however late its tokens are shown.
            gate = tmp_path / "gate"
            gate.write_text("10")
            shown.talk(n=60, delay=0.05, gate=str(gate))
            cut = await shown.until(lambda each: "6 " in "".join(texts(each)))
            first.process.send_signal(end)
            await asyncio.to_thread(first.process.wait)
            gate.write_text("60")
            with run(command, port, tmp_path, env):
                started = time.monotonic()
                ids = [each["id"] for each in cut["messages"]]
                last = await shown.until(lambda each: [m["id"] for m in each["messages"]] != ids)
                assert time.monotonic() - started < 15
                # What comes late comes at once; and the hook shows the end of a run before its
                # last tokens if it has no time to show each.
                while not (is_done(last) and texts(last) == ["hi", counted(60)]):
                    last = await shown.until(lambda _: True)
    assert last["error"] is None
    # A message never grows but by its next tokens.
    answers = [texts(each)[1] for each in shown.shown if len(each["messages"]) == 2]
    assert set(answers) <= {counted(n) for n in range(61)}


async def test_a_reload_keeps_the_thread(server: Running, api: Api) -> None:
    thread = await api.thread()
    async with hook(server.url, "tokens", thread) as before:
        assert texts(await talked(before, n=3)) == ["hi", counted(3)]
        before.talk(n=4)
        both = ["hi", counted(3), "hi", counted(4)]
        second = await before.until(lambda each: texts(each) == both and is_done(each))
        assert all(each["parentCheckpointId"] for each in second["messages"])
        async with hook(server.url, "tokens", thread) as after:
            after.talk(n=5)
            whole = [*texts(second), "hi", counted(5)]
            third = await after.until(lambda each: texts(each) == whole and is_done(each))
            # What the stream repeats of ended runs takes nothing back.
            hydrated = [texts(each) for each in after.shown if each["messages"]]
            assert all(each[:4] == texts(second) for each in hydrated)
        last = await before.until(lambda each: texts(each) == texts(third))
        assert last["error"] is None


async def test_a_second_hook_shows_the_run_in_flight(
    server: Running, api: Api, tmp_path: Path
) -> None:
    thread, gate = await api.thread(), tmp_path / "gate"
    gate.write_text("10")
    async with hook(server.url, "tokens", thread) as first:
        first.talk(n=30, delay=0.05, gate=str(gate))
        await first.until(lambda each: "3 " in "".join(texts(each)))
        async with hook(server.url, "tokens", thread) as second:
            if not any(each["loading"] for each in second.shown):
                await second.until(lambda each: each["loading"])
            gate.write_text("30")
            assert texts(await second.until(is_done)) == ["hi", counted(30)]


async def test_an_answered_interrupt_stays_hidden(server: Running, api: Api, folder: Path) -> None:
    thread = await api.thread()
    async with hook(server.url, "interrupt", thread) as first:
        first.do(submit={"questions": ["q"]})
        await first.until(lambda each: each["interrupt"] and not each["loading"])
        first.do(respond="yes")
        await first.until(lambda each: each["interrupt"] is None and not each["loading"])
    async with hook(server.url, "interrupt", thread) as reloaded:
        reloaded.do(submit={"questions": ["r"]})
        await reloaded.until(lambda each: each["interrupt"] and not each["loading"])
    asked = [each["interrupt"] for each in reloaded.shown if each["interrupt"]]
    assert {each["question"] for each in asked} == {"r"}


async def test_a_failed_run_marks_its_message(server: Running, api: Api) -> None:
    thread = await api.thread()
    async with hook(server.url, "failing", thread) as shown:
        shown.talk(message="no good")
        failed = await shown.until(
            lambda each: each["error"] and each["messages"][0]["optimisticStatus"] != "pending"
        )
    assert "no good" in failed["error"]
    assert failed["messages"][0]["optimisticStatus"] == "failed"


async def test_a_stream_that_lost_events_is_not_asked_for_again(
    server: Running, api: Api, folder: Path
) -> None:
    thread = await api.thread()
    async with hook(server.url, "tokens", thread) as first:
        await talked(first, n=3)
    databases.execute(
        folder / "data.db", "UPDATE event_segments SET events = NULL WHERE thread_id = ?", thread
    )
    async with hook(server.url, "tokens", thread) as shown:
        last = await talked(shown, n=30, delay=0.1)
    assert texts(last) == ["hi", counted(3), "hi", counted(30)]
    assert (last["error"], last["requests"]) == (None, 2)
