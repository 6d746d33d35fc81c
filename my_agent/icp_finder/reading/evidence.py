"""Evidence: whether the words of a quote can mean what an act says of the finder's own. Pure functions.

A reader may be wrong, or somebody may have told it what to say. So the value of an act must stand in its
quote, and a removal needs a word that removes.
"""

import re

from my_agent.understanding import meaning, names, quotes, words
from my_agent.web import sites

_ELSEWHERE = re.compile(
    r"\b(?:competitors?|rivals?|suppliers?|vendors?|saw|seen|read|like|similar|such as|e\.g\.|example|konkurren\w*|wettbewerb\w*|lieferant\w*"
    r"|wie|zum beispiel|concorrent\w*|fornecedor\w*|como|por exemplo|viu?|parecid\w*)\b",
    re.IGNORECASE,
)
_ROLES = {
    "website": re.compile(
        r"\b(?:ours?|us|we|mine|my|own|unser\w*|wir|eigene\w*|mein\w*|noss[ao]|nós|minha|meu|própri\w*)\b",
        re.IGNORECASE,
    ),
    "customers": re.compile(
        r"\b(?:customers?|clients?|buyers?|kund\w*|clientes?)\b", re.IGNORECASE
    ),
    "companies": re.compile(
        r"\b(?:candidat\w*|prospects?|leads?|targets?|kandidat\w*|interessent\w*)\b", re.IGNORECASE
    ),
}


def says(field: str, value: str, quote: str) -> bool:
    """Return whether a quote contains a value of a field, in any form of its words."""
    if field != "sizes":
        return meaning.stands(value, quote)
    told = re.findall(r"\d+", re.sub(r"(?<=\d)[.,](?=\d{3})", "", quote))
    if not told:
        return bool(names.fold(quote))
    return any(each in told for each in re.findall(r"\d+", value.replace(",", "")))


def is_role(name: str, quote: str) -> bool:
    """Return whether a quote says whose a website is."""
    return name in _ROLES and _ROLES[name].search(quote) is not None


def is_denied(
    value: str, message: str, span: quotes.Span, language: str, *, swaps: bool = False
) -> bool:
    """Return whether a value is named only to deny it: `no hospitals`, `not vaultgate.net`.

    Args:
        value: the value.
        message: the message.
        span: where the quote stands.
        language: the message's.
        swaps: whether the act names what it replaces: in `500, not 500+` only what follows is denied.
    """
    at = meaning.place(value, message, span)
    start, end = quotes.clause_span(at, message)
    spoken = _without_sites(message)
    around = spoken[start : at[0]] if swaps else spoken[start:end]
    return words.negates(words.YES_PHRASES.sub(" ", meaning.FIRST_NO.sub("", around)), language)


def is_elsewhere(message: str, span: quotes.Span) -> bool:
    """Return whether a website is named as that of someone else: in its clause, or just before it."""
    plain = _without_sites(message)
    clause = quotes.clause(span, plain)
    if _ELSEWHERE.search(clause):
        return True
    # `We have a competitor. It is acme.com`, but not `Our competitor is A. We are B`.
    before = quotes.sentence((max(span[0] - 3, 0), max(span[0] - 2, 1)), plain)
    return not _ROLES["website"].search(clause) and _ELSEWHERE.search(before) is not None


def _without_sites(message: str) -> str:
    """Return a message with spaces for its websites: `no-limits.com` denies nothing."""
    return quotes.blanked(message, ((each.start, each.end) for each in sites.mentions(message)))
