"""Addresses: which of them are on the public internet, and which redirects leave encryption.

It loads nothing of the platform, so graphs may import it.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

PRIVATE: tuple[Network, ...] = tuple(
    map(
        ip_network,
        (
            *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"),
            *("127.0.0.0/8", "::1/128"),
        ),
    )
)
"""Networks of an organisation or of this machine, which an operator may allow."""

SPECIAL: tuple[Network, ...] = tuple(
    map(
        ip_network,
        (
            *("0.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24"),
            *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
            # IPv6 below 2000::/3 is special: `::/96` embeds IPv4, `64:ff9b:1::/48` is local NAT64.
            # NAT64's own prefix, 64:ff9b::/96, is judged by the address inside.
            *("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "100::/8"),
            *("200::/7", "400::/6", "800::/5", "1000::/4"),
            # Protocol assignments with Teredo, documentation, 6to4.
            *("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"),
            # Everything above global unicast: segment routing, link-local, site-local, multicast.
            *("4000::/2", "8000::/2", "c000::/3", "e000::/4", "f000::/5", "f800::/6"),
            *("fe00::/7",),
        ),
    )
)
"""Networks that no server on the internet has."""

NAT64 = IPv6Network("64:ff9b::/96")


def is_public(address: Address) -> bool:
    """Return whether an address is on the public internet. Pure.

    A NAT64 address counts as the IPv4 address that it contains; hosts without IPv4 need it.
    """
    if address in NAT64:
        return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
    return address.is_global and not any(address in network for network in PRIVATE + SPECIAL)


def is_downgrade(response: "httpx.Response") -> bool:
    """Return whether a response redirects from https to http, where anybody on the way could answer.

    Raises:
        httpx.InvalidURL: its target is not a URL.
    """
    asked = response.request.url
    return (
        response.has_redirect_location
        and asked.scheme == "https"
        and asked.join(response.headers["location"]).scheme == "http"
    )
