"""Message parser: find websites, customers, ICP fields and commands in a message. Pure functions."""

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Literal, cast

from typing_extensions import TypedDict

from my_agent.icp_finder.model import SIZES, Icp
from my_agent.icp_finder.reading import vocabulary
from my_agent.icp_finder.search import ssic
from my_agent.icp_finder.sites import Mention, distinct, mentions, websites

Wish = Literal["enrich", "rerun"]

MAX_TEXT = 20_000
MAX_WORDS = 12
MAX_WORD_LENGTH = 80

_OWN = re.compile(
    r"\b(?:our|my)\s+(?:\w+\s+){0,2}?(?:web\s?site|site|page|homepage|domain|company|url)\b"
    r"|\bwe(?:'re|\s+are)\b|\bwe\s+(?:have\s+)?moved\b|\b(?:web\s?site|company)\s*(?:is|=|:)",
    re.IGNORECASE,
)
_OWN_AFTER = re.compile(r"\s*(?:is|=|\()\s*(?:now\s+)?(?:our|my|us|ours|mine)\b", re.IGNORECASE)
_CUSTOMERS = re.compile(r"\b(?:customers?|clients?|buyers?)\b", re.IGNORECASE)
_CUSTOMERS_AFTER = re.compile(
    r"\s*(?:is|are|as|to)\s+(?:\w+\s+){0,3}?(?:customers?|clients?|buyers?)\b", re.IGNORECASE
)
_REPLACE = re.compile(r"\b(?:replace|swap|exchange)\s*$", re.IGNORECASE)
_BY = re.compile(r"\s*(?:with|by|for)\s*$", re.IGNORECASE)
_INSTEAD = re.compile(r"\s*(?:instead\s+of|in\s+place\s+of)\s*$", re.IGNORECASE)

_FIELDS: dict[str, str] = {
    "industries": r"industr(?:y|ies)|sectors?|verticals?",
    "sizes": r"(?:company\s+)?sizes?|employees|head\s?count",
    "regions": r"regions?|countr(?:y|ies)|locations?|markets?",
    "keywords": r"keywords?",
}
_LABEL = re.compile(
    r"\b(?:"
    + "|".join(f"(?P<{name}>{words})" for name, words in _FIELDS.items())
    + r")\s*(?P<sign>:|=|\bare\b|\bis\b)\s*",
    re.IGNORECASE,
)
# The comma of `1,000` separates nothing.
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_SEPARATOR = re.compile(r"[,;/|•\n]|\band\b|&", re.IGNORECASE)
# Values in quotes may contain separators and full stops.
_QUOTED = re.compile(r'"([^"\n]*)"')
_END_OF_FIELD = re.compile(r"[;\n]|\.(?:\s|$)")
_RANGE = re.compile(r"([0-9][0-9,.]*)\s*(?:-|\u2013|to)\s*([0-9][0-9,.]*)|([0-9][0-9,.]*)\s*(\+?)")
_ANY = frozenset({"any", "all", "none", "everywhere", "anything", "-"})

_WISHES: dict[Wish, re.Pattern[str]] = {
    "enrich": re.compile(
        r"enrich(?:ment)?\b(?!\s+(?:is|was|has|data|results?|looks?|seems?)\b)"
        r"|(?:run|start|do|begin|continue|resume|retry|repeat)\s+(?:the\s+|with\s+|an?\s+)?enrich\w*"
        r"|(?:reichere|anreichern)\b|enrichis(?:sez)?\b|enriquece[rn]?\b|enriqueça\b",
        re.IGNORECASE,
    ),
    "rerun": re.compile(
        r"re-?\s?run\b(?!\s+(?:is|was|has)\b)|refresh(?:\s+(?:the|my|our|them|it|discovery|candidates"
        r"|list|search)\b|$)|(?:search|discover|look)\s+(?:(?:the\s+web|for\s+\w+)\s+)?again\b"
        r"|(?:run\s+)?(?:the\s+)?discovery\s+again\b|(?:run|repeat|start)\s+(?:the\s+|a\s+)?(?:new\s+)?"
        r"(?:search|discovery)\b|suche?\s+(?:noch\s?mal|erneut)|busca\s+de\s+nuevo"
        r"|busque\s+de\s+novo|relance\b|cari\s+lagi\b",
        re.IGNORECASE,
    ),
}
_NEGATION = re.compile(r"\b(?:no|not|don'?t|never|without)\b", re.IGNORECASE)


