"""Websites in free text: find them, and identify each company by its domain. Pure functions."""

import ipaddress
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from my_agent.web import websites as names

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

_DOTS = re.compile(r"(?<!\s)\s*+\b(?:dot|punkt|ponto)\b\s*", re.IGNORECASE)


class Mention(NamedTuple):
    """A website in a text: its URL, and the offsets of its first character and after its last."""

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


def spelled(value: str, quote: str) -> list[str]:
    """Return the websites of a value that a quote spells, also as `acme dot com`."""
    squeezed = re.sub(r"[\W_]+", "", _DOTS.sub(".", quote).casefold())
    written = {domain(each): each for each in websites(quote)}
    found = []
    for each in websites(value):
        name = domain(each)
        label = re.sub(r"[\W_]+", "", name.partition(".")[0])
        if name in written:
            found.append(written[name])
        elif len(label) > 2 and label in squeezed:
            found.append(each)
    return found


def distinct(urls: Iterable[str]) -> list[str]:
    """Return the first URL of each company, in order."""
    found: dict[str, str] = {}
    for url in urls:
        found.setdefault(domain(url), url)
    return list(found.values())


def domain(website: str) -> str:
    """Return the domain that identifies a website's company: the registrable one, in punycode.

    A host without one (an IP address, a local name) stands for itself, with its port.

    `my_agent/threads/context_key.py` identifies threads by the same rule, without the port.

    Raises:
        ValueError: the text contains no website.
    """
    found = _WEBSITE.search(website)
    host = _host(found["host"]) if found and len(website) <= names.MAX_LENGTH else None
    if found is None or host is None:
        raise ValueError(f"{website[:80]!r} is not a website such as example.com")
    return names.registrable(host) or host.removeprefix("www.") + (found["port"] or "")


def _website(found: re.Match[str]) -> str | None:
    if len(found[0]) > names.MAX_LENGTH:
        return None
    host = _host(found["host"])
    if host is None or not (found["scheme"] or names.registrable(host) or _is_address(host)):
        return None
    scheme = "http" if (found["scheme"] or "").lower().startswith("http:") else "https"
    path = (found["path"] or "").rstrip(".!?:")
    return f"{scheme}://{host}{found['port'] or ''}{'' if path == '/' else path}"


def _host(text: str) -> str | None:
    try:
        return names.host_name(text)
    except ValueError:
        return None


def _is_address(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
