"""Escaping: write words of foreign pages so that no markup results."""

import re
from urllib.parse import quote, urlsplit

# What may stay in the target of a link. `%` stays: addresses are encoded already.
_TARGET = "%/:?#[]@!$&'()*+,;=~-._"
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|<>~&$^=:@-])")
_SPACE = re.compile(r"\s+")


def inline(text: str) -> str:
    """Return a text as Markdown on one line that shows exactly these words."""
    line = _SPACE.sub(" ", text).strip()
    line = _SPECIAL.sub(lambda match: f"&#{ord(match[1])};", line)
    # A number with a full stop would begin a list.
    return re.sub(r"^(\d+)\.", r"\1&#46;", line)


def cell(text: str) -> str:
    """Return a text as the content of a table's cell."""
    return inline(text) or "-"


def link(url: str) -> str:
    """Return an address as a link; as words if it is no address of the web."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return inline(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return inline(url)
    # A Markdown parser decodes `&copy;` in the target, too.
    target = quote(url, safe=_TARGET).replace("&", "&amp;")
    return f"[{inline(url)}](<{target}>)"


def quoted(text: str) -> str:
    """Return a text as a block quote: each line is escaped for itself."""
    return "\n".join(f"> {inline(line)}" for line in text.splitlines() if line.strip())
