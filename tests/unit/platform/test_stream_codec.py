"""Waiting for work until a stop event is set."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from threadhold.stock.stream_codec import wait_unless_stopped

WAIT_SECONDS = 60.0


class Stop(asyncio.Event):
    """An event that carries a value, like the API's."""

    def set(self, value: Any = True) -> None:
        self._value = value
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(value)


class Interrupted(Exception):
    """The reason for which the work is stopped."""


async def _forever(seen: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        seen.append("cancelled")
        raise


async def test_result_is_returned_and_no_waiter_remains() -> None:
    stop = Stop()
    assert await wait_unless_stopped(asyncio.sleep(0, "done"), stop) == "done"
    assert not stop._waiters


async def test_error_of_the_work_is_raised() -> None:
    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await wait_unless_stopped(fail(), Stop())


async def test_stopping_cancels_the_work_and_raises_the_reason() -> None:
    stop, seen = Stop(), list[str]()
    asyncio.get_running_loop().call_soon(stop.set, Interrupted("why"))
    with pytest.raises(Interrupted, match="why"):
        async with asyncio.timeout(WAIT_SECONDS):
            await wait_unless_stopped(_forever(seen), stop)
    assert seen == ["cancelled"]
    # The calling task itself is not cancelled.
    assert await asyncio.sleep(0, "alive") == "alive"


async def test_stop_before_the_start_cancels_the_work() -> None:
    stop, seen = Stop(), list[str]()
    stop.set(Interrupted())
    with pytest.raises(Interrupted):
        await wait_unless_stopped(_forever(seen), stop)
    assert seen == ["cancelled"]
    assert await asyncio.sleep(0, "alive") == "alive"


async def test_stop_between_two_values_lets_the_generator_clean_up() -> None:
    seen = list[str]()

    async def numbers() -> AsyncGenerator[int, None]:
        try:
            yield 1
            await _forever(seen)
        finally:
            await asyncio.sleep(0)
            seen.append("cleaned up")

    generator, stop = numbers(), Stop()
    assert await anext(generator) == 1
    stop.set(Interrupted())
    with pytest.raises(Interrupted):
        await wait_unless_stopped(anext(generator, None), stop)  # type: ignore[arg-type]
    await generator.aclose()
    assert seen == ["cancelled", "cleaned up"]


async def test_outside_cancellation_stays_a_cancellation() -> None:
    stop, seen = Stop(), list[str]()
    task = asyncio.ensure_future(wait_unless_stopped(_forever(seen), stop))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]
    assert not stop._waiters


async def test_stop_together_with_the_result_returns_the_result() -> None:
    stop = Stop()

    async def finish() -> str:
        stop.set(Interrupted())
        return "done"

    assert await wait_unless_stopped(finish(), stop) == "done"
    assert await asyncio.sleep(0, "alive") == "alive"


async def test_future_in_a_cancellation_is_awaited() -> None:
    finished = asyncio.get_running_loop().create_future()

    async def leave() -> None:
        raise asyncio.CancelledError(finished)

    asyncio.get_running_loop().call_soon(finished.set_result, None)
    with pytest.raises(asyncio.CancelledError):
        await wait_unless_stopped(leave(), Stop())
    assert finished.done()
