"""Websites of companies: fetched where that is safe, and read.

A page is bounded in time and size, and only text is read.
"""

import asyncio
import re
import socket
import ssl
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import httpx

from contexts.websites import readable
from my_agent.icp_finder import sites
from my_agent.icp_finder.model import Site
from my_agent.icp_finder.settings import IcpSettings, Network
from my_agent.icp_finder.transport import CheckedTransport, PrivateAddressError

MAX_BYTES = 2**20
MAX_REDIRECTS = 5
ABOUT_LENGTH = 2000
TEXT_LENGTH = 200_000
NAME_LENGTH = 120
# A page whose main part is shorter has its text elsewhere, as many first pages do.
ENOUGH = 200
# No compression is asked for, but some servers know nothing else.
HEADERS = {
    "user-agent": "Mozilla/5.0 (compatible; Threadhold)",
    "accept": "text/html,application/xhtml+xml;q=0.9,text/plain;q=0.5",
    "accept-encoding": "identity",
}
READABLE = ("text/html", "application/xhtml+xml", "text/plain")
# Between a page's own name and what it says of itself.
_BETWEEN = re.compile(r"\s+[|\u00b7\u00bb\u2013\u2014-]\s+|: ")


class SiteError(RuntimeError):
    """A website cannot be read; the message is a sentence for the user.

    A RuntimeError, since the API hides from its callers the message of any class it does not know.
    """


class SiteRefused(SiteError):
    """It is none that this server would connect to."""


class SiteUnreadable(SiteError):
    """It could not be reached, or has nothing to read."""


@dataclass(frozen=True)
class Page:
    """A page as it was read.

    Attributes:
        website: URL that it was asked for by.
        name: what it calls itself, or else the domain.
        about: its main text, shortened.
        text: all of its text, up to a bound.
    """

    website: str
    name: str
    about: str
    text: str


async def read_site(website: str) -> Site:
    """A company's website, and what its first page says.

    Args:
        website: such as `https://acme.com`.

    Raises:
        SiteRefused: it is at a private address, or is not of the web.
        SiteUnreadable: it is down or too slow, or has no text.
    """
    page = await read_page(website)
    domain = sites.domain(website)
    return {"website": website, "domain": domain, "name": page.name, "about": page.about}


async def read_page(website: str) -> Page:
    """What a page says. Raises as `read_site` does."""
    settings = IcpSettings.from_environment()
    try:
        async with asyncio.timeout(settings.icp_site_seconds):
            html = await _fetch(website, settings.icp_private_networks)
            return await asyncio.to_thread(_read, website, html)
    except TimeoutError as error:
        seconds = settings.icp_site_seconds
        raise SiteUnreadable(f"{_shown(website)} took more than {seconds:g} seconds.") from error


async def _fetch(website: str, allowed: Sequence[Network]) -> bytes:
    """The page's bytes; from a site without https by http. Raises as `read_site` does."""
    shown = _shown(website)
    try:
        tls = await asyncio.to_thread(_tls)
        async with httpx.AsyncClient(
            transport=CheckedTransport(tls, allowed),
            follow_redirects=True,
            max_redirects=MAX_REDIRECTS,
            headers=HEADERS,
            timeout=None,
            # A proxy would connect to what has not been checked.
            trust_env=False,
        ) as client:
            try:
                return await _get(client, website)
            except httpx.ConnectError:
                if not website.startswith("https:") or httpx.URL(website).port is not None:
                    raise
                return await _get(client, website.replace("https:", "http:", 1))
    except PrivateAddressError as error:
        raise SiteRefused(f"{error.host} is at a private address, which is not read.") from error
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise SiteRefused(f"{shown} is not an address of the web.") from error
    except httpx.TooManyRedirects as error:
        raise SiteUnreadable(f"{shown} redirects again and again.") from error
    except socket.gaierror as error:
        raise SiteUnreadable(f"{shown} is not known on the internet.") from error
    except (httpx.HTTPError, zlib.error) as error:
        raise SiteUnreadable(f"{shown} could not be read.") from error


async def _get(client: httpx.AsyncClient, url: str) -> bytes:
    async with client.stream("GET", url) as answer:
        shown = _shown(str(answer.url))
        if not answer.is_success:
            raise SiteUnreadable(f"{shown} answered with an error ({answer.status_code}).")
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in READABLE:
            raise SiteUnreadable(f"{shown} is no page of text.")
        coding = answer.headers.get("content-encoding", "identity").lower()
        if coding not in ("identity", "gzip", "deflate"):
            raise SiteUnreadable(f"{shown} is compressed in an unknown way.")
        content = b""
        async for part in answer.aiter_raw():
            content += part
            if len(content) > MAX_BYTES:
                break
        # By hand, because a small answer may be a large page.
        if coding != "identity":
            return zlib.decompressobj(wbits=47).decompress(content[:MAX_BYTES], MAX_BYTES)
        return content[:MAX_BYTES]


def _read(website: str, html: bytes) -> Page:
    """Blocks: parses the page. Raises SiteUnreadable: it has no text."""
    # Here and not above: it takes its time, which a start would wait for.
    from trafilatura import bare_extraction, html2txt, load_html

    found = bare_extraction(html, url=website, favor_recall=True, with_metadata=True)
    main = description = ""
    if found is not None and not isinstance(found, dict):
        main, description = line(found.text), line(found.description)
    text = line(html2txt(html))
    about = main if len(main) >= ENOUGH else text or main
    if description and description not in about:
        about = f"{description} {about}"
    if not about.strip():
        raise SiteUnreadable(f"{_shown(website)} has no text that can be read.")
    tree = load_html(html)
    title = line(tree.findtext(".//title")) if tree is not None else ""
    name = name_in(title) or readable(sites.domain(website))
    return Page(website, name, about[:ABOUT_LENGTH].strip(), text[:TEXT_LENGTH])


def name_in(title: str) -> str:
    """The company's part of a page's title, such as `Home | Acme`; empty if it has none."""
    parts = [part.strip() for part in _BETWEEN.split(title)]
    telling = [part for part in parts if part.lower() not in ("", "home", "homepage", "welcome")]
    return telling[0][:NAME_LENGTH] if telling else ""


def line(text: str | None) -> str:
    """A text on one line."""
    # Postgres keeps no zero bytes.
    return " ".join((text or "").replace("\0", "").split())


def _shown(website: str) -> str:
    """What a sentence calls a website."""
    try:
        return httpx.URL(website).host or website[:80]
    except httpx.InvalidURL:
        return website[:80]


@cache
def _tls() -> ssl.SSLContext:
    # Once: it reads every certificate authority.
    return httpx.create_ssl_context()
