"""Escaping: words of foreign pages that must stay words."""

import re

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|<>~&$^=:@-])")
_SPACE = re.compile(r"\s+")


def inline(text: str) -> str:
    """Return a text as Markdown on one line that shows exactly these words."""
    line = _SPACE.sub(" ", text).strip()
    line = re.sub(r"^(\d+)([.)])", r"\1\\\2", line)
    return _SPECIAL.sub(lambda match: f"&#{ord(match[1])};", line)


def cell(text: str) -> str:
    """Return a text as the content of a table's cell."""
    return inline(text) or "-"


def quoted(text: str) -> str:
    """Return a text as a block quote: each line is escaped for itself."""
    return "\n".join(f"> {inline(line)}" for line in text.splitlines() if line.strip())
