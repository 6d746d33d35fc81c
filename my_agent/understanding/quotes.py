"""Quotes: find the words of an act in its message, and the words around them. Pure functions."""

import re
from collections.abc import Iterable
from functools import lru_cache

Span = tuple[int, int]

_SENTENCE = re.compile(r"[.!?;\u2026\n\u3002\uff01\uff1f](?=\s|$)|[\u2026\u3002\uff01\uff1f\n]")
_CLAUSE = re.compile(
    # Signs in a row are tried once: an unbounded run would take the square of its length.
    r"(?<![,;:!?])[,;:!?]++(?=\s|$)|\.(?=\s|$)|[\n\u2026\u3002\uff0c]"
    r"|\b(?:and|und|e)(?= (?:no|not|without|ohne|kein\w*|nicht|sem|não)\b)"
    r"|\b(?:but|aber|sondern|mas|por[ée]m|pero|mais|ma)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[0-9A-Za-z\u00c0-\u024f]{2}")
_EDGE = re.compile(r"(?<![0-9A-Za-z\u00c0-\u024f])|(?![0-9A-Za-z\u00c0-\u024f])")
_LETTERS = {
    ord("\N{RIGHT SINGLE QUOTATION MARK}"): "'",
    ord("\N{LEFT DOUBLE QUOTATION MARK}"): '"',
    ord("\N{RIGHT DOUBLE QUOTATION MARK}"): '"',
    ord("\N{DOUBLE LOW-9 QUOTATION MARK}"): '"',
    ord("\N{NO-BREAK SPACE}"): " ",
}


def find(quote: str, message: str) -> Span | None:
    """Return where a quote stands in its message; None if it does not.

    Spaces, case and the shape of quotation marks may differ. Whole words count: `no` is not in `know`.
    """
    wanted, _ = _squeezed(quote)
    if not wanted:
        return None
    text, places = _squeezed(message)
    at = text.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        if not (_is_inside(text, at) or _is_inside(text, end)):
            return places[at], places[end - 1] + 1
        # The next place that is not inside of a word.
        next_ = _EDGE.search(text, at + 1)
        at = text.find(wanted, next_.start()) if next_ else -1
    return None


@lru_cache(maxsize=8)
def _squeezed(text: str) -> tuple[str, list[int]]:
    """Return a text in lower case with single spaces, and where each of its characters stands."""
    made: list[str] = []
    places: list[int] = []
    # Letters are replaced one by one, so that offsets stay.
    for at, letter in enumerate(text.translate(_LETTERS)):
        if letter.isspace():
            if made and made[-1] != " ":
                made.append(" ")
                places.append(at)
        else:
            lower = letter.lower()
            made.append(lower if len(lower) == 1 else letter)
            places.append(at)
    while made and made[-1] == " ":
        made.pop()
        places.pop()
    return "".join(made), places


def _is_inside(text: str, at: int) -> bool:
    """Return whether a place is inside of a word. Scripts without spaces have no such places."""
    return 0 < at < len(text) and _WORD.fullmatch(text[at - 1 : at + 1]) is not None


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


def is_apart(span: Span, message: str) -> bool:
    """Return whether signs, or the ends of the message, stand around a quote."""
    before, after = message[: span[0]].rstrip(), message[span[1] :].lstrip()
    return all(each in ("", *",.;:!()\u2013\u2014-") for each in (before[-1:], after[:1]))


def blanked(message: str, spans: Iterable[Span]) -> str:
    """Return a message with spaces for some of its parts, so that offsets stay."""
    for first, last in spans:
        message = message[:first] + " " * (last - first) + message[last:]
    return message
