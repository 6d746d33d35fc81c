"""Work of several tenants takes turns on the event loop: much of one does not delay all others."""

import asyncio
from typing import Any

from langgraph_runtime_sql import pacing
from langgraph_runtime_sql.events.event import START
from tests.support.streams import of_thread
from tests.unit.events.test_subscription import Source


async def in_order(*work: tuple[str, str, float]) -> list[str]:
    """Return the members in the order in which they got their turns, asked for in this order."""
    found: list[str] = []

    async def one(group: str, member: str, cost: float) -> None:
        await pacing.turn(group, member, cost)
        found.append(member)

    async with asyncio.timeout(60):
        await asyncio.gather(*(one(*each) for each in work))
    return found


async def test_groups_take_turns_and_their_members_too() -> None:
    much = [("acme", f"m{number % 2}", pacing.BUDGET) for number in range(200)]
    found = await in_order(*much, ("other", "late", 0.1), ("acme", "late member", 0.1))
    assert found.index("late") < 4
    assert found.index("late member") < 8
    assert len(found) == len(much) + 2


async def test_small_work_shares_an_iteration_and_large_work_has_its_own() -> None:
    iterations, done = [0], asyncio.Event()

    async def count() -> None:
        while not done.is_set():
            iterations[0] += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await asyncio.sleep(0)
    before = iterations[0]
    await in_order(*[("acme", "m", pacing.BUDGET)] * 20)
    large = iterations[0] - before
    before = iterations[0]
    await in_order(*[("acme", "m", pacing.BUDGET / 20)] * 20)
    small = iterations[0] - before
    done.set()
    await counting
    assert large >= 20
    assert small <= 5


async def test_cancelled_work_gives_its_turn_away() -> None:
    tasks = [asyncio.create_task(pacing.turn("a", "m", pacing.BUDGET)) for _ in range(50)]
    await asyncio.sleep(0)
    for task in tasks[:-1]:
        task.cancel()
    async with asyncio.timeout(60):
        await asyncio.gather(*tasks, return_exceptions=True)
    assert not tasks[-1].cancelled()


async def test_event_of_another_tenant_does_not_wait_for_many_followers() -> None:
    source, order = Source(page_size=1000), list[str]()
    source.publish(1000)
    source.store()

    async def read(name: str, key: Any) -> None:
        reader = source.follow(key, START)
        for _ in source.log if name == "many" else [None]:
            await reader.get()
            order.append(name)

    many = (read("many", of_thread("t")._replace(tenant="acme")) for _ in range(20))
    one = read("one", of_thread("u")._replace(tenant="other"))
    async with asyncio.timeout(60):
        await asyncio.gather(*many, one)
    assert order.count("many") == 20_000
    assert order.index("one") < 1000
