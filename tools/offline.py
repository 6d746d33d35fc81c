"""Check that the built documentation loads nothing from other hosts: `python -m tools.offline site`."""

import re
import sys
from pathlib import Path

# References that a browser fetches by itself. Links that a reader follows may lead to any host.
_LOADED = re.compile(
    r"<(?:script|img|iframe|source|link(?![^>]{0,500}rel=\"?canonical))\b[^>]{0,500}?\b(?:src|href)=\"?"
    r"((?:https?:)?//[^\"\s>]+)"
)


def find_external(site: Path) -> list[str]:
    """Find the addresses on other hosts that the pages of a site load.

    Args:
        site: The folder of the built site.

    Returns:
        One text for each address: the page and the address.
    """
    return [
        f"{page.relative_to(site)}: {address}"
        for page in sorted(site.rglob("*.html"))
        for address in _LOADED.findall(page.read_text())
    ]


def main() -> None:
    """Exit with 1 if a page of the folder named on the command line needs another host."""
    [folder] = sys.argv[1:]
    if not list(Path(folder).rglob("*.html")):
        sys.exit(f"{folder}: no HTML page found; build the site first")
    if found := find_external(Path(folder)):
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
