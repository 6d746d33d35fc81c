"""Turns: check texts without a model in one thread, tenants in turn, for a limited time in each run.

Harper may be used by one thread at a time, and its time grows with the square of a text's length.
So a text is checked in pieces, and after each piece the next tenant has its turn.
"""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from my_agent.turns import TenantThreads
from my_agent.tutor import checks
from my_agent.tutor.corrections import Issue

# Characters of a piece: some ten milliseconds, also with many mistakes.
PIECE = 1000
_END = re.compile(r"[.!?\n]\s+|\s+")


_turns = TenantThreads("grammar")


@dataclass
class Found:
    """What the checks of a text found.

    Attributes:
        issues: the mistakes, in text order.
        complete: whether the whole text was checked before the deadline.
        is_english: whether any piece was. The checks do not read other languages.
    """

    issues: list[Issue] = field(default_factory=list)
    complete: bool = True
    is_english: bool = False


async def check(tenant: str, text: str, until: float) -> Found:
    """Return the mistakes found in a text before a deadline.

    Args:
        tenant: Whose turn it takes.
        until: The deadline on the event loop's clock. The pieces after it are not checked.
    """
    done = Found()
    try:
        async with asyncio.timeout_at(until):
            for start, piece in pieces(text):
                found = await _turns.run(tenant, lambda piece=piece: checks.judge(piece))  # type: ignore[misc]
                if found is None:
                    continue
                done.is_english = True
                done.issues += [
                    {**each, "start": each["start"] + start, "end": each["end"] + start}
                    for each in found
                ]
    except TimeoutError:
        # A long backlog must not delay the answer. The model reviews the whole text.
        done.complete = False
    return done


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