class ParsedMessage(TypedDict):
    """The content of a message.

    Attributes:
        website: the website that the message calls the company's own.
        sites: the other websites, one per company.
        customers: whether the message calls the first of `sites` a customer.
        swaps: pairs of customers' websites: the one to remove and its replacement.
        icp: the ICP fields that the message gives; an empty list means any.
        wish: the action that the message asks for.
        text: the message, truncated.
    """

    website: str | None
    sites: list[str]
    customers: bool
    swaps: list[list[str]]
    icp: dict[str, list[str]]
    wish: Wish | None
    text: str


NO_CONTENT: ParsedMessage = {
    "website": None,
    "sites": [],
    "customers": False,
    "swaps": [],
    "icp": {},
    "wish": None,
    "text": "",
}


def parse_text(text: str) -> ParsedMessage:
    """Parse the text of a message."""
    text = text[:MAX_TEXT]
    swaps, rest = _swaps(text, list(mentions(text)))
    own, others = _own(text, rest)
    return {
        "website": own,
        "sites": distinct(website for website, _ in others),
        "customers": bool(others) and others[0][1],
        "swaps": swaps,
        "icp": fields(text),
        "wish": _wish(text),
        "text": text,
    }


def parse_reply(values: Mapping[str, Any]) -> ParsedMessage:
    """Parse a structured reply with `website`, `customers`, and `icp` or the ICP's fields
    themselves.
    """
    icp = values.get("icp", values)
    lists = {
        field: clean(field, given)
        for field in _FIELDS
        if isinstance(icp, Mapping) and (given := _texts(icp.get(field))) is not None
    }
    website = [each.website for each in mentions(" ".join(_texts(values.get("website")) or ()))]
    customers = _texts(values.get("customers")) or []
    return {
        **NO_CONTENT,
        "website": website[0] if website else None,
        "sites": websites("\n".join(customers)[:MAX_TEXT]),
        "customers": bool(customers),
        "icp": lists,
    }


def has_content(parsed: ParsedMessage) -> bool:
    """Return whether the parsed message contains anything besides unparsed text."""
    return {**parsed, "text": "", "customers": False} != NO_CONTENT


def combine(first: ParsedMessage, then: ParsedMessage) -> ParsedMessage:
    """Combine two messages; the second one takes precedence."""
    again = bool(then["sites"])
    return {
        "website": then["website"] or first["website"],
        "sites": then["sites"] if again else first["sites"],
        "customers": then["customers"] if again else first["customers"],
        "swaps": [*first["swaps"], *then["swaps"]],
        "icp": {**first["icp"], **then["icp"]},
        "wish": then["wish"] or first["wish"],
        "text": then["text"],
    }


def fields(text: str) -> dict[str, list[str]]:
    """Extract labelled ICP fields: `industries: logistics, food; regions: Singapore`.

    A sentence such as `the regions are Singapore and Malaysia` counts only if its values look like
    values of the field: `the regions are fine` gives none. A question gives none.
    """
    labels = list(_LABEL.finditer(text))
    found: dict[str, list[str]] = {}
    ends = [*(label.start() for label in labels[1:]), len(text)]
    for label, end in zip(labels, ends, strict=False):
        field = next(name for name in _FIELDS if label[name])
        values = parse_values(field, _field_text(text[label.end() : end]))
        is_sentence = label["sign"] not in (":", "=")
        if is_sentence and (vocabulary.is_question(text) or not _plausible(field, values)):
            continue
        found[field] = values
    return found


def _field_text(text: str) -> str:
    """Return the part of a text up to the end of a field. A value in quotes is not cut."""
    ends = (each.start() for each in _END_OF_FIELD.finditer(text))
    quotes = [each.span() for each in _QUOTED.finditer(text)]
    for end in ends:
        if not any(first < end < last for first, last in quotes):
            return text[:end]
    return text


def _plausible(field: str, values: list[str]) -> bool:
    """Return whether the words after `is` or `are` name values of a field."""
    if field == "regions":
        return bool(values) and all(value[:1].isupper() for value in values)
    if field == "industries":
        return bool(values) and all(ssic.codes([value]) for value in values)
    return field == "sizes" and bool(values)


