"""Evidence: whether the words of a quote can mean what an act says. Pure functions.

A reader may be wrong, or somebody may have told it what to say. So the value of an act must stand in its
quote, a removal needs a word that removes, and an order is sure only without doubt, condition, report,
negation or question around it.
"""

import re
from collections.abc import Sequence
from itertools import takewhile

from rapidfuzz import fuzz

from my_agent.icp_finder.reading import commands
from my_agent.understanding import names, quotes, words
from my_agent.web import sites

# Likeness of two words, from 0 to 100, at which one may be a form of the other.
ALIKE = 78
_FIRST_NO = re.compile(
    r"^\W*(?:(?:oh|ah|hm+|wait|sorry|moment|ops|epa)\W+)*(?:no+|nope|nein|nee?|não|nao)\b"
    # `no, hotels` corrects, and `no hotels` denies.
    r"(?:\s*$|\s*[,.:;!-][\s,.:;!-]*|\s+(?=(?:i|we|it|that|make|change|ich|wir|es|das|eu|nós|quis|queria)\b))",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"\b(?:competitors?|rivals?|suppliers?|vendors?|saw|seen|read|like|similar|such as|e\.g\.|example|konkurren\w*|wettbewerb\w*|lieferant\w*"
    r"|wie|zum beispiel|concorrent\w*|fornecedor\w*|como|por exemplo|viu?|parecid\w*)\b",
    re.IGNORECASE,
)
_ALL = re.compile(
    r"\b(?:all|every\w*|them|the lot|the rest|both|alle[sn]?|sämtliche|den rest|beide|tod[ao]s|tudo|o resto|amb[ao]s)\b",
    re.IGNORECASE,
)
_ANY = re.compile(
    r"\b(?:any\w*|none|keine?|nenhuma?|all|every\w*|no (?:limit|preference|matter)|(?:doesn'?t|don'?t|does not) (?:matter|care|mind)|whatever|egal|beliebig"
    r"|alle|überall|spielt keine rolle|tanto faz|qualquer|tod[ao]s|indiferente|não importa)\b",
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
_DOTS = re.compile(r"(?<!\s)\s*+\b(?:dot|punkt|ponto)\b\s*", re.IGNORECASE)
_QUOTED = re.compile(r"[\"“”„«»][^\"“”„«»]{1,200}[\"“”„«»]")


def says(field: str, value: str, quote: str) -> bool:
    """Return whether a quote contains a value, in any form of its words, or its initials."""
    own, said = names.fold(value).split(), names.fold(quote).split()
    digits = re.findall(r"\d+", value.replace(",", ""))
    if field == "sizes":
        told = re.findall(r"\d+", re.sub(r"(?<=\d)[.,](?=\d{3})", "", quote))
        return any(each in told for each in digits) or (bool(said) and not told)
    if "".join(word[0] for word in own if word) in said and len(own) > 1:
        return True
    return any(
        _alike(mine, word) for mine in own if len(mine) > 2 or len(own) == 1 for word in said
    )


def _alike(mine: str, word: str) -> bool:
    if min(len(mine), len(word)) <= 3:
        return mine == word
    if fuzz.ratio(mine, word) >= ALIKE or word in mine or mine in word:
        return True
    # `roofing` and `roofers`: one stem, if it is most of the word.
    stem = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(mine, word, strict=False)))
    return stem >= 4 and 2 * stem >= max(len(mine), len(word))


def means_any(quote: str) -> bool:
    """Return whether a quote says that a field does not matter."""
    return _ANY.search(quote) is not None


def is_role(name: str, quote: str) -> bool:
    """Return whether a quote says whose a website is."""
    return name in _ROLES and _ROLES[name].search(quote) is not None


def sites_in(value: str, quote: str) -> list[str]:
    """Return the websites of a value that a quote spells, also as `acme dot com`."""
    squeezed = re.sub(r"[\W_]+", "", _DOTS.sub(".", quote).casefold())
    written = {sites.domain(each): each for each in sites.websites(quote)}
    found = []
    for each in sites.websites(value):
        name = sites.domain(each)
        label = re.sub(r"[\W_]+", "", name.partition(".")[0])
        if name in written:
            found.append(written[name])
        elif len(label) > 2 and label in squeezed:
            found.append(each)
    return found


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
    at = _place(value, message, span)
    start, end = quotes.clause_span(at, message)
    spoken = _without_sites(message)
    around = spoken[start : at[0]] if swaps else spoken[start:end]
    return words.negates(words.YES_PHRASES.sub(" ", _FIRST_NO.sub("", around)), language)


def _place(value: str, message: str, span: quotes.Span) -> quotes.Span:
    """Return where the value stands in the quote, or else the quote."""
    own = {each for each in names.fold(value).split() if len(each) > 2}
    for match in re.finditer(r"[^\W_]+", message[span[0] : span[1]]):
        if any(_alike(mine, names.fold(match[0])) for mine in own):
            return span[0] + match.start(), span[0] + match.end()
    return span


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


def takes_away(message: str, span: quotes.Span) -> bool:
    """Return whether the sentence around a quote says that something is not wanted."""
    around = quotes.sentence(span, message)
    return any(each.search(around) for each in (words.NEGATION, words.EXCEPTION, words.REMOVAL))


def is_plain(text: str) -> bool:
    """Return whether a text has no word of doubt, condition, report or negation, and no question."""
    return not ("?" in text or words.DOUBT.search(text) or words.NEGATION.search(text))


def says_all(quote: str) -> bool:
    """Return whether a quote means all of a list."""
    return _ALL.search(quote) is not None or words.EXCEPTION.search(quote) is not None


def is_sure(
    name: str,
    message: str,
    span: quotes.Span | None,
    *,
    known: Sequence[str] = (),
    has_exceptions: bool = False,
    explained: Sequence[quotes.Span] = (),
    language: str = "",
) -> bool:
    """Return whether every word of a message, or of a sentence, asks for a command, or agrees to it.

    Doubt, condition, report, negation, a question, and any word that means something else make it
    unsure: then a button asks.

    Args:
        name: the command.
        message: the message.
        span: the quote whose sentence counts; None: the whole message, as for all that costs.
        known: names of the candidates that it is about.
        has_exceptions: whether the act leaves something out; then words of exception are its own.
        explained: quotes, or reasons, that other acts explain.
        language: the message's.
    """
    message = quotes.blanked(message, explained)
    text = message if span is None else quotes.sentence(span, message)
    asked = words.POLITE.sub(" ", text)
    if ("?" in text and asked == text) or words.DOUBT.search(asked) or _QUOTED.search(text):
        return False
    rest = words.YES_PHRASES.sub(" ", asked)
    if has_exceptions:
        rest = words.EXCEPTION.sub(" ", _FIRST_NO.sub(" ", rest))
        rest = words.NEGATION.sub(" ", rest)
    # What costs does not depend on the language that a reader claims.
    if words.negates(rest, language if span else "") or words.EXCEPTION.search(rest):
        return False
    named = {word for each in known for word in names.fold(each).split()}
    return all(_is_explained(word, named) for word in words.tokens(commands.without(name, rest)))


def _is_explained(word: str, named: set[str]) -> bool:
    if (
        word in words.YES
        or words.is_filler(word)
        or names.is_number(word)
        or word in commands.BESIDE
    ):
        return True
    mine = names.fold(word).split()
    return all(
        each in named or any(fuzz.ratio(each, own) >= names.ALIKE for own in named) for each in mine
    )
