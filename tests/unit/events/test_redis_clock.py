"""The clock of Redis as a process learns it: the fastest answer counts."""

import pytest
from redis.exceptions import ConnectionError

from langgraph_runtime_sql.events.redis import link as redis_link
from langgraph_runtime_sql.events.redis.link import Link

MILLISECOND = 10**6
AHEAD = 5_000 * MILLISECOND


class Clock:
    """A clock that advances only while Redis is asked, by the given times there and back."""

    def __init__(self) -> None:
        self.now = 10**18
        self.ways: list[tuple[int, int]] = []

    def time_ns(self) -> int:
        return self.now

    async def time(self) -> tuple[int, int]:
        there, back = self.ways.pop(0)
        self.now += there * MILLISECOND
        seconds, rest = divmod(self.now + AHEAD, 10**9)
        self.now += back * MILLISECOND
        return seconds, rest // 1_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(redis_link, "time", made)
    return made


async def learn(link: Link, clock: Clock, *ways: tuple[int, int]) -> None:
    clock.ways = list(ways)
    await link.set_clock(clock)  # type: ignore[arg-type]  # it is only asked for the time
    assert clock.ways == []


async def test_slow_clock_answer_does_not_count(clock: Clock) -> None:
    link = Link("redis://127.0.0.1:1", "p")
    await learn(link, clock, (0, 600), (1, 1), (400, 0))
    assert link.skew == AHEAD
    await learn(link, clock, (0, 300), (200, 0), (90, 0))
    assert link.skew == AHEAD


async def test_older_clock_answer_counts_for_less(clock: Clock) -> None:
    link = Link("redis://127.0.0.1:1", "p")
    await learn(link, clock, *[(0, 2)] * 3)
    before = link.skew
    for _ in range(10):
        await learn(link, clock, *[(0, 40)] * 3)
    assert link.skew < before


async def test_reconnecting_measures_the_clock_again(clock: Clock) -> None:
    link = Link("redis://127.0.0.1:1", "p")
    await learn(link, clock, *[(0, 0)] * 3)
    await link.failed("reader", ConnectionError("gone"))
    await learn(link, clock, *[(0, 40)] * 3)
    assert link.skew == AHEAD - 20 * MILLISECOND