def parse_values(field: str, text: str) -> list[str]:
    """Split the value of an ICP field into a list; `any` gives an empty list.

    A value in quotes is taken whole: `"Food, drinks and tobacco", logistics`.
    """
    if text.strip().lower() in _ANY:
        return []
    quoted = _QUOTED.findall(text)
    rest = _SEPARATOR.split(_THOUSANDS.sub("", _QUOTED.sub(",", text)))
    return clean(field, [*quoted, *rest])


def clean(field: str, words: Iterable[str]) -> list[str]:
    """Normalize the values of a field, each once, and drop invalid ones."""
    if field == "sizes":
        return _sizes(words)
    tidy = (" ".join(word.split()).strip(" .:!?\"'") for word in words)
    unique = {word.casefold(): word for word in tidy if 1 < len(word) <= MAX_WORD_LENGTH}
    return list(unique.values())[:MAX_WORDS]


def merge_icp(icp: Icp | None, given: Mapping[str, list[str]]) -> Icp:
    """Return the ICP with the given fields replaced."""
    old: Any = icp or {"industries": [], "sizes": [], "regions": [], "keywords": []}
    new: Any = {**old, **given}
    return cast("Icp", new)


def set_fields(icp: Icp) -> dict[str, list[str]]:
    """Return the ICP fields that are not empty, that is, not `any`."""
    every: dict[str, Any] = {**icp}
    return {field: given for field, given in every.items() if given}


def _texts(value: Any) -> list[str] | None:
    """Return a text or a list of texts as a list; None for anything else."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return None
    return [text[:MAX_TEXT] for text in texts]


def _sizes(words: Iterable[str]) -> list[str]:
    """Return the ranges of `SIZES` that overlap the given numbers of employees."""
    touched = set()
    for word in words:
        for found in _RANGE.finditer(word):
            low = _number(found[1] or found[3])
            high = _number(found[2]) if found[2] else 10**9 if found[4] else low
            touched |= {size for size in SIZES if _touches(size, low, high)}
    return [size for size in SIZES if size in touched]


def _touches(size: str, low: int, high: int) -> bool:
    first, _, last = size.rstrip("+").partition("-")
    top = int(last) if last else 10**9
    return int(first) <= low <= top if low == high else low < top and high > int(first)


def _number(text: str) -> int:
    # Nine digits exceed any company's size, and int() rejects very long strings.
    return int(re.sub(r"\D", "", text)[:9] or 0)


def _wish(text: str) -> Wish | None:
    """Return the action that a message asks for. A text that only mentions an action asks nothing."""
    text = vocabulary.plain(text)
    if _NEGATION.search(text) or vocabulary.is_question(text) or "?" in text[:-1]:
        return None
    for clause in re.split(r"[.;!\n]", text):
        asked = vocabulary.POLITE.sub("", clause, count=1).strip(" ?,")
        for wish, words in _WISHES.items():
            if words.match(asked):
                return wish
    return None


def _swaps(text: str, found: list[Mention]) -> tuple[list[list[str]], list[Mention]]:
    """Return the pairs of `replace a.com with b.com`, and the mentions that are in no pair."""
    swaps: list[list[str]] = []
    paired: set[int] = set()
    for at, (one, two) in enumerate(pairwise(found)):
        between = text[one.end : two.start]
        if _BY.fullmatch(between) and _REPLACE.search(text[: one.start]):
            swaps.append([one.website, two.website])
        elif _INSTEAD.fullmatch(between):
            swaps.append([two.website, one.website])
        else:
            continue
        paired |= {at, at + 1}
    return swaps, [each for at, each in enumerate(found) if at not in paired]


def _own(text: str, found: list[Mention]) -> tuple[str | None, list[tuple[str, bool]]]:
    """Return the company's own website, and the others with a flag: called a customer."""
    own: str | None = None
    others = []
    before = 0
    for mention in found:
        lead, after = text[before : mention.start], text[mention.end : mention.end + 60]
        mine = _OWN.search(lead) or _OWN_AFTER.match(after)
        theirs = _CUSTOMERS.search(lead) or _CUSTOMERS_AFTER.match(after)
        if own is None and mine and not theirs:
            own = mention.website
        else:
            others.append((mention.website, theirs is not None))
        before = mention.end
    return own, others
