"""Ranges: numbers that a person gives as a range, such as `10-40`, `over 200` or `up to 50`. Pure."""

import re
from collections.abc import Iterator

TOP = 10**9
"""The end of an open range: more than anybody means."""
# The comma of `1,000` separates nothing.
THOUSANDS = re.compile(r"(?<=\d)[,.](?=\d{3}(?!\d))")
_RANGE = re.compile(
    r"(\d[\d,.]*)\s*(?:-|\u2013|\bto\b|\bbis\b|\ba\b|\bat[ée]\b|\be\b|\bund\b|\band\b)\s*(\d[\d,.]*)|(\d[\d,.]*)\s*(\+?)"
)
_LEAST = re.compile(
    r"\b(?:more than|over|at least|above|min\w*|from|mehr als|ab|mindestens|über|mais de|pelo menos|a partir de|acima de)\b\D{0,5}(\d[\d,.]*)"
    r"|(?<![\d,.])(\d[\d,.]*+)\s*(?:or more|and up|und mehr|ou mais|aufwärts)",
    re.IGNORECASE,
)
_MOST = re.compile(
    r"\b(?:less than|fewer than|under|below|at most|up to|max\w*|weniger als|unter|bis(?: zu)?|höchstens|menos de|até|no máximo)\b\D{0,5}(\d[\d,.]*)",
    re.IGNORECASE,
)


def found(text: str) -> Iterator[tuple[int, int]]:
    """Yield the first and the last number of each range in a text."""
    text = THOUSANDS.sub("", text)
    if least := _LEAST.search(text):
        yield _number(least[1] or least[2]), TOP
    elif most := _MOST.search(text):
        yield 1, _number(most[1])
    else:
        for each in _RANGE.finditer(text):
            low = _number(each[1] or each[3])
            yield low, _number(each[2]) if each[2] else TOP if each[4] else low


def _number(text: str) -> int:
    # Nine digits exceed any number that is meant, and int() rejects very long strings.
    return int(re.sub(r"\D", "", text)[:9] or 0)
