"""Check that the built documentation loads nothing from other hosts: `python -m tools.offline site`."""

import re
import sys
from pathlib import Path

# What a browser fetches by itself. A link that a reader follows may lead anywhere.
_LOADED = re.compile(
    r"<(?:script|img|iframe|source|link(?![^>]*rel=\"?canonical))\b[^>]*?\b(?:src|href)=\"?"
    r"((?:https?:)?//[^\"\s>]+)"
)


def loaded_from_outside(site: Path) -> list[str]:
    """The addresses on other hosts that pages of `site` load, each with its page."""
    return [
        f"{page.relative_to(site)}: {address}"
        for page in sorted(site.rglob("*.html"))
        for address in _LOADED.findall(page.read_text())
    ]


def main() -> None:
    """Exit with 1 if a page of the folder named on the command line needs another host."""
    [folder] = sys.argv[1:]
    if not list(Path(folder).rglob("*.html")):
        sys.exit(f"{folder}: no page was built")
    if found := loaded_from_outside(Path(folder)):
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
