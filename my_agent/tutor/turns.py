"""Turns: check texts without a model in one thread, tenants in turn, for a limited time in each run.

Harper may be used by one thread at a time, and its time grows with the square of a text's length.
So a text is checked in pieces, and after each piece the next tenant has its turn.
"""

import asyncio
import re
from collections.abc import Iterator

from my_agent.turns import Turns
from my_agent.tutor import checks
from my_agent.tutor.corrections import Issue

# Characters of a piece: some ten milliseconds, also with many mistakes.
PIECE = 1000
# Seconds that the checks of one run may take, with their waits for other tenants.
SECONDS = 10.0
_END = re.compile(r"[.!?\n]\s+|\s+")


_turns = Turns("grammar")


async def check(tenant: str, text: str, until: float) -> tuple[list[Issue], bool]:
    """Return the mistakes found in a text before a deadline, and whether all of it was checked.

    Args:
        tenant: Whose turn it takes.
        until: The deadline on the event loop's clock. The pieces after it are not checked.
    """
    issues: list[Issue] = []
    try:
        async with asyncio.timeout_at(until):
            for start, piece in pieces(text):
                found = await _turns.run(tenant, lambda piece=piece: checks.check(piece))  # type: ignore[misc]
                issues += [
                    {**each, "start": each["start"] + start, "end": each["end"] + start}
                    for each in found
                ]
    except TimeoutError:
        # A long backlog must not delay the answer. The model reviews the whole text.
        return issues, False
    return issues, True


def pieces(text: str) -> Iterator[tuple[int, str]]:
    """Yield the pieces of a text with their positions, cut after a sentence or else a word."""
    start = 0
    while len(text) - start > PIECE:
        ends = [found for found in _END.finditer(text, start + PIECE // 2, start + PIECE)]
        sentences = [found for found in ends if not found.group()[0].isspace()]
        cut = (sentences or ends)[-1].end() if ends else start + PIECE
        yield start, text[start:cut]
        start = cut
    yield start, text[start:]
