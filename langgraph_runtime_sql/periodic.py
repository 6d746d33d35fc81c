"""Periodic: repeat a step for as long as the process works, also after the step has failed."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import structlog

logger = structlog.stdlib.get_logger(__name__)


async def periodic(
    step: Callable[[], Awaitable[Any]],
    seconds: float | Callable[[], Awaitable[float]],
    failure: str,
    action: str,
    *,
    at_once: bool = False,
) -> NoReturn:
    """Call `step` regularly, until cancelled, and log its errors.

    Args:
        step: The step. The next call does what a failed one has left.
        seconds: The rest between two calls, or a function that returns the rest before the next one.
        failure: The line of the log if the step fails.
        action: The field `action` of that line.
        at_once: Whether the first call comes without a rest before it.
    """
    rests = not at_once
    while True:
        if rests:
            await asyncio.sleep(await seconds() if callable(seconds) else seconds)
        rests = True
        try:
            await step()
        except Exception:
            logger.exception(failure, action=action)
