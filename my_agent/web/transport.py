"""HTTP transport that connects to public addresses only (protection against SSRF).

A user who names a website chooses the server that we connect to. So each connection, also after a
redirect, goes to an address that was resolved and checked just before.
"""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from ipaddress import ip_address

import httpx

from threadhold.addresses import Address, Network, is_downgrade, is_public


class PrivateAddressError(RuntimeError):
    """A host resolves to an address that is not public.

    Attributes:
        host: name of the host.
    """

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} is at a private address")
        self.host = host


class DowngradeError(RuntimeError):
    """A host redirects from https to http, where anybody on the way could answer instead.

    Attributes:
        host: name of the host.
    """

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} redirects from https to http")
        self.host = host


async def refuse_downgrade(response: httpx.Response) -> None:
    """Refuse a redirect from https to http. A hook for the responses of a client.

    Raises:
        DowngradeError: the response is such a redirect.
        httpx.InvalidURL: its target is not a URL.
    """
    if is_downgrade(response):
        raise DowngradeError(response.request.url.host)


class CheckedTransport(httpx.AsyncBaseTransport):
    """Connect to exactly the address that was resolved and checked.

    A second lookup could return a different address (DNS rebinding).

    Args:
        tls: TLS settings for https.
        allowed: networks that are allowed although they are not public.
    """

    def __init__(self, tls: ssl.SSLContext, allowed: Sequence[Network]) -> None:
        self._allowed = allowed
        # Connections are not reused: another host name may have the same address.
        once = httpx.Limits(max_keepalive_connections=0)
        self._inner = httpx.AsyncHTTPTransport(verify=tls, limits=once)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the response of the first address that accepts a connection.

        Raises:
            PrivateAddressError: the host has an address that is not public.
            httpx.UnsupportedProtocol: the scheme is neither http nor https.
            socket.gaierror: the host has no address.
            httpx.TransportError: the host does not answer.
        """
        if request.url.scheme not in ("http", "https"):
            raise httpx.UnsupportedProtocol(f"{request.url.scheme}: is not http or https")
        *others, last = await self._addresses(request.url)
        for address in others:
            try:
                return await self._ask(request, address)
            except httpx.ConnectError:
                continue
        return await self._ask(request, last)

    async def aclose(self) -> None:
        """Close all connections."""
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
        # The header `Host` and the certificate check still use the host name.
        pinned = httpx.Request(
            request.method,
            request.url.copy_with(host=str(address)),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": request.url.host},
        )
        return await self._inner.handle_async_request(pinned)
