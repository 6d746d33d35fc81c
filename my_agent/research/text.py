"""Text: sentences with their positions, and words and numbers in a form that can be compared."""

import re
from dataclasses import dataclass
from functools import lru_cache


def listed(words: str) -> list[str]:
    """Return the words of a text that only lists words."""
    return words.split()


# fmt: off
NEGATIONS = frozenset(listed(
    "no not never none without neither nor cannot n't nothing nobody nowhere lacks lack "
    "lacking fails fail failed hardly barely"
)
)
HEDGES = frozenset(listed(
    "may might could would should possibly probably perhaps reportedly allegedly rumoured "
    "rumored expected expects planned plans plan intends hopes if unless claims claim claimed "
    "alleges supposedly formerly previously former until once unlikely potentially proposed "
    "considering considers denied denies false wrong hypothetically some few many most "
    "several sometimes rarely often usually only expect expects believe believes predict "
    "predicts doubt doubts doubted deny according except allege alleged questions questioned"
)
)
# Behind a claim they narrow it: "14 hours with the screen off", "schools that pay for a year".
CONDITIONS = frozenset(listed(
    "with without that who whose which if when whenever unless except provided than less more "
    "fewer during while where"
)
)
QUALIFIERS = frozenset(listed(
    "about around approximately roughly nearly almost over under above below least most more "
    "less fewer up to exceeding exceeds maximum minimum start starts started starting begin "
    "begins"
)
)
CONJUNCTIONS = frozenset(listed(
    "and or but while whereas although though than versus vs ; :"
))
STOPWORDS = frozenset(listed(
    "a an the of in on at to for from by with as is are was were be been being has have had "
    "do does did it its this that these those which who whom whose will shall can also both "
    "there their they them he she his her we our you your i into onto per each very just so "
    "such then thus too own same other another any all"
)
)
_NUMBER_WORDS = {
    word: str(number) for number, word in enumerate(
        listed(
    "zero - two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty"
)
    ) if word != "-"
}
_SCALES = {
    "thousand": 10**3, "k": 10**3, "million": 10**6, "mn": 10**6, "m": 10**6,
    "billion": 10**9, "bn": 10**9, "b": 10**9, "trillion": 10**12,
}
_SYNONYMS = {
    "costs": "price", "cost": "price", "priced": "price", "prices": "price", "sells": "price",
    "launched": "release", "released": "release", "releases": "release", "launch": "release",
    "founded": "found", "established": "found", "employees": "staff", "employs": "staff",
    "percent": "%", "percentage": "%", "usd": "$", "dollars": "$", "dollar": "$", "eur": "€",
    "euros": "€", "euro": "€", "gbp": "£", "pounds": "£", "pound": "£", "jan": "january",
    "feb": "february", "mar": "march", "apr": "april", "jun": "june", "jul": "july",
    "aug": "august", "sep": "september", "sept": "september", "oct": "october",
    "nov": "november", "dec": "december",
}
MONTHS = (
    listed(
    "january february march april may june july august september october november december"
)
)
# fmt: on
_MONTH = "|".join(MONTHS)
_ISO_DATE = re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b")
_US_DATE = re.compile(rf"\b({_MONTH})\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(\d{{4}})\b", re.IGNORECASE)
_ORDINAL_DAY = re.compile(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th)(?=\s+(?:of\s+)?(?:{_MONTH})\b)", re.IGNORECASE
)
_TOKEN = re.compile(
    r"(?P<number>\d+(?:[.,]\d+)*)(?P<scale>\s?(?:k|m|bn|b|mn)\b)?"
    r"|(?P<symbol>[$€£¥%;:])"
    r"|(?P<word>[^\W\d_](?:[\w]|['\u2019.\-&+/](?=\w))*[+#]*)",
    re.IGNORECASE,
)
_END = re.compile(
    r"(?<=[.!?])[\"'”\u2019)\]]*+\s++(?=[\"'“\u2018(\[]*+[\w*#-])|(?<=[。\uff01\uff1f])"
    r"|(?:(?<!\s)[^\S\n]++)?\n\s*+"
)
# A full stop after these does not end a sentence.
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|mr|mrs|ms|dr|inc|ltd|co|corp|no|approx|est|st|u\.s|u\.k)|\b[A-Z])\.$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Token:
    """A word, number or symbol.

    Attributes:
        form: what is compared.
        raw: as written.
        kind: "number", "name", "word", "symbol" or "function".
    """

    form: str
    raw: str
    kind: str


