"""Certain: the reader without a model. It takes what is certain, and never guesses. Pure functions.

A message is understood whole or not at all: yes or no to the open question, domains, labelled fields,
a command with numbers or names, small talk. The rest is `Unclear`, and the finder says so.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from my_agent.icp_finder import sites, values
from my_agent.icp_finder.prompts import CUSTOMERS
from my_agent.icp_finder.reading import commands
from my_agent.icp_finder.reading.situation import Situation
from my_agent.icp_finder.search import ssic
from my_agent.icp_finder.search.places import is_place
from my_agent.understanding import names, words
from my_agent.understanding.acts import (
    Act,
    Answer,
    Command,
    Consent,
    Correct,
    Exclude,
    Include,
    Reading,
    SmallTalk,
    Unclear,
)

# Characters of a message that is read: what is certain is short, but for lists.
MOST = 2_000
_OWN = re.compile(
    r"\b(?:our|my|we(?:'re| are)?|unsere?|wir|mein\w*|nosso|nossa|somos|meu|minha)\b", re.IGNORECASE
)
_BESIDE_SITES = frozenset(
    [
        "our",
        "my",
        "we",
        "we're",
        "are",
        "website",
        "site",
        "web",
        "page",
        "homepage",
        "company",
        "domain",
        "url",
        "is",
        "it's",
        "its",
        "the",
        "and",
        "und",
        "e",
        "http",
        "https",
        "www",
        "customers",
        "customer",
        "clients",
        "client",
        "best",
        "are",
        "they",
        "unsere",
        "unser",
        "webseite",
        "seite",
        "firma",
        "lautet",
        "ist",
        "sind",
        "kunden",
        "kunde",
        "wir",
        "o",
        "a",
        "os",
        "as",
        "nosso",
        "nossa",
        "nossos",
        "site",
        "é",
        "são",
        "clientes",
        "cliente",
        "empresa",
        "somos",
        "here",
        "hier",
        "aqui",
    ]
)
_REASON = re.compile(
    r"\s*(?:,|\(|-|:)?\s*\b(?:because|since|weil|denn|porque|pois|já que)\b:?\s*(?P<why>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_ALL = frozenset(
    ["all", "everything", "everyone", "them", "alle", "alles", "todos", "todas", "tudo"]
)
_BESIDE_TARGETS = frozenset(
    [
        "and",
        "und",
        "e",
        "or",
        "the",
        "die",
        "der",
        "den",
        "das",
        "dem",
        "a",
        "o",
        "os",
        "as",
        "number",
        "no",
        "nr",
        "nummer",
        "número",
        "numero",
        "candidate",
        "candidates",
        "kandidat",
        "kandidaten",
        "candidato",
        "candidata",
        "company",
        "companies",
        "firma",
        "empresa",
        "please",
        "bitte",
        "por",
        "favor",
        "ab",
        "an",
        "aus",
        "weg",
        "raus",
        "zu",
        "out",
        "to",
        "from",
        "list",
        "liste",
        "lista",
        "my",
        "me",
        "mir",
        "also",
        "auch",
        "também",
        "now",
        "jetzt",
        "agora",
        "only",
        "just",
        "nur",
        "só",
        "apenas",
        "ones",
        "one",
        "is",
        "it",
        "#",
        "nº",
        "first",
        "top",
        "best",
        "ersten",
        "primeiras",
        "primeiros",
        "melhores",
    ]
)
# `3` or `1-3` may be numbers of a list.
_STAFF = re.compile(
    r"(?:\w+ ){0,3}\d[\d,.]*\s*(?:(?:-|to|bis|a|até)\s*\d{2,}[\d,.]*|\+)(?: \w+)?", re.IGNORECASE
)
_FIRST = re.compile(r"^\W*(?:no|não|nein|sorry|actually)[\s,.!]+(?=\w)", re.IGNORECASE)


def read(text: str, situation: Situation) -> Reading:
    """Read a message.

    Args:
        text: the message. A very long one is not certain.
        situation: what it is read against.
    """
    said = text.strip()
    if not said or len(said) > MOST:
        return Reading(acts=[Unclear(kind="Unclear", quote=said[:MOST])] if said else [])
    readers = (_consent, _fields, _sites, _small_talk, _command, _change, _listed)
    for reader in readers:
        if acts := reader(said, situation):
            return Reading(acts=acts)
    return Reading(acts=[Unclear(kind="Unclear", quote=said)])


def _consent(said: str, situation: Situation) -> list[Act]:
    kind = situation.open_question
    if situation.asking and kind != "domain" and words.agrees(said):
        return [Consent(kind="Consent", quote=said, yes=True, to=kind)]
    if kind and words.refuses(said):
        return [Consent(kind="Consent", quote=said, yes=False, to=kind)]
    return []


def _small_talk(said: str, situation: Situation) -> list[Act]:
    return [SmallTalk(kind="SmallTalk", quote=said)] if words.small_talk(said) else []


def _fields(said: str, situation: Situation) -> list[Act]:
    return [
        Correct(kind="Correct", quote=said, field=field, value=given)
        for field, given in (values.labelled(said) or {}).items()
    ]


def _sites(said: str, situation: Situation) -> list[Act]:
    """Read a message that is nothing but websites, and words such as `our website is`."""
    found = list(sites.mentions(said))
    if not found:
        return []
    rest = said
    for each in reversed(found):
        rest = f"{rest[: each.start]} {rest[each.end :]}"
    beside = set(words.tokens(rest)) - {"+", "-"}
    if not beside <= _BESIDE_SITES:
        return []
    given = sites.distinct(each.website for each in found)
    field = situation.asked if situation.asked in ("website", "customers") else ""
    if _OWN.search(rest) and not re.search(
        r"\b(?:customer|client|kunde|cliente)", rest, re.IGNORECASE
    ):
        field = "website"
    elif beside & {
        "customers",
        "customer",
        "clients",
        "client",
        "kunden",
        "kunde",
        "clientes",
        "cliente",
    }:
        field = "customers"
    if field == "website" and len(given) > 1 and situation.asked == "website":
        own = Answer(kind="Answer", quote=said, field="website", value=given[:1])
        return [own, Answer(kind="Answer", quote=said, field="customers", value=given[1:])]
    if field == "customers" and len(given) >= CUSTOMERS <= len(situation.customers):
        # A whole list replaces the one that there is.
        return [Correct(kind="Correct", quote=said, field=field, value=given)]
    return [Answer(kind="Answer", quote=said, field=field, value=given)]


def _command(said: str, situation: Situation) -> list[Act]:
    """Read a command with its targets, exceptions and reason."""
    asked = _without_politeness(said).strip(" .!")
    reason = _REASON.search(asked)
    why, asked = (reason["why"].strip(" )."), asked[: reason.start()]) if reason else ("", asked)
    if asked.endswith("?") and not re.match(
        r"(?:why|warum|wieso|por ?qu|what|was|o que|how|wie|who|quem|wer|which)",
        asked,
        re.IGNORECASE,
    ):
        return []
    for name, rest in commands.leading(asked.strip(" ?")):
        act = _with_targets(name, rest.strip(" ,.:"), said, why, situation)
        if act is not None:
            return [act]
    return []


def _with_targets(
    name: str, rest: str, said: str, why: str, situation: Situation
) -> Command | None:
    split = words.EXCEPTION.search(rest) if name not in ("export", "filter") else None
    aimed, but = (rest[: split.start()], rest[split.end() :]) if split else (rest, "")
    targets = _targets(aimed, situation)
    exceptions = _targets(but, situation) if split else None
    if targets is None or (split and not isinstance(exceptions, list)):
        return None
    made: dict[str, Any] = {"kind": "Command", "quote": said, "name": name, "reason": why or None}
    if name in commands.FEEDBACK and targets == [] and not split:
        return None
    if not commands.takes_candidates(name):
        # `more`, `stop` and the like stand alone.
        return Command(**made) if targets == [] and not split else None
    if name == "filter":
        return None
    made["targets"] = (targets or None) if not split else (targets or "all")
    made["except"] = exceptions
    return Command(**made)


def _targets(text: str, situation: Situation) -> Any:
    """Return numbers and names, `all`, an empty list without any word, or None if a word is unknown."""
    left = words.tokens(text)
    if all(each in _BESIDE_TARGETS for each in left):
        return []
    shown = [each.name for each in situation.listed]
    found = names.numbers(text, shown)
    is_number = re.compile(r"#?\d{1,4}(?:st|nd|rd|th|-\d{1,4})?-?|-|\+")
    known = set(words.ORDINALS) | set(names.COUNTS)
    others = [
        each for each in left if not is_number.fullmatch(each) and each not in _BESIDE_TARGETS
    ]
    if found and all(names.fold(each) in known for each in others):
        return found
    if not found and others and all(each in _ALL for each in others):
        return "all"
    pieces = [each.strip() for each in re.split(r",|\b(?:and|und|e)\b", text) if each.strip()]
    named: list[int | str] = []
    for whole in ([text.strip()], pieces):
        named = [_name(each, situation) or each for each in whole]
        if all(_resolves(each, situation) for each in named):
            return named
    return None


def _name(piece: str, situation: Situation) -> int | str | None:
    """Return a piece of a list as a number, or as a name without the words around it."""
    bare = piece.strip(" .!#")
    if bare.isascii() and bare.isdigit():
        return int(bare)
    left = [each for each in piece.split() if each.casefold() not in _BESIDE_TARGETS]
    return " ".join(left) or None


def _resolves(target: int | str, situation: Situation) -> bool:
    found = names.resolve([target], str(target), situation.listed)
    # Two candidates of one name are known names, too: the person is asked which.
    return bool(found.keys) or bool(found.unclear)


def _change(said: str, situation: Situation) -> list[Act]:
    """Read an addition to the profile, a removal, or a correction, of values that are known."""
    if said.endswith("?"):
        return []
    asked = _without_politeness(said).strip(" .!")
    corrected = _FIRST.sub("", said).strip(" .!")
    if found := re.fullmatch(rf"(?:{commands.ADD})\s+(.+)", asked, re.IGNORECASE):
        return _known_values(found[1], said, situation, Include)
    if found := re.fullmatch(
        rf"(?:{commands.SET})\s+(?:in |to |für |em )?(.+)", corrected, re.IGNORECASE
    ):
        return _known_values(found[1], said, situation, Correct)
    if found := re.fullmatch(
        rf"(?:{commands.COMMANDS['reject']}|{words.EXCEPTION.pattern}|kein\w*|not|no)\s+(.+)",
        asked,
        re.IGNORECASE,
    ):
        return _removal(found[1], said, situation)
    return []


def _known_values(
    text: str, said: str, situation: Situation, kind: type[Include] | type[Correct]
) -> list[Act]:
    """Return an act for each field; none if any value is no known place, number of staff or industry."""
    by_field: dict[str, list[str]] = {}
    for piece in _pieces(text):
        field = field_of(piece)
        if field is None:
            return []
        by_field.setdefault(field, []).append(piece)
    if kind is Include:
        return [
            Include(kind="Include", quote=said, what=field, value=given)
            for field, given in by_field.items()
        ]
    return [
        Correct(kind="Correct", quote=said, field=field, value=given)
        for field, given in by_field.items()
    ]


def _removal(text: str, said: str, situation: Situation) -> list[Act]:
    pieces = _pieces(text)
    stored = [
        (field, value) for field in values.FIELDS for value in values.of(situation.icp, field)
    ]
    acts: list[Act] = []
    for piece in pieces:
        named = next((field for field, value in stored if is_same(piece, value)), None)
        field = named or field_of(piece)
        if field is None or (named is None and situation.icp is None):
            return []
        acts.append(Exclude(kind="Exclude", quote=said, what=field, value=[piece]))
    return acts


def _listed(said: str, situation: Situation) -> list[Act]:
    """Read the answer to the question for industries, or for what to change: a list of known values."""
    if (
        situation.asked not in ("industries", "icp")
        or said.endswith("?")
        or words.NEGATION.search(said)
    ):
        return []
    pieces = _pieces(said)
    if not pieces or any(len(each.split()) > 5 for each in pieces):
        return []
    return _known_values(said, said, situation, Correct)


def _pieces(text: str) -> list[str]:
    found = re.split(r"[,;/\n]|\b(?:and|und|e)\b|&", text)
    bare = (
        re.sub(
            r"^(?:the|a|in|die|der|das|den|o|os|as|em)\s+|\s+(?:please|bitte|por favor|too|as well|dazu)$",
            "",
            each.strip(" .!"),
            flags=re.IGNORECASE,
        )
        for each in found
    )
    return [each for each in bare if each]


def field_of(value: str) -> str | None:
    """Return the field of the profile that a value certainly belongs to, or None."""
    if re.search(r"\d", value):
        return "sizes" if _STAFF.fullmatch(value.strip()) else None
    if is_place(value):
        return "regions"
    return "industries" if ssic.codes([value]) else None


def is_same(said: str, stored: str) -> bool:
    """Return whether words name a stored value: `food` means `Food distribution`."""
    mine, own = _significant(said), _significant(stored)
    return bool(mine) and bool(own) and (mine <= own or own <= mine)


def _significant(text: str) -> set[str]:
    return {
        word.removesuffix("s")
        for word in names.fold(text).split()
        if word not in ("of", "and", "the", "in", "und", "e", "de")
    }


def _without_politeness(said: str) -> str:
    polite = words.POLITE.match(said)
    rest = said[polite.end() :] if polite else said
    first: Sequence[str] | Iterable[str] = (
        "please",
        "bitte",
        "por favor",
        "ok",
        "okay",
        "and",
        "now",
        "then",
        "also",
        "hey",
        "hi",
    )
    while True:
        lead = next(
            (
                each
                for each in first
                if rest.strip(" ,").casefold().startswith(f"{each} ")
                or rest.strip(" ,").casefold().startswith(f"{each},")
            ),
            None,
        )
        if lead is None:
            return rest.strip(" ,")
        rest = rest.strip(" ,")[len(lead) :]
