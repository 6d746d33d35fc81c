"""Edits: changes of an ideal customer profile in free text, such as `but drop food`. Pure functions.

A value is recognised by what it names: a region, a number of employees, an industry, or a value that
the profile already has. What names nothing changes nothing.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from my_agent.icp_finder.model import Icp
from my_agent.icp_finder.reading import vocabulary
from my_agent.icp_finder.reading.message_parser import clean, fields, merge_icp, parse_values
from my_agent.icp_finder.search import ssic
from my_agent.icp_finder.search.places import is_place
from my_agent.icp_finder.sites import mentions

FIELDS = ("industries", "sizes", "regions", "keywords")
EMPTY: Icp = {"industries": [], "sizes": [], "regions": [], "keywords": []}

# Clauses have single spaces, so that no pattern divides a run of them in all possible ways.
_CLAUSES = re.compile(
    r"(?<![;\n.!])[;\n.!]++(?= |$)|,? ?\b(?:but|however|though|aber|pero|mais|mas|and then)\b,? ?|, ?(?=(?:and )?"
    r"(?:drop|remove|delete|exclude|add|include|only|just|without|not|no|set|change|replace|our|my|we)\b)"
    r"| (?=(?:except|apart from|aside from|other than)\b)| and (?=(?:drop|remove|delete|exclude|add|include|set|change|replace)\b)|[,\uff0c] ?但",
    re.IGNORECASE,
)
_REMOVE = re.compile(
    r"(?:drop|remove|delete|exclude|leave out|take out|get rid of|lose|entferne|streich(?:e)?|lass"
    r"|retire[rz]?|enlève|supprime|quita|elimina|remova|remove|tira|retira|buang|hapus)\b ?(.+)|(?:去掉|删除) ?(.+)",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"(?:(?:we|i) (?:no longer|don't) (?:want|need|sell to|serve)|no|not|without|except(?: for)?|apart from|aside from|other than|skip|minus|ohne|kein(?:e|en)?|sans|sauf|sin|sem|tanpa|nicht"
    r"|pas(?: de)?)\b ?(.+)|不要 ?(.+)",
    re.IGNORECASE,
)
_ADD = re.compile(
    r"(?:add|include|plus|append|füge|nimm|ergänze|ajoute[rz]?|añade|agrega|incluye|adicion[ae]"
    r"|inclu[ai]|tambah(?:kan)?)\b ?(.+)|(?:添加|加上) ?(.+)",
    re.IGNORECASE,
)
_ONLY = re.compile(
    r"(?:(?:(?:we|i) )?(?:only|just) (?:want|need|look for|search for|sell to|serve) "
    r"|(?:only|just|nur|seulement|uniquement|solo|sólo|solamente|apenas|só|somente|hanya)\b ?|只要 ?"
    r"|(?:limit|restrict|narrow)(?: (?:it|this|them|the search))?(?: down)? to "
    r"|(?:focus|concentrate) on |go for "
    r"|(?:search|look|hunt)(?: again)? (?:for|in) )(.+)"
    r"|(.+?) (?:only|nur|seulement|solamente|apenas)",
    re.IGNORECASE,
)
_NAMES = (
    r"(?P<industries>industr(?:y|ies)|sectors?|verticals?|branchen?|secteurs?|sectores?|setor(?:es)?)"
    r"|(?P<sizes>(?:company )?sizes?|employees|head ?count)"
    r"|(?P<regions>regions?|regionen|région(?:s)?|regi(?:ón|ones|ão|ões)|countr(?:y|ies)|locations?"
    r"|markets?)|(?P<keywords>keywords?|stichw(?:ort|orte|örter)|mots-clés|palabras clave)"
)
_SET = re.compile(
    rf"(?:change|set|make|switch|update|put|ändere|setze|cambia|mude|muda|changez?) "
    rf"(?:the |our |my |die |la |les |las |a |o )?(?:{_NAMES}) "
    r"(?:to|into|as|auf|zu|à|a|para|en) (?P<values>.+)",
    re.IGNORECASE,
)
_SHOULD = re.compile(
    rf"(?:the |our )?(?:{_NAMES}) (?:should|must|has to|have to) be (?P<values>.+)",
    re.IGNORECASE,
)
_USE = re.compile(
    rf"(?:use|take|put) (?P<values>.+?) (?:as|for) (?:the |our |an? )?(?:{_NAMES})",
    re.IGNORECASE,
)
_SWAP = re.compile(
    r"(?:replace|swap|exchange) (?P<old>.+?) (?:with|by|for) (?P<new>.+)"
    r"|(?P<new2>.+?) (?:instead of|rather than|statt|en lugar de|em vez de) (?P<old2>.+)",
    re.IGNORECASE,
)
_HINT = re.compile(rf"(?:the )?(?:{_NAMES}) (?:of )?(?P<rest>.+)", re.IGNORECASE)
_TAIL = re.compile(
    r" (?:(?:from|to|in) (?:the |our |my )?(?:profile|list|icp|search"
    r"|industries|sectors|regions|keywords|sizes)|please|too|as well|also|instead|then|for now|hinzu|weg"
    r"|raus|thanks|bitte|por favor|tolong|merci|gracias) ?$",
    re.IGNORECASE,
)
_STAFF = re.compile(
    r"\b(?:employees|people|staff|persons|workers|mitarbeiter\w*|employés|empleados|funcionários"
    r"|karyawan|人)|人",
    re.IGNORECASE,
)
_ATLEAST = re.compile(
    r"\b(?:more than|over|at least|above|minimum(?: of)?|from|mehr als|ab|plus de|más de|mais de) "
    r"(\d[\d,.]*)",
    re.IGNORECASE,
)
_ATMOST = re.compile(
    r"\b(?:less than|fewer than|under|below|at most|up to|maximum(?: of)?|weniger als|unter|bis zu"
    r"|moins de|menos de|até) (\d[\d,.]*)",
    re.IGNORECASE,
)
_ARTICLE = re.compile(
    r"^(?:the|a|an|some|any|in|from|of|companies|firms|those|ones|businesses|die|der|das|den|le|la|les"
    r"|el|los|las|o|os|as|em|en|dans|di|de) ",
    re.IGNORECASE,
)
# Words that point at candidates or at nothing.
_POINTING = re.compile(
    r"^(?:it|them|that|this|those|these|one|ones|all|both|everything|anything|the rest|others?|me|you"
    r"|now|yet|sure|again|later|thanks|problem|\d+|#\d+)\b",
    re.IGNORECASE,
)
_SOLD = re.compile(
    r"(?:(?:we|wir) (?:(?:mostly|mainly|only|also|really|now|actually|verkaufen) )?"
    r"(?:sell|sold|cater|deliver|an) (?:mostly |mainly |only )?(?:to )?"
    r"|our customers are (?:mostly |mainly )?)(.+)",
    re.IGNORECASE,
)


@dataclass
class Edits:
    """What a text changes about a profile.

    Attributes:
        icp: the changed fields, whole; an empty list means any.
        missing: values to remove that the profile does not have.
    """

    icp: dict[str, list[str]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def read(text: str, icp: Icp | None) -> Edits:
    """Read the changes that a text asks for.

    Args:
        text: the message. A question changes nothing.
        icp: the profile that the changes are about.
    """
    found = Edits()
    known = icp or EMPTY
    for clause in _clauses(text):
        labelled = fields(clause)
        if any(True for _ in mentions(clause)):
            # The words around a website are about the website.
            found.icp |= labelled
        elif labelled:
            found.icp |= labelled
        elif not vocabulary.is_question(clause):
            _clause(clause, merge_icp(known, found.icp), found)
    same: Any = {**known}
    found.icp = {name: values for name, values in found.icp.items() if values != same[name]}
    return found


def field_of(value: str) -> str | None:
    """Return the field of the ICP that a value belongs to, or None."""
    if _STAFF.search(value) and re.search(r"\d", value):
        return "sizes"
    if is_place(value):
        return "regions"
    return "industries" if ssic.codes([value]) else None


def _clauses(text: str) -> Iterator[str]:
    # A list after a label may contain any word, so only line ends and semicolons end it.
    for line in re.split(r"[;\n]", text):
        part = " ".join(line.split())
        pieces = [part] if fields(part) else _CLAUSES.split(part)
        yield from (piece.strip() for piece in pieces if piece and piece.strip())


def _clause(clause: str, icp: Icp, found: Edits) -> None:
    asked = vocabulary.POLITE.sub("", clause, count=1).strip(" ,.!\N{IDEOGRAPHIC FULL STOP}")
    tail = None
    while asked != tail:
        tail, asked = asked, _TAIL.sub("", asked)
    if named := _SET.fullmatch(asked) or _SHOULD.fullmatch(asked) or _USE.fullmatch(asked):
        name = next(each for each in FIELDS if named[each])
        values = parse_values(name, named["values"])
        if values or named["values"].strip().lower() in ("any", "all"):
            found.icp[name] = values
    elif swap := _SWAP.fullmatch(asked):
        _swap(swap["old"] or swap["old2"], swap["new"] or swap["new2"], icp, found)
    elif removed := _REMOVE.fullmatch(asked):
        _remove(_rest(removed), icp, found, strict=False)
    elif added := _ADD.fullmatch(asked) or re.fullmatch(r"also (.+)", asked, re.IGNORECASE):
        _add(_rest(added), icp, found)
    elif re.match(r"\W*+(?:[\w'][\w' ]*+, ?)?also\b", clause, re.IGNORECASE) and _is_value(asked):
        _add(asked, icp, found)
    elif only := _ONLY.fullmatch(asked) or re.match(
        r"(?:.*[ ,])?(?:only|just|nur) ((?:in|from) .+)", clause, re.IGNORECASE
    ):
        _only(_rest(only), found)
    elif sold := _SOLD.fullmatch(asked):
        _only(sold[1], found)
    elif removed := _NOT.fullmatch(asked) or _NOT.fullmatch(clause.strip(" ,.!")):
        _remove(_rest(removed), icp, found, strict=True)
    elif _STAFF.search(asked) and (sizes := _sizes(asked)):
        found.icp["sizes"] = sizes


def _rest(found: re.Match[str]) -> str:
    """Return the part of a clause after the word that says what to do."""
    return next(str(part) for part in found.groups() if part)


def _is_value(text: str) -> bool:
    return len(text.split()) <= 5 and field_of(_bare(text)) is not None


def _add(text: str, icp: Icp, found: Edits) -> None:
    hinted, rest = _hinted(text)
    for value in _values(rest):
        name = hinted or field_of(value)
        if name is None:
            continue
        new = _sizes(value) if name == "sizes" else clean(name, [value])
        old: Any = merge_icp(icp, found.icp)
        found.icp[name] = clean(name, [*old[name], *new])


def _only(text: str, found: Edits) -> None:
    hinted, rest = _hinted(text)
    values = _values(rest)
    named = [(hinted or field_of(value), value) for value in values]
    if not named or any(name is None for name, _ in named):
        return
    for name in {name for name, _ in named if name}:
        same = [value for each, value in named if each == name]
        found.icp[name] = _sizes(" ".join(same)) if name == "sizes" else clean(name, same)


def _remove(text: str, icp: Icp, found: Edits, *, strict: bool) -> None:
    hinted, rest = _hinted(text)
    for value in _values(rest):
        matched = False
        for name, kept in _without(value, merge_icp(icp, found.icp), hinted).items():
            found.icp[name] = kept
            matched = True
        if not matched and not strict and (hinted or field_of(value)):
            found.missing.append(value)


def _swap(old: str, new: str, icp: Icp, found: Edits) -> None:
    bare = _values(old)
    after = _without(bare[0], icp, None) if bare else {}
    for name, kept in after.items():
        values = _sizes(new) if name == "sizes" else clean(name, _values(new))
        found.icp[name] = clean(name, [*kept, *values])
    if bare and not after and field_of(bare[0]):
        found.missing.append(bare[0])


def _without(value: str, icp: Icp, hinted: str | None) -> dict[str, list[str]]:
    """Return the fields that have a value, without it."""
    every: dict[str, Any] = {**icp}
    wanted = _significant(value)
    result = {}
    for name in (hinted,) if hinted else FIELDS:
        # `food` means `Food distribution`; `wholesale of food` means `wholesale`.
        kept = [
            each
            for each in every[name]
            if not (wanted and (wanted <= _significant(each) or _significant(each) <= wanted))
        ]
        if len(kept) < len(every[name]):
            result[name] = kept
    return result


def _significant(text: str) -> set[str]:
    words = re.findall(r"[^\W_]+", text.casefold())
    return {word.removesuffix("s") for word in words if word not in ("of", "and", "the", "in")}


def _hinted(text: str) -> tuple[str | None, str]:
    hint = _HINT.fullmatch(text.strip())
    if hint is None:
        return None, text
    return next((each for each in FIELDS if hint[each]), None), hint["rest"].strip(" :")


def _values(text: str) -> list[str]:
    found = (_bare(each) for each in re.split(r" ?(?:[,/]|\band\b|\bund\b|\bet\b|\by\b|&) ?", text))
    return [each for each in found if each and not _POINTING.match(each)]


def _bare(text: str) -> str:
    text, before = (
        text.strip(" .!?\"'\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}"),
        "",
    )
    while text != before:
        before, text = text, _ARTICLE.sub("", text).strip()
    return re.sub(r" (?:companies|firms|businesses|only)$", "", text, flags=re.IGNORECASE)


def _sizes(text: str) -> list[str]:
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", text)
    if least := _ATLEAST.search(plain):
        return clean("sizes", [f"{least[1]}+"])
    if most := _ATMOST.search(plain):
        return clean("sizes", [f"1-{most[1]}"])
    return clean("sizes", [plain])
