"""Certain: the reader without a model. It takes what is certain, and never guesses. Pure functions.

A message is understood whole or not at all: yes or no to the open question, domains, labelled fields,
a command with numbers or names, known values to add or drop, small talk. The rest is `Unclear`, and the
finder says so.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from my_agent.companies import ssic
from my_agent.icp_finder import values
from my_agent.icp_finder.prompts import CUSTOMERS
from my_agent.icp_finder.reading import commands
from my_agent.icp_finder.reading.situation import Situation
from my_agent.understanding import acts as of
from my_agent.understanding import names, quotes, words
from my_agent.understanding.places import is_place
from my_agent.web import sites

# Characters of a message that is read: what is certain is short, but for lists.
MOST = 2_000
# fmt: off
_THEIRS = words.word_set("customers customer clients client kunden kunde clientes cliente")
_OURS = words.word_set("our my we we're unser unsere wir mein meine nosso nossa somos meu minha")
_BESIDE_SITES = _THEIRS | _OURS | words.word_set(
    "are website site web page homepage company domain url is it's its the and und e http https www best they webseite seite firma lautet ist sind"
    " o a os as nossos é são empresa here hier aqui"
)
_ALL = words.word_set("all everything everyone them alle alles todos todas tudo")
# fmt: on
_REASON = re.compile(
    rf"(?:[,(:-] ?)?\b(?:{words.BECAUSE})\b:?(?P<why>.+)$",
    re.IGNORECASE | re.DOTALL,
)
# There are no more customers.
_ENOUGH = re.compile(
    r"(?:(?:i|we) have )?no(?: more|ne)(?: (?:customers|clients))?|(?:that'?s|that is|these are|those are) (?:all|it)(?: of them)?"
    r"|(?:(?:ich|wir) (?:habe|haben) )?keine (?:mehr|weiteren)|das war'?s|das (?:sind|waren|ist) alle?s?|mehr (?:habe ich|haben wir) nicht"
    r"|não (?:tenho|temos|há) mais|mais nenhum|(?:é )?só (?:isso|isto|esses|estes)|são (?:só )?(?:esses|estes|todos)",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"(?:why|what|how|who|which|warum|wieso|was|wie|wer|por ?qu|o que|quem|como)", re.IGNORECASE
)
_NO_FIRST = re.compile(r"^\W*(?:no|não|nein|sorry|actually)[\s,.!]+(?=\w)", re.IGNORECASE)
# `3` or `1-3` may be numbers of a list.
_STAFF = re.compile(
    r"(?:\w+ ){0,3}\d[\d,.]*\s?(?:(?:-|to|bis|a|até)\s?\d{2}[\d,.]*|\+)(?: \w+)?", re.IGNORECASE
)
# A part of a list with such a word, or of two sentences, is more than a value.
_MORE = re.compile(
    rf"{words.NEGATION.pattern}|{words.EXCEPTION.pattern}|{words.REMOVAL.pattern}|\b(?:{commands.ADD})\b|[.!?;]\s",
    re.IGNORECASE,
)
_EDGES = re.compile(
    r"^(?:the|a|in|die|der|das|den|o|os|as|em) | (?:please|bitte|por favor|too|as well|dazu)$",
    re.IGNORECASE,
)


_ADD = re.compile(rf"(?:{commands.ADD})\s+(.+)", re.IGNORECASE)
_SET = re.compile(rf"(?:{commands.SET})\s+(?:in |to |für |em )?(.+)", re.IGNORECASE)
_DROP = re.compile(
    rf"(?:{commands.COMMANDS['reject']}|{words.EXCEPTION.pattern}|kein\w*|not|no)\s+(.+)",
    re.IGNORECASE,
)


def read(text: str, situation: Situation) -> of.Reading:
    """Read a message.

    Args:
        text: the message. A very long one is not certain.
        situation: what it is read against.
    """
    # Lines separate fields.
    said = "\n".join(line for each in text.splitlines() if (line := " ".join(each.split())))
    if not said:
        return of.Reading(acts=[])
    if len(said) <= MOST:
        for reader in (_consent, _fields, _sites, _small_talk, _command, _change):
            if acts := reader(said, situation):
                return of.Reading(acts=acts)
    return of.Reading(acts=[_act(of.Unclear, said[:MOST])])


def _act(kind: type[of.Act], said: str, **fields: Any) -> of.Act:
    return kind.model_validate({"kind": kind.__name__, "quote": said, **fields})


def _consent(said: str, situation: Situation) -> list[of.Act]:
    kind = situation.open_question
    if situation.asking and kind != "domain" and words.agrees(said):
        return [_act(of.Consent, said, yes=True, to=kind)]
    is_enough = kind == "customers" and _ENOUGH.fullmatch(said.strip(" .!")) is not None
    if kind and (is_enough or words.refuses(said)):
        return [_act(of.Consent, said, yes=False, to=kind)]
    return []


def _small_talk(said: str, situation: Situation) -> list[of.Act]:
    return [_act(of.SmallTalk, said)] if words.small_talk(said) else []


def _fields(said: str, situation: Situation) -> list[of.Act]:
    found = values.labelled(said) or {}
    return [_act(of.Correct, said, field=name, value=given) for name, given in found.items()]


def _sites(said: str, situation: Situation) -> list[of.Act]:
    """Read a message that is nothing but websites, and words such as `our website is`."""
    found = list(sites.mentions(said))
    rest = quotes.blanked(said, ((each.start, each.end) for each in found))
    beside = set(words.tokens(rest)) - {"+", "-"}
    if not found or not beside <= _BESIDE_SITES:
        return []
    given = sites.distinct(each.website for each in found)[: of.VALUES]
    asked = situation.asked if situation.asked in ("website", "customers") else ""
    field = "customers" if beside & _THEIRS else "website" if beside & _OURS else asked
    if field == "customers" and len(given) >= CUSTOMERS <= len(situation.customers):
        # A whole list replaces the one that there is.
        return [_act(of.Correct, said, field=field, value=given)]
    lists = [(field, given)]
    if field == asked == "website":
        lists = [(field, given[:1]), *([("customers", given[1:])] if given[1:] else [])]
    return [_act(of.Answer, said, field=name, value=each) for name, each in lists]


def _command(said: str, situation: Situation) -> list[of.Act]:
    """Read a command with its targets, exceptions and reason."""
    asked = words.without_politeness(said).strip(" .!")
    reason = _REASON.search(asked)
    why, asked = (reason["why"].strip(" )."), asked[: reason.start()]) if reason else ("", asked)
    if asked.endswith("?") and not (_ASKS.match(asked) or words.POLITE.match(said)):
        return []
    for name, rest in commands.leading(asked.strip(" ?")):
        if (act := _with_targets(name, rest.strip(" ,.:"), said, why, situation)) is not None:
            return [act]
    return []


def _with_targets(name: str, rest: str, said: str, why: str, situation: Situation) -> of.Act | None:
    if name == "filter":
        return None
    but = words.EXCEPTION.search(rest)
    targets = _targets(rest[: but.start()] if but else rest, situation)
    exceptions = _targets(rest[but.end() :], situation) if but else None
    if targets is None or (but and not isinstance(exceptions, list)):
        return None
    alone = targets == [] and not but
    # `more`, `stop` and the like stand alone; `reject` alone is about nobody.
    if (name in commands.ABOUT_CANDIDATES) == alone and name not in ("enrich", "show"):
        return None
    aimed, reason = targets or ("all" if but else None), why[: of.LENGTH] or None
    return _act(of.Command, said, name=name, reason=reason, targets=aimed, exceptions=exceptions)


def _targets(text: str, situation: Situation) -> Any:
    """Return numbers and names, `all`, an empty list without any word, or None if a word is unknown."""
    left = [each for each in words.tokens(text) if each not in commands.BESIDE | {"-", "+"}]
    found = names.numbers(text, [each.name for each in situation.listed])
    others = [each for each in left if not names.is_number(each)]
    if not others and (found or not left):
        return found or ("all" if set(words.tokens(text)) & _ALL else [])
    pieces = [each for each in re.split(r",|\b(?:and|und|e)\b", text) if each.strip()]
    for whole in ([text], pieces[: of.VALUES + 1]):
        named = [_name(each) for each in whole]
        if len(whole) <= of.VALUES and all(_resolves(each, situation) for each in named):
            return named
    return None


def _name(piece: str) -> int | str:
    """Return a piece of a list as a number, or as a name without the words around it."""
    bare = piece.strip(" .!#")
    if bare.isascii() and bare.isdigit():
        return int(bare)
    return " ".join(each for each in piece.split() if each.casefold() not in commands.BESIDE)


def _resolves(target: int | str, situation: Situation) -> bool:
    found = names.resolve([target], str(target), situation.listed)
    # Two candidates of one name are known names, too: the person is asked which.
    return bool(found.keys) or bool(found.unclear)


def _change(said: str, situation: Situation) -> list[of.Act]:
    """Read an addition to the profile, a removal, or a correction, of values that are known."""
    if said.endswith("?"):
        return []
    asked = words.without_politeness(said).strip(" .!")
    if found := _ADD.fullmatch(asked):
        return _grouped(of.Include, "what", said, found[1], _known)
    if found := _SET.fullmatch(_NO_FIRST.sub("", said).strip(" .!")):
        return _grouped(of.Correct, "field", said, found[1], _known)
    if found := _DROP.fullmatch(asked):
        return _grouped(of.Exclude, "what", said, found[1], partial(_stored, situation))
    if situation.asked in ("industries", "icp") and not words.NEGATION.search(said):
        return _grouped(of.Correct, "field", said, said, _known)
    return []


def _grouped(
    kind: type[of.Act], name: str, said: str, text: str, field: Callable[[str], str | None]
) -> list[of.Act]:
    """Return an act for each field of the values of a list; none if any value has no certain field."""
    by_field: dict[str, list[str]] = {}
    for piece in _pieces(text):
        if _MORE.search(piece) or (found := field(piece)) is None:
            return []
        by_field.setdefault(found, []).append(piece)
    if any(len(each) > of.VALUES for each in by_field.values()):
        return []
    return [_act(kind, said, **{name: each, "value": given}) for each, given in by_field.items()]


def _known(piece: str) -> str | None:
    return field_of(piece) if len(piece.split()) <= 5 else None


def _stored(situation: Situation, piece: str) -> str | None:
    """Return the field that has a value, or to which it certainly belongs."""
    if piece.casefold() in situation.customers:
        return "customers"
    for name in values.FIELDS:
        if any(values.is_same(piece, each) for each in values.of(situation.icp, name)):
            return name
    found = field_of(piece) if situation.icp is not None else None
    # To drop a size that is not there would do nothing.
    return found if found != "sizes" else None


def _pieces(text: str) -> list[str]:
    found = re.split(r"[,;/\n]|\b(?:and|und|e)\b|&", text)
    return [bare for each in found if (bare := _EDGES.sub("", each.strip(" .!")))]


def field_of(value: str) -> str | None:
    """Return the field of the profile that a value certainly belongs to, or None."""
    if re.search(r"\d", value):
        return "sizes" if _STAFF.fullmatch(value.strip()) else None
    if is_place(value):
        return "regions"
    return "industries" if ssic.codes([value]) else None
