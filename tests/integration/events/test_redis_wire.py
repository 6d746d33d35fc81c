"""What a process hears over Redis after its connections are lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from langgraph_runtime_sql.clock import milliseconds
from langgraph_runtime_sql.events import wire
from langgraph_runtime_sql.events.event import Event
from langgraph_runtime_sql.events.redis.wire import RedisWire
from tests.support.proxy import Proxy, proxied
from tests.support.redis import started

ROUNDS = 20
PATIENCE = 30.0
# Not late, however long this test takes.
EVENT = Event((7, 3), "run", "values", b"{}", True, 2, milliseconds() + 3_600_000)

# Messages, and the topics of events.
Heard = asyncio.Queue[object]


@asynccontextmanager
async def connected(url: str, name: str, heard: Heard) -> AsyncIterator[RedisWire]:
    """Send and receive until the end of the block."""

    def receive_events(topic: str, _base: int, _events: list[Event]) -> None:
        heard.put_nowait(topic)

    made = RedisWire(url, name, b"key", heard.put_nowait, receive_events, lambda: None, prefix="p")
    tasks = [asyncio.create_task(each) for each in made.loops()]
    try:
        yield made
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await made.close()


async def hears(sender: RedisWire, heard: Heard, number: int) -> None:
    """Send a message, again until it is heard: Redis keeps none for those that are away."""
    message = wire.stored(str(number))
    async with asyncio.timeout(PATIENCE):
        while True:
            sender.send(message)
            try:
                async with asyncio.timeout(0.2):
                    while await heard.get() != message:
                        pass
                return
            except TimeoutError:
                continue


async def hears_all(sender: RedisWire, heard: Heard, topics: list[str]) -> None:
    """Send an event of each thread, once."""
    for topic in topics:
        sender.send_event(topic, 0, EVENT)
    missing = set(topics)
    async with asyncio.timeout(PATIENCE):
        while missing:
            missing.discard(str(await heard.get()))


async def follow_through_cuts(receiver: RedisWire, proxy: Proxy, number: int) -> list[str]:
    """Follow threads one after the other, in each moment of a lost connection."""
    cutting = asyncio.create_task(asyncio.to_thread(proxy.cut))
    topics = [f"{number}-{each}" for each in range(200)]
    for topic in topics:
        await receiver.follow(topic)
        await asyncio.sleep(0.0005)
    await cutting
    return topics


async def test_process_hears_again_although_threads_are_followed_while_it_connects(
    tmp_path: Path,
) -> None:
    """A handshake that two tasks read once left the connection silent for ever."""
    heard: Heard = asyncio.Queue()
    with started(tmp_path) as valkey, proxied(valkey.port) as proxy:
        # With a password the handshake has several answers.
        valkey.do("ACL", "SETUSER", "someone", "on", ">a-secret", "~*", "&*", "+@all")
        url = "redis://someone:a-secret@127.0.0.1:{}/0"
        async with (
            connected(url.format(valkey.port), "sender", asyncio.Queue()) as sender,
            connected(url.format(proxy.port), "receiver", heard) as receiver,
        ):
            for number in range(ROUNDS):
                async with asyncio.timeout(PATIENCE):
                    topics = await follow_through_cuts(receiver, proxy, number)
                await hears(sender, heard, number)
                await hears_all(sender, heard, topics)
                for topic in topics:
                    await receiver.unfollow(topic)
