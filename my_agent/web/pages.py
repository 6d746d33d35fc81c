"""Pages: read a website's page within a time, and extract its name, its text and where to read on."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urljoin

from my_agent import parsing
from my_agent.storable import one_line
from my_agent.web import sites
from my_agent.web.fetch import SiteUnreadable, fetch, shown_host
from my_agent.web.websites import readable
from threadhold.addresses import Network

ABOUT_LENGTH = 2000
TEXT_LENGTH = 200_000
NAME_LENGTH = 120
# If the main part is shorter than this, the whole text is used, as many home pages need.
MIN_MAIN_TEXT = 200
# Elements whose text is not shown.
HIDDEN = frozenset(("script", "style", "template", "noscript", "svg"))
# Links to pages with contacts and numbers, the most useful kind first.
FURTHER = {
    "contact": re.compile(r"contact|kontakt|impressum|get in touch|reach us|find us|locations"),
    "about": re.compile(r"about|who we are|our story|our company|our team|\u00fcber uns|ueber-uns"),
}
# Separates the parts of a page's title.
_TITLE_SEPARATOR = re.compile(r" [|\u00b7\u00bb\u2013\u2014-] |: ")


@dataclass(frozen=True)
class Page:
    """A page that was read."""

    website: str  # the requested URL
    name: str  # name in the title, or else the domain
    about: str  # its main text, shortened
    # All of its text, shortened, with the addresses of its `mailto:` and `tel:` links.
    text: str
    further: tuple[str, ...] = ()  # addresses of the site's contact and about pages


async def read(website: str, networks: Sequence[Network], seconds: float) -> Page:
    """Read a page, such as the first one of `https://acme.com`.

    Args:
        website: its URL.
        networks: private networks whose pages may be read.
        seconds: maximum time.

    Raises:
        SiteRefused: the address is private, or not http or https, or redirects from https to http.
        SiteUnreadable: the website is down, too slow, or has no text.
    """
    host = shown_host(website)
    try:
        async with asyncio.timeout(seconds):
            html = await fetch(website, networks)
            # A slow page meets the time of the block first.
            page = await parsing.run(_read, website, html, seconds=seconds)
    except parsing.Unreadable as error:
        raise SiteUnreadable(f"The page of {host} cannot be read: {error}.") from error
    except TimeoutError as error:
        late = f"{host} took more than {seconds:g} seconds."
        raise SiteUnreadable(late, passing=True) from error
    if page is None:
        raise SiteUnreadable(f"{host} has no text that can be read.")
    return page


def _read(website: str, html: bytes) -> Page | None:
    """Parse a page; for a worker process. Return None if it has no text."""
    # Imported late: the import is slow and would delay every start.
    from trafilatura import bare_extraction, html2txt, load_html

    found = bare_extraction(html, url=website, favor_recall=True, with_metadata=True)
    main = description = ""
    if found is not None and not isinstance(found, dict):
        main, description = one_line(found.text), one_line(found.description)
    tree = load_html(html)
    # `html2txt` leaves out footers, where contacts are.
    text = one_line(" ".join(_texts(tree))) if tree is not None else one_line(html2txt(html))
    about = main if len(main) >= MIN_MAIN_TEXT else text or main
    if description and description not in about:
        about = f"{description} {about}"
    if not about.strip():
        return None
    title = one_line(tree.findtext(".//title")) if tree is not None else ""
    name = name_in(title) or readable(sites.domain(website))
    further = tuple(_further(tree, website)) if tree is not None else ()
    return Page(website, name, about[:ABOUT_LENGTH].strip(), text[:TEXT_LENGTH], further)


def _texts(tree: Any) -> Iterator[str]:
    """Yield the texts of a page, and what its `mailto:` and `tel:` links call."""
    for element in tree.iter():
        hidden = not isinstance(element.tag, str) or element.tag in HIDDEN
        if not hidden and element.text:
            yield element.text
        href = "" if hidden else str(element.get("href") or "")
        scheme, _, called = href.partition(":")
        if scheme.lower() in ("mailto", "tel"):
            # `Tel` tells `contacts` that the digits are a telephone number.
            lead = "Tel " if scheme.lower() == "tel" else ""
            yield f" {lead}{unquote(called.partition('?')[0]).replace(',', ' ')} "
        if element.tail:
            yield element.tail


def _further(tree: Any, website: str) -> list[str]:
    """Return the contact page and the about page that a page links to."""
    found: dict[str, str] = {}
    for element in tree.iter("a"):
        href = str(element.get("href") or "")
        label = f"{href} {one_line(''.join(element.itertext()))}".lower()
        kind = next((kind for kind, pattern in FURTHER.items() if pattern.search(label)), None)
        url = urljoin(website, href).partition("#")[0]
        if kind is not None and kind not in found and _is_further(url, website):
            found[kind] = url
    return [found[kind] for kind in FURTHER if kind in found]


def _is_further(url: str, website: str) -> bool:
    """Return whether an address is another page of a website."""
    if not url.startswith(("http://", "https://")) or url.rstrip("/") == website.rstrip("/"):
        return False
    try:
        return sites.domain(url) == sites.domain(website)
    except ValueError:
        return False


def name_in(title: str) -> str:
    """Return the company's name in a title such as `Home | Acme`; empty if there is none."""
    parts = [part.strip() for part in _TITLE_SEPARATOR.split(title)]
    said = [each for each in parts if each.lower() not in ("", "home", "homepage", "welcome")]
    return said[0][:NAME_LENGTH] if said else ""
