"""Probes: look at a host from outside, without changing anything. Each has a time limit.

A probe asks the name service, opens one connection to a checked address, reads the certificate, and
sends one GET request whose body is not read. Its result is a log of its own, without times: it was
made now, and the incident was before.
"""

import asyncio
import json
import socket
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from ipaddress import ip_address
from typing import Any

import httpx

from my_agent.web.fetch import HEADERS
from my_agent.web.transport import CheckedTransport, PrivateAddressError
from threadhold.addresses import Network, is_public

SERVER_ERROR = 500
WARN_DAYS = 14


async def probe(url: str, allowed: Sequence[Network], seconds: float) -> str:
    """Return what a probe of a URL found, as lines of JSON.

    Args:
        url: with http or https.
        allowed: private networks whose hosts may be probed.
        seconds: maximum time of each step.
    """
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return _line("probe", "error", f"{url[:80]} is not a URL")
    host = parsed.host
    if parsed.scheme not in ("http", "https") or not host:
        return _line("probe", "error", f"{url[:80]} is not an http or https address")
    is_reachable, line = await _resolve(host, allowed, seconds)
    return "\n".join([line, *(await _get(parsed, allowed, seconds) if is_reachable else [])])


async def _resolve(host: str, allowed: Sequence[Network], seconds: float) -> tuple[bool, str]:
    """Return whether a host may be reached, and what the name service says."""
    try:
        found = await asyncio.wait_for(
            asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM), seconds
        )
    except TimeoutError:
        return False, _line(host, "error", f"DNS: no answer for {host} within {seconds:g} s")
    except (socket.gaierror, UnicodeError):
        return False, _line(host, "error", f"DNS: no such host {host}")
    addresses = {ip_address(str(each[4][0])) for each in found}
    if not all(is_public(each) or any(each in net for net in allowed) for each in addresses):
        return False, _private(host)
    known = "one address" if len(addresses) == 1 else f"{len(addresses)} addresses"
    return True, _line(host, "info", f"DNS: {host} has {known}")


async def _get(url: httpx.URL, allowed: Sequence[Network], seconds: float) -> list[str]:
    """Return the lines about the answer to one request, and about the certificate."""
    host = url.host
    tls = await asyncio.to_thread(_tls)
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        async with (
            asyncio.timeout(seconds),
            httpx.AsyncClient(
                transport=CheckedTransport(tls, allowed),
                headers=HEADERS,
                timeout=None,
                # A proxy would connect to an address that has not been checked.
                trust_env=False,
            ) as client,
            client.stream("GET", url) as answer,
        ):
            taken = 1000 * (loop.time() - began)
            level = "error" if answer.status_code >= SERVER_ERROR else "info"
            said = f"HTTP: GET {url.path or '/'} answered {answer.status_code} after {taken:.0f} ms"
            return [_line(host, level, said), *_certificate(host, answer)]
    except TimeoutError:
        return [_line(host, "error", f"HTTP: no answer from {host} within {seconds:g} s")]
    except PrivateAddressError:
        # The name service has answered differently the second time.
        return [_private(host)]
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        return [_line(host, "error", f"HTTP: {host} did not answer: {_reason(error)}")]


def _certificate(host: str, answer: httpx.Response) -> list[str]:
    stream: Any = answer.extensions.get("network_stream")
    secured = stream.get_extra_info("ssl_object") if stream is not None else None
    found = secured.getpeercert() if secured is not None else None
    if not found or "notAfter" not in found:
        return []
    until = datetime.fromtimestamp(ssl.cert_time_to_seconds(found["notAfter"]), UTC)
    days = (until - datetime.now(UTC)).days
    level = "warning" if days < WARN_DAYS else "info"
    return [
        _line(host, level, f"TLS: the certificate is valid until {until:%Y-%m-%d}, {days} days")
    ]


def _private(host: str) -> str:
    # No warning: the refusal says nothing about the host.
    return _line(host, "info", f"{host} is at a private address, which is not probed")


def _reason(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return "certificate has expired" if "certificate has expired" in text else text[:160]


def _line(host: str, level: str, text: str) -> str:
    return json.dumps({"service": host, "level": level, "msg": text})


@cache
def _tls() -> ssl.SSLContext:
    # Cached: creating it reads all certificate authorities.
    return httpx.create_ssl_context()
