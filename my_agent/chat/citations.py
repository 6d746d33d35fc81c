"""Citations: which passages an answer names, by the numbers in brackets in it."""

import re
from collections.abc import Sequence

from my_agent.chat.documents.chunking import Passage
from my_agent.chat.state import Citation

# [1], and [1, 3] as some models put it.
_MARK = re.compile(r"\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")


def cited(answer: str, passages: Sequence[Passage]) -> list[Citation]:
    """The passages that an answer names, in their order; numbers that no passage has are nothing."""
    named = {int(number) for mark in _MARK.findall(answer) for number in re.findall(r"\d+", mark)}
    return [
        Citation(
            number=number,
            title=passage.title,
            section=passage.section,
            passage=passage.number,
            text=passage.text,
        )
        for number, passage in enumerate(passages, 1)
        if number in named
    ]
