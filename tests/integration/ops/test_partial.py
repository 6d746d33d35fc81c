"""`GET /threads/{thread_id}/runs/{run_id}/partial`: the text of an answer that was stopped is kept."""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.processes import Running
from tests.support.served import PATIENCE, Api, client, served

pytestmark = pytest.mark.usefixtures("each_database", "packages")

TOLD = "0 1 2 "


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("partial")


@pytest.fixture(scope="module")
def server(each_database: str, folder: Path) -> Iterator[Running]:
    with served(folder) as started:
        yield started


@pytest.fixture
def asked(tmp_path: Path) -> dict[str, Any]:
    """Return the input of a run that streams three of ten tokens."""
    gate = tmp_path / "gate"
    gate.write_text("3")
    said = {"role": "user", "content": "count"}
    return {"n": 10, "gate": str(gate), "messages": [said]}


async def begun(api: Api, thread: str, asked: dict[str, Any], mode: str | None = None) -> str:
    """Start a run, and wait for its last token. Return its id."""
    if mode is None:
        params = {"assistant_id": "tokens", "input": asked}
        command = {"id": 1, "method": "run.start", "params": params}
        run = str((await api.post(f"/threads/{thread}/commands", command))["result"]["run_id"])
    else:
        run = await api.run(thread, "tokens", asked, stream_mode=[mode], stream_resumable=True)
    path = f"/threads/{thread}/runs/{run}"
    async with (
        asyncio.timeout(PATIENCE),
        api.stream("GET", f"{path}/stream", headers={"last-event-id": "-1"}) as events,
    ):
        async for event in events:
            if event.name.startswith("messages") and '2 "' in event.data:
                break
    return run


async def partial(api: Api, thread: str, run: str) -> Any:
    return (await api.get(f"/threads/{thread}/runs/{run}/partial"))["messages"]


def text_of(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


@pytest.mark.parametrize("mode", [None, "messages-tuple", "messages"])
async def test_text_of_a_cancelled_run_is_kept(
    server: Running, asked: dict[str, Any], mode: str | None
) -> None:
    async with client(server) as api:
        thread = await api.thread()
        run = await begun(api, thread, asked, mode)
        await api.post(f"/threads/{thread}/runs/{run}/cancel?wait=true")
        [cut] = await partial(api, thread, run)
        assert (cut["type"], text_of(cut)) == ("ai", TOLD)
        state = await api.get(f"/threads/{thread}/state")
        [said] = state["values"]["messages"]
        assert cut.keys() >= {"id", "content", "type"}
        assert cut["id"] != said["id"]
        # It has a place in the state like any message.
        kept = {"values": {"messages": [cut]}, "as_node": "tokens"}
        await api.post(f"/threads/{thread}/state", kept)
        assert await partial(api, thread, run) == []


async def test_successful_and_unknown_runs_have_no_partial_messages(server: Running) -> None:
    async with client(server) as api:
        thread = await api.thread()
        run = await api.run(thread, "tokens", {"n": 2}, stream_mode=["messages-tuple"])
        await api.ended(thread, run)
        assert await partial(api, thread, run) == []
        for path in ((thread, uuid4()), (uuid4(), run)):
            answer = await api.http.get("/threads/{}/runs/{}/partial".format(*path))
            assert answer.status_code == 404
        answer = await api.http.get(f"/threads/{thread}/runs/x/partial")
        assert answer.status_code == 422


async def test_text_of_a_run_whose_server_was_killed_is_kept(
    tmp_path: Path, asked: dict[str, Any]
) -> None:
    with served(tmp_path, BG_JOB_MAX_RETRIES="1") as first:
        async with client(first) as api:
            thread = await api.thread()
            run = await begun(api, thread, asked, "messages-tuple")
            # It is stored 30 ms after it was sent.
            async with asyncio.timeout(PATIENCE):
                while not await partial(api, thread, run):
                    pass
            first.process.send_signal(signal.SIGKILL)
            await asyncio.to_thread(first.process.wait, PATIENCE)
    with served(tmp_path, BG_JOB_MAX_RETRIES="1") as second:
        async with client(second) as api:
            [cut] = await partial(api, thread, run)
            assert TOLD.startswith(text_of(cut))
