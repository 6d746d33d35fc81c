"""Websites: their host names, and the registrable domains that distinguish companies.

All functions are pure.
"""

import ipaddress
import re
from functools import lru_cache
from typing import TYPE_CHECKING

import idna

if TYPE_CHECKING:
    from tldextract import TLDExtract

MAX_LENGTH = 2048
"""Maximum length of a website, in characters."""

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")


def host_name(text: str) -> str:
    """Write a host name in lower case and punycode, without a period at its end.

    Args:
        text: The host alone, without scheme, port and path. An IPv6 address is in brackets.

    Raises:
        ValueError: the text is not a valid host name.
    """
    if text.startswith("["):
        return f"[{ipaddress.IPv6Address(text[1:].partition(']')[0])}]"
    if not text.isascii():
        text = idna.encode(text.rstrip(".。"), uts46=True).decode("ascii")
    host = text.rstrip(".").lower()
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        raise ValueError(f"{text[:80]!r} is not a valid host name")
    return host


def registrable(host: str) -> str:
    """Find the registrable domain of a host name. Return an empty text if there is none."""
    found: str = _extract()(host).top_domain_under_public_suffix
    return found


def readable(domain: str) -> str:
    """Convert a domain from punycode to the spelling that people read."""
    try:
        return idna.decode(domain) if "xn--" in domain else domain
    except idna.IDNAError:
        return domain


@lru_cache(maxsize=1)
def _extract() -> "TLDExtract":
    # Imported here because reading the list of suffixes is slow and would delay the start.
    from tldextract import TLDExtract

    # Use the list inside the package: no network, no cache on disk. Private suffixes count, so
    # that two shops on one shop platform are two companies.
    return TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)
