"""Websites in free text: find them, and identify each company by its domain. Pure functions."""

import ipaddress
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import idna

if TYPE_CHECKING:
    from tldextract import TLDExtract

MAX_LENGTH = 2048
# Matches a scheme or a dotted name, with port and path: `acme.com`, `http://10.0.0.1:80/shop`.
_WEBSITE = re.compile(
    r"""(?<![\w@.-])                            # no address of a mailbox
    (?P<scheme>https?:/*)?
    (?P<host>\[[0-9a-f:.]+\]|localhost|[\w-]+(?:\.[\w-]+)+|(?<=/)[\w-]+)\.?
    (?P<port>:[0-9]{1,5})?
    (?P<path>/[^\s,;<>"'()\[\]]*)?
    (?![\w@])""",
    re.IGNORECASE | re.VERBOSE,
)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")


@dataclass(frozen=True)
class Mention:
    """A website in a text.

    Attributes:
        website: the URL.
        start: offset of the first character.
        end: offset after the last character.
    """

    website: str
    start: int
    end: int


def mentions(text: str) -> Iterator[Mention]:
    """Yield the websites in a text, in order.

    A name without a scheme counts only if it ends in a public suffix. So `e.g.` and `Node.js` are
    not websites.
    """
    for found in _WEBSITE.finditer(text):
        website = _website(found)
        if website is not None:
            yield Mention(website, found.start(), found.end())


def websites(text: str) -> list[str]:
    """Return the websites in a text, one per company."""
    return distinct(mention.website for mention in mentions(text))


def distinct(urls: Iterable[str]) -> list[str]:
    """Return the first URL of each company, in order."""
    found: dict[str, str] = {}
    for url in urls:
        found.setdefault(domain(url), url)
    return list(found.values())


def domain(website: str) -> str:
    """Return the domain that identifies a website's company: the registrable one, in punycode.

    A host without one (an IP address, a local name) stands for itself, with its port.

    `hooks/context_key.py` identifies threads by the same rule. Neither module may import the other;
    a test compares them.

    Raises:
        ValueError: the text contains no website.
    """
    found = _WEBSITE.search(website)
    host = _host(found["host"]) if found and len(website) <= MAX_LENGTH else None
    if found is None or host is None:
        raise ValueError(f"{website[:80]!r} is not a website such as example.com")
    registrable: str = _extract()(host).top_domain_under_public_suffix
    return registrable or host.removeprefix("www.") + (found["port"] or "")


def readable(domain: str) -> str:
    """Return a domain in Unicode instead of punycode."""
    try:
        return idna.decode(domain) if "xn--" in domain else domain
    except idna.IDNAError:
        return domain


def _website(found: re.Match[str]) -> str | None:
    if len(found[0]) > MAX_LENGTH:
        return None
    host = _host(found["host"])
    if host is None or not (found["scheme"] or _is_public(host) or _is_address(host)):
        return None
    scheme = "http" if (found["scheme"] or "").lower().startswith("http:") else "https"
    path = (found["path"] or "").rstrip(".!?:")
    return f"{scheme}://{host}{found['port'] or ''}{'' if path == '/' else path}"


def _host(text: str) -> str | None:
    if text.startswith("["):
        try:
            return f"[{ipaddress.IPv6Address(text[1:-1])}]"
        except ValueError:
            return None
    try:
        host = text.lower() if text.isascii() else idna.encode(text, uts46=True).decode("ascii")
    except idna.IDNAError:
        return None
    fits = len(host) <= 253 and all(_LABEL.fullmatch(label) for label in host.split("."))
    return host if fits else None


def _is_public(host: str) -> bool:
    return bool(_extract()(host).top_domain_under_public_suffix)


def _is_address(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1)
def _extract() -> "TLDExtract":
    # Imported late: the suffix list is slow to load and would delay every start.
    from tldextract import TLDExtract

    # Use the list inside the package: no network, no cache on disk. Private suffixes count, so that
    # two shops on one hosting platform are two companies.
    return TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)
