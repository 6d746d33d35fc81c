"""A foreign client of Redis: nothing that it publishes is shown, obeyed, or ends anything.

It has the password, hears every message of the processes, and publishes what it likes to every
channel: bytes of its own, messages that a process has signed for another channel, and old ones.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import NamedTuple, Self
from uuid import uuid4

import orjson
import ormsgpack
import pytest
import redis.asyncio as redis_client

from tests.support.processes import GRAPHS, Running
from tests.support.redis import Valkey, started
from tests.support.served import PATIENCE, Api, Event, client, served

# Only processes that share a Postgres use Redis.
pytestmark = [pytest.mark.usefixtures("each_database"), pytest.mark.only("postgresql")]

WORD = "forged-by-a-foreign-client"
SECRET = "the-secret-of-acme"


class Cluster(NamedTuple):
    """Two processes of one database, and their Redis. The second one only answers."""

    folder: Path
    valkey: Valkey
    servers: list[Running]


@pytest.fixture(scope="module")
def cluster(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("forged")
    config = {
        "graphs": {name: f"{GRAPHS}/{name}.py:graph" for name in ("echo", "steps", "tokens")},
        "auth": {"path": f"{GRAPHS}/tenant_auth.py:auth"},
        "sql": {"tenant_key": "org"},
    }
    (folder / "langgraph.json").write_text(json.dumps(config))
    with ExitStack() as stack:
        valkey = stack.enter_context(started(tmp_path_factory.mktemp("valkey")))
        servers = [
            stack.enter_context(
                served(folder, folder / "langgraph.json", valkey.url, N_JOBS_PER_WORKER=jobs)
            )
            for jobs in ("4", "0")
        ]
        yield Cluster(folder, valkey, servers)


@pytest.fixture
async def apis(cluster: Cluster) -> AsyncIterator[list[Api]]:
    """Give clients of the answering process: of the tenants acme and globex."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                client(cluster.servers[1], **{"x-user": "ada", "x-tenant": tenant})
            )
            for tenant in ("acme", "globex")
        ]


class Foreigner:
    """A client that hears and publishes everything."""

    def __init__(self, url: str) -> None:
        self._redis = redis_client.from_url(url, socket_timeout=None)
        self.heard: list[tuple[bytes, bytes]] = []

    async def __aenter__(self) -> Self:
        self._pubsub = self._redis.pubsub()
        await self._pubsub.psubscribe("*")
        self._listening = asyncio.create_task(self._listen())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listening.cancel()
        await asyncio.wait([self._listening])
        await self._pubsub.aclose()  # type: ignore[no-untyped-call]
        await self._redis.aclose()

    async def _listen(self) -> None:
        while True:
            message = await self._pubsub.get_message(timeout=None)
            if message is not None and message["type"] == "pmessage":
                self.heard.append((message["channel"], message["data"]))

    async def publish(self, channel: bytes, *bodies: bytes) -> None:
        for body in bodies:
            # A process listens to the channel, so the attack arrives.
            assert await self._redis.publish(channel, body) > 1, channel

    async def channels(self, ending: str) -> list[bytes]:
        """Wait until processes listen to a channel with this ending, and return all of them."""
        async with asyncio.timeout(PATIENCE):
            while True:
                found: list[bytes] = await self._redis.pubsub_channels()  # type: ignore[no-untyped-call]
                if any(each.endswith(ending.encode()) for each in found):
                    return [each for each in found if each.endswith((b":all", ending.encode()))]
                await asyncio.sleep(0.01)


def inventions(thread: str, run: str, position: tuple[int, int]) -> list[bytes]:
    """Return messages without a valid signature: events, orders and garbage."""
    epoch, number = position
    events = [
        [(epoch, number + 1), run, name, data, True, 1, epoch]
        for name, data in (("values", b'"%s"' % WORD.encode()), ("control", b"done"))
    ]
    bodies = [ormsgpack.packb(["another", number, [each]]) for each in events]
    orders = [
        ["control", run, "interrupt", WORD],
        ["control", run, "rollback", WORD],
        *(["drop", f"{tenant}/{thread}", run] for tenant in ("acme", "globex")),
    ]
    bodies.append(orjson.dumps(["another", orders]))
    signatures = (b"", bytes(16), b"\xff" * 16, b"x" * 15)
    return [
        *(signature + body for signature in signatures for body in bodies),
        *(b"", b"\0", b"x" * 16, b"\xc1" * 100, b"[" * 100_000, b"x" * 2**20),
    ]


