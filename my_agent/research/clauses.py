"""Clauses: whether a claim is made of whole clauses of its quote.

Words that end inside a clause change what it says: "14 hours with the screen off" is no 14 hours. No
list of words knows all such endings. So a claim may leave out whole clauses, dates and some adverbs,
and nothing else.
"""

import re
from collections.abc import Iterator, Sequence

from my_agent.research.text import MONTHS, Token, tokens

_SPLIT = re.compile(
    r"(?:(?<!\s)\s++)?(?:[,;:\u2013\u2014]\s++|[()]\s*+)"
    r"|(?<!\s)\s++(?:and|but|or|while|whereas|although|though|because|which)\s++",
    re.IGNORECASE,
)
_MONTH = "|".join(MONTHS)
_DATE = re.compile(
    rf"(?<!\s)\s++(?:in|on|since)\s++(?:(?:\d{{1,2}}(?:st|nd|rd|th)?\s+)?(?:{_MONTH})\s+)?(?:19|20)\d\d\b",
    re.IGNORECASE,
)
_FREE = frozenset({"also", "currently", "however", "now", "today", "already"})


def is_whole(claim: Sequence[Token], sentence: str) -> bool:
    """Return whether a claim has exactly the words of clauses that follow each other in a sentence.

    Args:
        claim: tokens of the claim.
        sentence: a sentence of the quote.
    """
    wanted = [each.form for each in claim if _counts(each)]
    return any(wanted == run for text in (sentence, _DATE.sub("", sentence)) for run in _runs(text))


def _runs(sentence: str) -> Iterator[list[str]]:
    clauses = [
        [token.form for token in tokens(part) if _counts(token)]
        for part in _SPLIT.split(sentence)
        if part.strip()
    ]
    for start in range(len(clauses)):
        run: list[str] = []
        for clause in clauses[start:]:
            run = [*run, *clause]
            yield run


def _counts(token: Token) -> bool:
    mark = token.kind == "symbol" and token.form in ";:"
    return token.kind != "function" and not mark and token.raw.lower() not in _FREE
