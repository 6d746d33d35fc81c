"""Citations: find the passages that an answer cites by bracketed numbers such as `[2]`."""

import re
from collections.abc import Sequence

from my_agent.chat.documents.chunking import Passage
from my_agent.chat.state import Citation

# Matches `[1]`, and `[1, 3]`, which some models write.
_MARK = re.compile(r"\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")


def cited(answer: str, passages: Sequence[Passage]) -> list[Citation]:
    """Return the passages that an answer cites, in the order of `passages`.

    Numbers that match no passage are ignored.

    Args:
        answer: text of the answer; `[1]` cites the first passage.
        passages: the passages that the model was given.
    """
    numbers = {int(number) for mark in _MARK.findall(answer) for number in re.findall(r"\d+", mark)}
    return [
        Citation(
            number=number,
            title=passage.title,
            section=passage.section,
            passage=passage.number,
            text=passage.text,
        )
        for number, passage in enumerate(passages, 1)
        if number in numbers
    ]
