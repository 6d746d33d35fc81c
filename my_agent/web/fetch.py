"""Fetch a page: over checked addresses, within a size, and as text only."""

import asyncio
import socket
import ssl
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache

import httpx

from my_agent.web.transport import (
    CheckedTransport,
    DowngradeError,
    PrivateAddressError,
    refuse_downgrade,
)
from threadhold.addresses import Network

MAX_BYTES = 2**20
MAX_REDIRECTS = 5
# We ask for no compression, but some servers compress anyway.
HEADERS = {
    "user-agent": "Mozilla/5.0 (compatible; Threadhold)",
    "accept": "text/html,application/xhtml+xml;q=0.9,text/plain;q=0.5",
    "accept-encoding": "identity",
}
# Statuses of a server that is busy or restarts.
PASSING = (408, 425, 429, 500, 502, 503, 504)
READABLE = ("text/html", "application/xhtml+xml", "text/plain")


class SiteError(RuntimeError):
    """A website cannot be read. The message is a sentence for the user.

    A RuntimeError, since the API hides from its callers the message of any class it does not know.
    """


class SiteRefused(SiteError):
    """This server must not connect to the website."""


class SiteUnreadable(SiteError):
    """The website could not be reached, or has no text.

    Args:
        message: a sentence for the user.
        status: status of the answer; None without an answer.
        passing: whether the next attempt may succeed, as with some statuses it may.

    Attributes:
        status: as above.
        passing: whether the next attempt may succeed.
    """

    def __init__(self, message: str, status: int | None = None, *, passing: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.passing = passing or status in PASSING


class NotText(SiteUnreadable):
    """The website answers with something else than text."""


@dataclass(frozen=True)
class FetchedPage:
    """The answer of a website.

    Attributes:
        url: the address after redirects.
        kind: the media type, such as `text/html`.
        body: the content, cut at the maximum size.
        size: bytes that were received.
    """

    url: str
    kind: str
    body: bytes
    size: int


async def fetch(website: str, allowed: Sequence[Network]) -> bytes:
    """Return the bytes of a page; try http if https fails, and the name without `www.` if it is unknown.

    Args:
        website: URL of the page.
        allowed: private networks whose pages may be read.

    Raises:
        SiteRefused: the address is private, or not http or https, or redirects from https to http.
        SiteUnreadable: the website is down, answers with an error, or has no text.
    """
    try:
        return (await get(website, allowed)).body
    except SiteUnreadable as error:
        if isinstance(error.__cause__, socket.gaierror) and "://www." in website:
            return await fetch(website.replace("://www.", "://", 1), allowed)
        if (
            not isinstance(error.__cause__, httpx.ConnectError)
            or not website.startswith("https:")
            or httpx.URL(website).port is not None
        ):
            raise
    return (await get(website.replace("https:", "http:", 1), allowed)).body


async def get(
    url: str,
    allowed: Sequence[Network],
    *,
    kinds: Collection[str] = READABLE,
    max_bytes: int = MAX_BYTES,
) -> FetchedPage:
    """Return the answer of a website.

    Args:
        url: the address.
        allowed: private networks whose pages may be read.
        kinds: media types to accept; empty: all.
        max_bytes: the content is cut here, before and after decompression.

    Raises:
        SiteRefused: the address is private, or not http or https, or redirects from https to http.
        NotText: the answer is of another media type.
        SiteUnreadable: the website is down or answers with an error.
    """
    shown = shown_host(url)
    try:
        tls = await asyncio.to_thread(_tls)
        async with httpx.AsyncClient(
            transport=CheckedTransport(tls, allowed),
            follow_redirects=True,
            max_redirects=MAX_REDIRECTS,
            event_hooks={"response": [refuse_downgrade]},
            headers=HEADERS,
            timeout=None,
            # A proxy would connect to an address that has not been checked.
            trust_env=False,
        ) as client:
            return await _get(client, url, kinds, max_bytes)
    except PrivateAddressError as error:
        raise SiteRefused(f"{error.host} is at a private address, which is not read.") from error
    except DowngradeError as error:
        raise SiteRefused(f"{error.host} redirects to a page without encryption.") from error
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise SiteRefused(f"{shown} is not an http or https address.") from error
    except httpx.TooManyRedirects as error:
        raise SiteUnreadable(f"{shown} redirects again and again.") from error
    except socket.gaierror as error:
        raise SiteUnreadable(f"{shown} is not known on the internet.") from error
    except (httpx.HTTPError, zlib.error) as error:
        raise SiteUnreadable(f"{shown} could not be read.", passing=True) from error


async def _get(
    client: httpx.AsyncClient, url: str, kinds: Collection[str], max_bytes: int
) -> FetchedPage:
    async with client.stream("GET", url) as answer:
        shown = shown_host(str(answer.url))
        if not answer.is_success:
            status = answer.status_code
            raise SiteUnreadable(f"{shown} answered with an error ({status}).", status)
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kinds and kind not in kinds:
            raise NotText(f"{shown} is not a page with text.", answer.status_code)
        coding = answer.headers.get("content-encoding", "identity").lower()
        if coding not in ("identity", "gzip", "deflate"):
            raise NotText(f"{shown} is compressed in an unknown way.", answer.status_code)
        content = b""
        async for part in answer.aiter_raw():
            content += part
            if len(content) > max_bytes:
                break
        size, content = len(content), content[:max_bytes]
        # Decompressed by hand with a limit: a small response can expand to a huge page.
        if coding != "identity":
            content = zlib.decompressobj(wbits=47).decompress(content, max_bytes)
        return FetchedPage(str(answer.url), kind, content, size)


def shown_host(website: str) -> str:
    """Return the host name for messages."""
    try:
        return httpx.URL(website).host or website[:80]
    except httpx.InvalidURL:
        return website[:80]


@cache
def _tls() -> ssl.SSLContext:
    # Cached: creating it reads all certificate authorities.
    return httpx.create_ssl_context()
