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