@dataclass(frozen=True)
class Sentence:
    """A sentence; `text[start:end]` of the page is its text."""

    text: str
    start: int
    end: int


def sentences(text: str) -> list[Sentence]:
    """Return the sentences of a text, each on its own line or up to its full stop."""
    found: list[Sentence] = []
    start = 0
    for match in _END.finditer(text):
        piece = text[start : match.start()]
        if "\n" not in match[0] and _ABBREVIATION.search(piece):
            continue
        _add(found, text, start, match.start())
        start = match.end()
    _add(found, text, start, len(text))
    return found


def _add(found: list[Sentence], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    left = len(piece) - len(piece.lstrip(" \t\r\n*#>•-|"))
    stripped = piece[left:].rstrip(" \t\r\n|")
    if stripped:
        found.append(Sentence(stripped, start + left, start + left + len(stripped)))


@lru_cache(maxsize=8192)
def tokens(text: str) -> tuple[Token, ...]:
    """Return the tokens of a text; dates and numbers are in one form."""
    text = text.replace("\u2019", "'").replace("\u00a0", " ")
    text = _ISO_DATE.sub(_spelled, text)
    text = _US_DATE.sub(r"\2 \1 \3", text)
    text = _ORDINAL_DAY.sub(r"\1", text)
    text = re.sub(r"\bcan't\b|\bcannot\b", "can not", text, flags=re.IGNORECASE)
    text = re.sub(r"n't\b", " not", text)
    found: list[Token] = []
    begins = True
    for match in _TOKEN.finditer(text):
        token = _token(match, begins)
        begins = match[0] == ":" or text[match.end() : match.end() + 1] in (".", "!", "?", "\n")
        scale = _SCALES.get(token.form) if token.kind == "word" else None
        if scale is not None and found and found[-1].kind == "number" and len(token.raw) > 2:
            last = found.pop()
            token = Token(_plain(float(last.form) * scale), last.raw + token.raw, "number")
        found.append(token)
    return tuple(found)


def _token(match: re.Match[str], begins: bool) -> Token:
    raw = match[0]
    if match["number"]:
        scale = (match["scale"] or "").strip().lower()
        value = float(_digits(match["number"])) * _SCALES.get(scale, 1)
        return Token(_plain(value), raw, "number")
    if match["symbol"]:
        return Token(raw, raw, "symbol")
    lower = raw.lower()
    if lower in _NUMBER_WORDS:
        return Token(_NUMBER_WORDS[lower], raw, "number")
    if lower in STOPWORDS:
        return Token(lower, raw, "function")
    if lower in NEGATIONS or lower in CONJUNCTIONS:
        return Token("not" if lower in NEGATIONS else lower, raw, "function")
    form = _SYNONYMS.get(lower) or stem(lower)
    if form in "$€£%":
        return Token(form, raw, "symbol")
    # A capital at the beginning of a sentence says nothing.
    is_name = any(letter.isupper() for letter in (raw[1:] if begins else raw))
    return Token(form, raw, "name" if is_name else "word")


def _digits(number: str) -> str:
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", number):
        return number.replace(",", "")
    if re.fullmatch(r"\d+,\d+", number):
        return number.replace(",", ".")
    if re.fullmatch(r"\d+(\.\d+)?", number):
        return number
    # A version or an address: a number of its own.
    return re.sub(r"\D", "", number)


def _plain(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(round(value, 6))


def _spelled(match: re.Match[str]) -> str:
    month = int(match[2])
    if not 1 <= month <= 12:
        return match[0]
    return f"{int(match[3])} {MONTHS[month - 1]} {match[1]}"


def stem(word: str) -> str:
    """Return a word without the endings of plural and possessive."""
    word = word.removesuffix("'s")
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def content(text: str) -> list[str]:
    """Return the forms of the words and numbers of a text that carry meaning."""
    return [each.form for each in tokens(text) if each.kind in ("number", "name", "word")]


def words(text: str) -> set[str]:
    """Return the forms of the words of a text that carry meaning, without numbers."""
    return {each.form for each in tokens(text) if each.kind in ("name", "word")}


def numbers(text: str) -> list[str]:
    """Return the numbers of a text, each in one form."""
    return [each.form for each in tokens(text) if each.kind == "number"]


def names(text: str) -> set[str]:
    """Return the proper names of a text."""
    return {each.form for each in tokens(text) if each.kind == "name"}


def cut(text: str, length: int) -> str:
    """Return the text on one line, cut at a word so that it has at most `length` characters."""
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    return line[: length - 1].rsplit(" ", 1)[0].rstrip(",;:") + "…"
