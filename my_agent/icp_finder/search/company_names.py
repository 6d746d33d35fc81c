"""Company names: remove the legal form of a name. Pure functions."""

import re

_LEGAL_FORM = re.compile(
    r"\b(pte|private|limited|ltd|llp|lp|inc|corp|corporation|co|gmbh|company|plc|sdn|bhd)\b\.?",
    re.IGNORECASE,
)


def plain(name: str) -> str:
    """Return a company's name without its legal form."""
    return " ".join(_LEGAL_FORM.sub(" ", name).split())
