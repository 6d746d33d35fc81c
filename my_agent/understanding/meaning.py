"""Meaning: whether words can mean what an act says, in the languages of the product. Pure functions."""

import re
from itertools import takewhile

from rapidfuzz import fuzz

from my_agent.understanding import names, quotes, words

# Likeness of two words, from 0 to 100, at which one may be a form of the other.
ALIKE = 78
FIRST_NO = re.compile(
    r"^\W*(?:(?:oh|ah|hm+|wait|sorry|moment|ops|epa)\W+)*(?:no+|nope|nein|nee?|não|nao)\b"
    # `no, hotels` corrects, and `no hotels` denies.
    r"(?:\s*$|\s*[,.:;!-][\s,.:;!-]*|\s+(?=(?:i|we|it|that|make|change|ich|wir|es|das|eu|nós|quis|queria)\b))",
    re.IGNORECASE,
)
"""A `no` that comes before what is meant instead."""
_ALL = re.compile(
    r"\b(?:all|every\w*|them|the lot|the rest|both|alle[sn]?|sämtliche|den rest|beide|tod[ao]s|tudo|o resto|amb[ao]s)\b",
    re.IGNORECASE,
)
_ANY = re.compile(
    r"\b(?:any\w*|none|keine?|nenhuma?|all|every\w*|no (?:limit|preference|matter)|(?:doesn'?t|don'?t|does not) (?:matter|care|mind)|whatever|egal|beliebig"
    r"|alle|überall|spielt keine rolle|tanto faz|qualquer|tod[ao]s|indiferente|não importa)\b",
    re.IGNORECASE,
)
_SELF = re.compile(
    r"\b(?:i|we|you|me|us|ich|wir|du|sie wollen|mir|uns|eu|nós|você|vocês|tu)\b", re.IGNORECASE
)
# Others are not, or have not.
_STATES = re.compile(
    r"\b(?:(?:is|are|was|were|has|have|does|sells?|makes?|buys?)(?: \w+)? (?:not|no|nothing|never)|(?:is|are|was|were|has|have|does|they do)n'?t)\b"
    r"|\b(?:ist|sind|war|waren|hat|haben|macht|machen|verkauft|verkaufen|passt|passen)(?: \w+){0,2} (?:kein\w*|nicht|nix|nichts|nie)\b"
    r"|\b(?:não|nao|nem) (?:é|são|era|eram|tem|têm|vend\w+|faz\w*|compra\w*)\b",
    re.IGNORECASE,
)
# Between two numbers, such as `1 bis 3`.
_UNTIL = re.compile(r"(?<=\d)\s*(?:bis|até|through)\s*(?=\d)", re.IGNORECASE)
_WHY = re.compile(r"\b(?:why|how come|warum|wieso|weshalb|por ?qu[eê])\b", re.IGNORECASE)
_ASKED = re.compile(r"\b(?:ask\w*|again|frag\w*|pergunt\w*)\b", re.IGNORECASE)
_QUOTED = re.compile(r"[\"“”„«»][^\"“”„«»]{1,200}[\"“”„«»]")


def stands(value: str, quote: str) -> bool:
    """Return whether a quote contains a value, in any form of its words, or its initials."""
    own, said = names.fold(value).split(), names.fold(quote).split()
    if "".join(word[0] for word in own if word) in said and len(own) > 1:
        return True
    return any(
        is_form(mine, word) for mine in own if len(mine) > 2 or len(own) == 1 for word in said
    )


def is_form(mine: str, word: str) -> bool:
    """Return whether two words may be forms of one."""
    if min(len(mine), len(word)) <= 3:
        return mine == word
    if fuzz.ratio(mine, word) >= ALIKE or word in mine or mine in word:
        return True
    # `roofing` and `roofers`: one stem, if it is most of the word.
    stem = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(mine, word, strict=False)))
    return stem >= 4 and 2 * stem >= max(len(mine), len(word))


def place(value: str, message: str, span: quotes.Span) -> quotes.Span:
    """Return where a value stands in a quote, as it is or in a form of its words, or else the quote."""
    as_it_is = rf"(?<![\w.-]){re.escape(value)}(?![\w-]|\.\w)"
    if found := re.search(as_it_is, message[span[0] : span[1]], re.IGNORECASE):
        return span[0] + found.start(), span[0] + found.end()
    own = {each for each in names.fold(value).split() if len(each) > 2}
    for match in re.finditer(r"[^\W_]+", message[span[0] : span[1]]):
        if any(is_form(mine, names.fold(match[0])) for mine in own):
            return span[0] + match.start(), span[0] + match.end()
    return span


def means_any(quote: str) -> bool:
    """Return whether a quote says that something does not matter."""
    return _ANY.search(quote) is not None


def says_all(quote: str) -> bool:
    """Return whether a quote means all of a list."""
    return _ALL.search(quote) is not None or words.EXCEPTION.search(quote) is not None


def takes_away(message: str, span: quotes.Span) -> bool:
    """Return whether the sentence around a quote says that something is not wanted."""
    around = quotes.sentence(span, message)
    return any(each.search(around) for each in (words.NEGATION, words.EXCEPTION, words.REMOVAL))


def states(text: str) -> bool:
    """Return whether a text says what others are not or have not, without doubt: `that is no food`."""
    is_doubtful = "?" in text or words.DOUBT.search(text) or _SELF.search(text)
    return not is_doubtful and _STATES.search(text) is not None


def is_greeting(text: str) -> bool:
    """Return whether a text only greets or thanks, also with a question mark."""
    is_polite = words.small_talk(text) in ("greeting", "thanks")
    return is_polite and not (words.DOUBT.search(text) or words.NEGATION.search(text))


def asks_why(text: str) -> bool:
    """Return whether a question asks why."""
    return _WHY.search(text) is not None


def is_about_asking(text: str) -> bool:
    """Return whether a question is about being asked."""
    return _ASKED.search(text) is not None


def has(word: str, text: str) -> bool:
    """Return whether a text contains a word as it stands, or another form of it."""
    mine, alike = names.fold(word), set(names.fold(text).split())
    return word in text or any(is_form(mine, e) for e in alike if abs(len(e) - len(mine)) <= 4)


def is_plain(text: str) -> bool:
    """Return whether a text has no word of doubt, condition, report or negation, and no question."""
    return not ("?" in text or words.DOUBT.search(text) or words.NEGATION.search(text))


def ordered(text: str, language: str = "", *, has_exceptions: bool = False) -> str | None:
    """Return the words of an order without those of politeness and agreement.

    None if doubt, condition, report, negation, exception, a question or a quotation makes it unsure.

    Args:
        text: the order.
        language: code of its language; empty if it is not known.
        has_exceptions: whether it leaves something out; then words of exception are its own.
    """
    asked = words.POLITE.sub(" ", text)
    if ("?" in text and asked == text) or words.DOUBT.search(asked) or _QUOTED.search(text):
        return None
    rest = _UNTIL.sub(" ", words.YES_PHRASES.sub(" ", asked))
    if has_exceptions:
        for own in (FIRST_NO, words.EXCEPTION, words.NEGATION):
            rest = own.sub(" ", rest)
    is_unsure = words.negates(rest, language) or words.EXCEPTION.search(rest)
    return None if is_unsure else rest
