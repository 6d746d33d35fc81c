"""Websites: their host names, and the domains that tell companies apart. Pure."""

import ipaddress
import re
from functools import lru_cache
from typing import TYPE_CHECKING

import idna

if TYPE_CHECKING:
    from tldextract import TLDExtract

MAX_LENGTH = 2048
"""Characters of a website."""

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")


def host_name(text: str) -> str:
    """Write a host name in lower case and punycode, without a period at its end.

    Args:
        text: The host alone. An IPv6 address is in brackets.

    Raises:
        ValueError: it is no host name.
    """
    if text.startswith("["):
        return f"[{ipaddress.IPv6Address(text[1:].partition(']')[0])}]"
    if not text.isascii():
        text = idna.encode(text.rstrip(".。"), uts46=True).decode("ascii")
    host = text.rstrip(".").lower()
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        raise ValueError(f"{text[:80]!r} is no host name")
    return host


def registrable(host: str) -> str:
    """Find the registrable domain of a host name; empty where it has none."""
    found: str = _extract()(host).top_domain_under_public_suffix
    return found


def readable(domain: str) -> str:
    """Write a domain as people do, without punycode."""
    try:
        return idna.decode(domain) if "xn--" in domain else domain
    except idna.IDNAError:
        return domain


@lru_cache(maxsize=1)
def _extract() -> "TLDExtract":
    # Here and not above: the list of suffixes takes its time, which a start would wait for.
    from tldextract import TLDExtract

    # The list inside the package: no network, no cache on disk. Private suffixes count, so that
    # two shops on one platform are two companies.
    return TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)
