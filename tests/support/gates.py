"""Gates: a file with the number of steps or tokens of a graph that may pass."""

import asyncio
from pathlib import Path


async def passed(gate: str | None, number: int) -> None:
    """Wait until a gate lets step `number` pass, counted from 0.

    Args:
        gate: path of the file; without the file nothing passes, and without a path everything.
        number: the number of the step.
    """
    while gate and not await asyncio.to_thread(_is_open, gate, number):
        await asyncio.sleep(0.02)


def _is_open(gate: str, number: int) -> bool:
    try:
        return number < int(Path(gate).read_text() or 0)
    except FileNotFoundError:
        return False
