"""Storable: texts that every database can store."""

import re

# Postgres cannot store NUL, and no database a lone surrogate.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def storable(text: str) -> str:
    """Return a text that every database can store: without NUL and lone surrogates."""
    return _UNSTORABLE.sub("", text)


def one_line(text: str | None) -> str:
    """Return a text on one line that every database can store."""
    return " ".join(storable(text or "").split())
