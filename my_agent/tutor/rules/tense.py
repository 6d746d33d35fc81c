"""Tense: "since" and "for", perfect with a time in the past, "if" and "when"."""

import re
from collections.abc import Iterator

from my_agent.tutor.corrections import Issue
from my_agent.tutor.rules import lexicon
from my_agent.tutor.rules.patterns import Pattern, found, pattern
from my_agent.tutor.rules.sentences import Sentence

_SUBJECT = r"(?:I|you|he|she|it|we|they)"
_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
)
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_PAST = (
    rf"(?:yesterday|last (?:night|week|weekend|month|year|summer|winter|{_DAY})|"
    r"(?:\w+ )?(?:minute|hour|day|week|month|year)s? ago|in (?:19\d\d|20[01]\d))\b(?!['\u2019])"
)
_SINCE = (
    rf"since (?:\d{{4}}|last \w+|{_DAY}|{_MONTH}|yesterday|christmas|"
    r"(?:I|we|he|she|they) (?:was|were))\b"
)
_FOR_YEARS = r"for (?:\w+|a long) (?:years|months)\b"
# Verbs whose present with "for three years" is always a mistake.
_LASTING = r"(?:live|lives|work|works|study|studies|know|knows|teach|teaches|play|plays)"
_DOING = r"(?:living|working|studying|learning|teaching|waiting|playing)"
_SO_LONG = "What began in the past and goes on stands in the present perfect."
_OVER = "A time in the past asks for the simple past."


def _have(match: re.Match[str]) -> str:
    return "has" if match["subject"].lower() in {"he", "she", "it"} else "have"


def _lasting(match: re.Match[str]) -> str | None:
    verb = match["verb"].lower()
    if verb in {"am", "is", "are"}:
        return f"{_have(match)} been"
    lemma = verb if lexicon.is_base(verb) else lexicon.of_third(verb)
    return f"{_have(match)} {lexicon.participle(lemma)}" if lemma else None


def _simple(match: re.Match[str]) -> str | None:
    verb = match["verb"].lower()
    if verb == "been":
        first = match["subject"].lower() in {"i", "he", "she", "it"}
        return "was" if first else "were"
    lemma = lexicon.of_participle(verb)
    return lexicon.past(lemma) if lemma else None


def _conditional(match: re.Match[str]) -> str | None:
    verb = match["verb"].lower()
    if lexicon.of_participle(match["next"].lower()) and verb == "have":
        return "had"
    if verb == "be":
        return "were"
    return lexicon.past(verb) if lexicon.is_base(verb) else None


def _present(match: re.Match[str]) -> str | None:
    verb = match["verb"].lower()
    third = match["subject"].lower() in {"he", "she", "it"}
    if verb == "be":
        return {"i": "am"}.get(match["subject"].lower(), "is" if third else "are")
    if verb != "have" and not lexicon.is_base(verb):
        return None
    return lexicon.third(verb) if third else verb


def _never(match: re.Match[str]) -> str:
    return f"{_have(match)} never been"


def _how_long(match: re.Match[str]) -> str | None:
    verb = match["verb"].lower()
    if not lexicon.is_base(verb):
        return None
    have = "has" if match["subject"].lower() in {"he", "she", "it"} else "have"
    return f"{have} {match['subject']} {lexicon.participle(verb)}"


_PATTERNS: tuple[Pattern, ...] = (
    pattern(
        "tense",
        rf"\b(?P<subject>{_SUBJECT}) [[(?P<verb>{_LASTING}|am|is|are)]] "
        rf"(?!\w+ing\b)(?:[^,;]* )?(?:{_SINCE}|(?<=teacher ){_FOR_YEARS}|(?<=married ){_FOR_YEARS})",
        _lasting,
        _SO_LONG,
    ),
    pattern(
        "tense",
        rf"\b(?P<subject>{_SUBJECT}) [[(?P<verb>{_LASTING})]] "
        rf"(?:[^,;]* )?(?:{_FOR_YEARS})",
        _lasting,
        _SO_LONG,
    ),
    pattern(
        "tense",
        rf"\b(?P<subject>{_SUBJECT}) [[(?P<verb>am|is|are)]] (?:an? \w+|{_DOING})"
        rf"(?: [^,;]*)? (?:{_FOR_YEARS}|{_SINCE})",
        _lasting,
        _SO_LONG,
    ),
    pattern(
        "tense",
        rf"\b(?P<subject>{_SUBJECT}) [[(?:have|has) (?P<verb>\w+)]] "
        rf"(?!(?:that|since)\b)(?:(?!since|\bbecause\b|\bwho\b|\bthat (?:I|he|she|we|they)\b)[^,;])*"
        rf"\b{_PAST}",
        _simple,
        _OVER,
    ),
    pattern(
        "tense",
        rf"\bif (?P<subject>{_SUBJECT}) [[would (?P<verb>\w+)]] (?P<next>\w+)[^.?!]*\bwould\b",
        _conditional,
        "After “if” the past stands without “would”.",
    ),
    pattern(
        "tense",
        rf"(?:^|\bwill (?:\w+ ){{1,4}}|'ll (?:\w+ ){{1,4}})(?:when|if|as soon as|until|before|after)"
        rf" (?P<subject>{_SUBJECT}) [[will (?P<verb>\w+)]]\b(?!\?)",
        _present,
        "After “if” and “when” the present tells of the future.",
    ),
    pattern(
        "tense",
        rf"\b(?P<subject>{_SUBJECT}) [[never (?:was|were|went)]] (?:to [A-Z]|there\b)",
        _never,
        "What has happened up to now stands in the present perfect.",
    ),
    pattern(
        "tense",
        rf"\bhow long [[(?:do|does) (?P<subject>{_SUBJECT}) (?P<verb>\w+)]](?= (?:in|at|here|him|her|as))",
        _how_long,
        _SO_LONG,
    ),
    pattern("tense", r"\b(?:I|he|she) [[born]]\b", "was born", "People “were born”."),
)


def check(sentence: Sentence) -> Iterator[Issue]:
    """Yield verbs whose tense does not fit a time or a condition."""
    yield from found(sentence, _PATTERNS)
