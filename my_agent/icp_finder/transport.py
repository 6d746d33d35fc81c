"""The way out: connections to public addresses only.

Whoever names a website chooses what this server connects to. So each connection, those after
redirects too, goes to an address that was looked up and found to be public just before.
"""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

import httpx

from my_agent.icp_finder.settings import Network

NAT64 = IPv6Address("64:ff9b::")

Address = IPv4Address | IPv6Address


class PrivateAddressError(RuntimeError):
    """A host has an address that is not public.

    Attributes:
        host: its name.
    """

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} is at a private address")
        self.host = host


class CheckedTransport(httpx.AsyncBaseTransport):
    """Connects to the very address that it has looked up and found to be public.

    Looking a name up twice would let its owner answer differently the second time.

    Args:
        tls: for https.
        allowed: networks that may be connected to although they are not public.
    """

    def __init__(self, tls: ssl.SSLContext, allowed: Sequence[Network]) -> None:
        self._allowed = allowed
        # A connection is not used again: another name may have the same address.
        once = httpx.Limits(max_keepalive_connections=0)
        self._inner = httpx.AsyncHTTPTransport(verify=tls, limits=once)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The answer of the first address that can be connected to.

        Raises:
            PrivateAddressError: the host has an address that is not public.
            httpx.UnsupportedProtocol: it is not of the web.
            socket.gaierror: the host has no address.
            httpx.TransportError: it does not answer.
        """
        if request.url.scheme not in ("http", "https"):
            raise httpx.UnsupportedProtocol(f"{request.url.scheme}: is not of the web")
        *others, last = await self._addresses(request.url)
        for address in others:
            try:
                return await self._ask(request, address)
            except httpx.ConnectError:
                continue
        return await self._ask(request, last)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._inner.aclose()

    async def _addresses(self, url: httpx.URL) -> list[Address]:
        port = url.port or (443 if url.scheme == "https" else 80)
        found = await asyncio.get_running_loop().getaddrinfo(
            url.host, port, type=socket.SOCK_STREAM
        )
        addresses = [ip_address(str(entry[4][0])) for entry in found]
        if not all(self._may_reach(address) for address in addresses):
            raise PrivateAddressError(url.host)
        return addresses

    def _may_reach(self, address: Address) -> bool:
        return is_public(address) or any(address in network for network in self._allowed)

    async def _ask(self, request: httpx.Request, address: Address) -> httpx.Response:
        # The name stays in the header `Host`, and in what the certificate is checked for.
        pinned = httpx.Request(
            request.method,
            request.url.copy_with(host=str(address)),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": request.url.host},
        )
        return await self._inner.handle_async_request(pinned)


def is_public(address: Address) -> bool:
    """Whether an address is somebody's on the internet, rather than of this network or machine."""
    inner = _inside(address)
    return address.is_global and not address.is_multicast and (inner is None or is_public(inner))


def _inside(address: Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address leads to by a gateway."""
    if isinstance(address, IPv4Address):
        return None
    if int(address) >> 32 == int(NAT64) >> 32:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)
