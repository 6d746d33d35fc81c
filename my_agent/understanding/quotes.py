"""Quotes: find the words of an act in its message, and the words that no act quotes. Pure functions."""

import re
from collections.abc import Iterable

from my_agent.understanding import words

Span = tuple[int, int]

_SENTENCE = re.compile(r"[.!?;\u2026\n\u3002\uff01\uff1f](?=\s|$)|[\u2026\u3002\uff01\uff1f\n]")
_CLAUSE = re.compile(
    r"[,;:!?\n\u3002\uff0c]+(?=\s|$)|\.(?=\s|$)|\u2026"
    r"|\b(?:and|und|e)(?= (?:no|not|without|ohne|kein\w*|nicht|sem|não)\b)"
    r"|\b(?:but|aber|sondern|mas|por[ée]m|pero|mais|ma)\b",
    re.IGNORECASE,
)
_LETTERS = {
    ord("\N{RIGHT SINGLE QUOTATION MARK}"): "'",
    ord("\N{LEFT DOUBLE QUOTATION MARK}"): '"',
    ord("\N{RIGHT DOUBLE QUOTATION MARK}"): '"',
    ord("\N{DOUBLE LOW-9 QUOTATION MARK}"): '"',
    ord("\N{NO-BREAK SPACE}"): " ",
}


def find(quote: str, message: str) -> Span | None:
    """Return where a quote stands in its message; None if it does not.

    Spaces, case and the shape of quotation marks may differ.
    """
    parts = [re.escape(part) for part in quote.translate(_LETTERS).split()]
    if not parts:
        return None
    # Letters are replaced one by one, so that offsets stay.
    found = re.search(r"\s+".join(parts), message.translate(_LETTERS), re.IGNORECASE)
    return found.span() if found else None


def sentence(span: Span, message: str) -> str:
    """Return the sentence around a quote, with its full stop or question mark."""
    first, last = _around(span, message, _SENTENCE, keeps_end=True)
    return message[first:last].strip()


def clause(span: Span, message: str) -> str:
    """Return the part of a sentence around a quote, between commas and words such as `but`."""
    first, last = clause_span(span, message)
    return message[first:last].strip()


def clause_span(span: Span, message: str) -> Span:
    """Return where the clause around a quote stands."""
    return _around(span, message, _CLAUSE, keeps_end=False)


def _around(span: Span, message: str, ends: re.Pattern[str], *, keeps_end: bool) -> Span:
    first, last = 0, len(message)
    for end in ends.finditer(message):
        if end.end() <= span[0]:
            first = end.end()
        elif end.start() >= span[1] - 1:
            last = end.end() if keeps_end else end.start()
            break
    return first, max(last, span[1])


def unheard(message: str, spans: Iterable[Span]) -> list[str]:
    """Return the parts of a message that no act quotes and that say something."""
    rest, at = [], 0
    for first, last in sorted(spans):
        rest.append(message[at : max(at, first)])
        at = max(at, last)
    rest.append(message[at:])
    said = (
        each.strip(" \t\n,.;:!?-\N{EN DASH}()\"'") for part in rest for each in _CLAUSE.split(part)
    )
    return [each for each in said if each and not words.is_filler(each)]
