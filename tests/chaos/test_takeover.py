"""A process is stopped past its lease, and another process takes over its run."""

import asyncio
import json
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support import served
from tests.support.served import PATIENCE, client

pytestmark = [pytest.mark.usefixtures("each_database"), pytest.mark.only("postgresql")]


@pytest.mark.timeout(900)
async def test_process_stopped_past_its_lease_writes_and_sends_nothing_more(
    tmp_path: Path, redis_url: str
) -> None:
    record, gate = tmp_path / "record", tmp_path / "gate"
    asked = {"count": 60, "delay": 0.05, "record": str(record), "gate": str(gate)}
    gate.write_text("5")
    with ExitStack() as stack:
        first = stack.enter_context(served.served(tmp_path, redis_url=redis_url))
        front = stack.enter_context(
            served.served(tmp_path, redis_url=redis_url, N_JOBS_PER_WORKER="0")
        )
        async with client(front) as api:
            thread = await api.thread()
            run = await api.run(thread, "steps", asked, stream_mode="values", stream_resumable=True)
            await served.lines(record, 5)
            first.process.send_signal(signal.SIGSTOP)
            stack.callback(first.process.send_signal, signal.SIGCONT)
            second = stack.enter_context(served.served(tmp_path, redis_url=redis_url))
            # The second process takes the run over and is still working when the first continues.
            taken = len(record.read_text().splitlines())
            gate.write_text("10")
            async with asyncio.timeout(PATIENCE * 2):
                while len(record.read_text().splitlines()) < taken + 3:
                    await asyncio.sleep(0.05)
            first.process.send_signal(signal.SIGCONT)
            gate.write_text("60")
            path = f"/threads/{thread}/runs/{run}/stream"
            streams = []
            for server in (front, second, first):
                async with client(server) as follower:
                    streams.append(
                        await follower.events(
                            "GET", path, headers={"Last-Event-ID": "-1"}, patience=PATIENCE * 2
                        )
                    )
            assert await api.ended(thread, run) == "success"
            state = await api.get(f"/threads/{thread}/state")
            assert state["values"]["done"] == list(range(60))
            assert streams[0] == streams[1]
            for events in streams:
                assert [event for event in events if event.name == "error"] == []
                numbers = [tuple(map(int, str(event.id).split("-"))) for event in events]
                assert numbers == sorted(set(numbers))
                attempts = [
                    json.loads(event.data)["attempt"]
                    for event in events
                    if event.name == "metadata"
                ]
                assert attempts == [1, 2]
                done = [
                    len(json.loads(event.data)["done"])
                    for event in events
                    if event.name == "values"
                ]
                # The second attempt starts from the stored values and then sends each step once.
                assert done[-1] == 60
                again = next(at for at, event in enumerate(events) if '"attempt":2' in event.data)
                steps = [
                    len(json.loads(event.data)["done"])
                    for event in events[again:]
                    if event.name == "values"
                ]
                assert steps == list(range(steps[0], 61))
