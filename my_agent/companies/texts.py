"""Texts about companies: their words, and their names without the legal form. Pure functions."""

import re

_WORD = re.compile(r"\w{4,}")
_LEGAL_FORM = re.compile(
    r"\b(pte|private|limited|ltd|llp|lp|inc|corp|corporation|co|gmbh|company|plc|sdn|bhd)\b\.?",
    re.IGNORECASE,
)


def words(text: str) -> set[str]:
    """Return the longer words of a text, case-folded. Short ones say little."""
    return set(_WORD.findall(text.casefold()))


def plain_name(name: str) -> str:
    """Return a company's name without its legal form."""
    return " ".join(_LEGAL_FORM.sub(" ", name).split())


def carries(domain: str, name: str) -> bool:
    """Return whether the first label of a domain and a company's name contain one another."""
    label, plain = _compact(domain.partition(".")[0]), _compact(plain_name(name))
    return len(label) > 3 and (label in plain or plain in label)


def _compact(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())