async def test_forged_and_replayed_messages_change_no_run_and_reach_no_stream(
    cluster: Cluster, apis: list[Api], tmp_path: Path
) -> None:
    acme, globex = apis
    async with Foreigner(cluster.valkey.url) as foreigner:
        # Its messages, an order to stop among them, are signed and are replayed below.
        theirs = await acme.thread()
        body = {"assistant_id": "steps", "input": {"count": 2, "record": str(tmp_path / SECRET)}}
        text = await acme.events("POST", f"/threads/{theirs}/runs/stream", body)
        assert SECRET in str(text)
        stopped = await acme.run(theirs, "steps", {"count": 9, "gate": str(tmp_path / "none")})
        await acme.until(theirs, stopped, "running")
        assert (
            await acme.http.post(f"/threads/{theirs}/runs/{stopped}/cancel?wait=true")
        ).is_success

        thread, gate = await globex.thread(), tmp_path / "gate"
        gate.write_text("3")
        asked = {
            "assistant_id": "tokens",
            "input": {"n": 9, "gate": str(gate), "mode": "custom"},
            "stream_mode": ["custom", "values"],
            "stream_resumable": True,
        }
        seen: list[Event] = []
        async with (
            asyncio.timeout(PATIENCE),
            globex.stream("POST", f"/threads/{thread}/runs/stream", asked) as events,
        ):
            async for event in events:
                seen.append(event)
                if len(seen) == 4:
                    assert event.id is not None
                    run = json.loads(seen[0].data)["run_id"]
                    epoch, number = map(int, event.id.split("-"))
                    # Of this run too: each is already delivered, or for another channel.
                    heard = list(dict.fromkeys(foreigner.heard))
                    assert SECRET.encode() in b"".join(body for _, body in heard)
                    for channel in await foreigner.channels(f"/{thread}"):
                        await foreigner.publish(channel, *inventions(thread, run, (epoch, number)))
                        await foreigner.publish(channel, *(body for _, body in heard))
                    gate.write_text("100")
        names = [(event.name, json.loads(event.data)) for event in seen[1:]]
        tokens = [data["i"] for name, data in names if name == "custom"]
        assert tokens == list(range(9))
        assert [data for name, data in names if name == "values"][-1]["sent"] == 9
        assert len({event.id for event in seen}) == len(seen)
        assert WORD not in str(seen) and SECRET not in str(seen)
        assert await globex.ended(thread, run) == "success"
        # Stored events are the same, and the processes still talk over Redis.
        again = await globex.events(
            "GET", f"/threads/{thread}/runs/{run}/stream", headers={"last-event-id": "-1"}
        )
        assert [each for each in again if each.name != "metadata"] == seen[1:]
        assert await acme.status(theirs, stopped) == "interrupted"
    for server in cluster.servers:
        assert server.process.poll() is None
        log = server.log.read_text()
        assert "Traceback" not in log and WORD not in log
        # A flood of them does not fill the log.
        assert 1 <= log.count("Ignored messages in Redis") <= 3
    assert (await globex.get("/health"))["redis"] == "ok"


@pytest.mark.parametrize("headers", [{}, {"last-event-id": "0"}], ids=["new", "all"])
async def test_events_of_a_deleted_thread_do_not_reach_the_next_thread_of_its_id(
    cluster: Cluster, apis: list[Api], tmp_path: Path, headers: dict[str, str]
) -> None:
    """The users of a tenant share its channels, and a client may choose the id of a thread."""
    thread, ada = str(uuid4()), apis[0]
    async with Foreigner(cluster.valkey.url) as foreigner:
        await ada.post("/threads", {"thread_id": thread})
        body = {"assistant_id": "steps", "input": {"count": 2, "record": str(tmp_path / SECRET)}}
        await ada.events("POST", f"/threads/{thread}/runs/stream", body)
        captured = [data for channel, data in foreigner.heard if channel.endswith(thread.encode())]
        assert SECRET.encode() in b"".join(captured)
        assert (await ada.http.delete(f"/threads/{thread}")).is_success
        async with client(cluster.servers[1], **{"x-user": "eve", "x-tenant": "acme"}) as eve:
            await eve.post("/threads", {"thread_id": thread})
            path, text = f"/threads/{thread}/stream", ""
            async with (
                asyncio.timeout(PATIENCE),
                eve.http.stream("GET", path, headers=headers) as answer,
            ):
                for channel in await foreigner.channels(f"/{thread}"):
                    await foreigner.publish(channel, *captured)
                run = await eve.run(thread, "echo", {"value": "of-eve"})
                async for part in answer.aiter_text():
                    text += part
                    if "of-eve" in text:
                        break
            assert await eve.ended(thread, run) == "success"
    assert SECRET not in text
