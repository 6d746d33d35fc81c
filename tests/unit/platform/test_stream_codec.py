"""The cheaper forms do what the functions they stand for do."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from threadhold.stream_codec import wait_unless_stopped

WAIT_SECONDS = 60.0


class Stop(asyncio.Event):
    """An event that carries a value, like the API's."""

    def set(self, value: Any = True) -> None:
        self._value = value
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(value)


class Interrupted(Exception):
    """Why the work is stopped."""


async def _forever(seen: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        seen.append("cancelled")
        raise


async def test_the_result_comes_through_and_nothing_is_left_waiting() -> None:
    stop = Stop()
    assert await wait_unless_stopped(asyncio.sleep(0, "done"), stop) == "done"
    assert not stop._waiters


async def test_an_error_of_the_work_comes_through() -> None:
    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await wait_unless_stopped(fail(), Stop())


async def test_stopping_cancels_the_work_and_gives_the_reason() -> None:
    stop, seen = Stop(), list[str]()
    asyncio.get_running_loop().call_soon(stop.set, Interrupted("why"))
    with pytest.raises(Interrupted, match="why"):
        async with asyncio.timeout(WAIT_SECONDS):
            await wait_unless_stopped(_forever(seen), stop)
    assert seen == ["cancelled"]
    # The task itself goes on.
    assert await asyncio.sleep(0, "alive") == "alive"


async def test_stopped_before_it_begins() -> None:
    stop, seen = Stop(), list[str]()
    stop.set(Interrupted())
    with pytest.raises(Interrupted):
        await wait_unless_stopped(_forever(seen), stop)
    assert seen == []


async def test_stopped_before_the_next_of_a_generator() -> None:
    async def numbers() -> AsyncIterator[int]:
        yield 1

    stop = Stop()
    stop.set(Interrupted())
    generator = numbers()
    with pytest.raises(Interrupted):
        await wait_unless_stopped(anext(generator), stop)  # type: ignore[arg-type]
    await generator.aclose()  # type: ignore[attr-defined]


async def test_being_cancelled_from_outside_stays_a_cancellation() -> None:
    stop, seen = Stop(), list[str]()
    task = asyncio.ensure_future(wait_unless_stopped(_forever(seen), stop))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]
    assert not stop._waiters


async def test_stopping_after_the_result_is_not_felt() -> None:
    stop = Stop()

    async def finish() -> str:
        stop.set(Interrupted())
        return "done"

    assert await wait_unless_stopped(finish(), stop) == "done"
    assert await asyncio.sleep(0, "alive") == "alive"


async def test_what_langgraph_still_has_to_finish_is_awaited() -> None:
    finished = asyncio.get_running_loop().create_future()

    async def leave() -> None:
        raise asyncio.CancelledError(finished)

    asyncio.get_running_loop().call_soon(finished.set_result, None)
    with pytest.raises(asyncio.CancelledError):
        await wait_unless_stopped(leave(), Stop())
    assert finished.done()
