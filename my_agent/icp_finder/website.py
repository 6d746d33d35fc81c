"""Read companies' websites: fetch a page safely and extract its text.

Time and size of a page are limited, and only text is read.
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
from my_agent.icp_finder.transport import (
    CheckedTransport,
    DowngradeError,
    PrivateAddressError,
    refuse_downgrade,
)

MAX_BYTES = 2**20
MAX_REDIRECTS = 5
ABOUT_LENGTH = 2000
TEXT_LENGTH = 200_000
NAME_LENGTH = 120
# If the main part is shorter than this, the whole text is used, as many home pages need.
MIN_MAIN_TEXT = 200
# We ask for no compression, but some servers compress anyway.
HEADERS = {
    "user-agent": "Mozilla/5.0 (compatible; Threadhold)",
    "accept": "text/html,application/xhtml+xml;q=0.9,text/plain;q=0.5",
    "accept-encoding": "identity",
}
READABLE = ("text/html", "application/xhtml+xml", "text/plain")
# Separates the parts of a page's title.
_TITLE_SEPARATOR = re.compile(r"\s+[|\u00b7\u00bb\u2013\u2014-]\s+|: ")


class SiteError(RuntimeError):
    """A website cannot be read. The message is a sentence for the user.

    A RuntimeError, since the API hides from its callers the message of any class it does not know.
    """


class SiteRefused(SiteError):
    """This server must not connect to the website."""


class SiteUnreadable(SiteError):
    """The website could not be reached, or has no text."""


@dataclass(frozen=True)
class Page:
    """A page that was read.

    Attributes:
        website: the requested URL.
        name: name in the title, or else the domain.
        about: its main text, shortened.
        text: all of its text, up to `TEXT_LENGTH` characters.
    """

    website: str
    name: str
    about: str
    text: str


async def read_site(website: str) -> Site:
    """Read the first page of a company's website.

    Args:
        website: such as `https://acme.com`.

    Raises:
        SiteRefused: the address is private, or not http or https, or redirects from https to http.
        SiteUnreadable: the website is down, too slow, or has no text.
    """
    page = await read_page(website)
    domain = sites.domain(website)
    return {"website": website, "domain": domain, "name": page.name, "about": page.about}


async def read_page(website: str) -> Page:
    """Read a page. Raises the same errors as `read_site`."""
    settings = IcpSettings.from_environment()
    try:
        async with asyncio.timeout(settings.icp_site_seconds):
            html = await _fetch(website, settings.icp_private_networks)
            return await asyncio.to_thread(_read, website, html)
    except TimeoutError as error:
        seconds = settings.icp_site_seconds
        raise SiteUnreadable(f"{_shown(website)} took more than {seconds:g} seconds.") from error


async def _fetch(website: str, allowed: Sequence[Network]) -> bytes:
    """Return the bytes of a page; try http if https fails. Raises the errors of `read_site`."""
    shown = _shown(website)
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
            try:
                return await _get(client, website)
            except httpx.ConnectError:
                if not website.startswith("https:") or httpx.URL(website).port is not None:
                    raise
                return await _get(client, website.replace("https:", "http:", 1))
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
        raise SiteUnreadable(f"{shown} could not be read.") from error


async def _get(client: httpx.AsyncClient, url: str) -> bytes:
    async with client.stream("GET", url) as answer:
        shown = _shown(str(answer.url))
        if not answer.is_success:
            raise SiteUnreadable(f"{shown} answered with an error ({answer.status_code}).")
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in READABLE:
            raise SiteUnreadable(f"{shown} is not a page with text.")
        coding = answer.headers.get("content-encoding", "identity").lower()
        if coding not in ("identity", "gzip", "deflate"):
            raise SiteUnreadable(f"{shown} is compressed in an unknown way.")
        content = b""
        async for part in answer.aiter_raw():
            content += part
            if len(content) > MAX_BYTES:
                break
        # Decompressed by hand with a limit: a small response can expand to a huge page.
        if coding != "identity":
            return zlib.decompressobj(wbits=47).decompress(content[:MAX_BYTES], MAX_BYTES)
        return content[:MAX_BYTES]


def _read(website: str, html: bytes) -> Page:
    """Parse a page. Blocks. Raises SiteUnreadable if it has no text."""
    # Imported late: the import is slow and would delay every start.
    from trafilatura import bare_extraction, html2txt, load_html

    found = bare_extraction(html, url=website, favor_recall=True, with_metadata=True)
    main = description = ""
    if found is not None and not isinstance(found, dict):
        main, description = line(found.text), line(found.description)
    text = line(html2txt(html))
    about = main if len(main) >= MIN_MAIN_TEXT else text or main
    if description and description not in about:
        about = f"{description} {about}"
    if not about.strip():
        raise SiteUnreadable(f"{_shown(website)} has no text that can be read.")
    tree = load_html(html)
    title = line(tree.findtext(".//title")) if tree is not None else ""
    name = name_in(title) or readable(sites.domain(website))
    return Page(website, name, about[:ABOUT_LENGTH].strip(), text[:TEXT_LENGTH])


def name_in(title: str) -> str:
    """Return the company's name in a title such as `Home | Acme`; empty if there is none."""
    parts = [part.strip() for part in _TITLE_SEPARATOR.split(title)]
    significant = [
        part for part in parts if part.lower() not in ("", "home", "homepage", "welcome")
    ]
    return significant[0][:NAME_LENGTH] if significant else ""


def line(text: str | None) -> str:
    """Return a text on one line."""
    # Postgres cannot store NUL bytes.
    return " ".join((text or "").replace("\0", "").split())


def _shown(website: str) -> str:
    """Return the host name for messages."""
    try:
        return httpx.URL(website).host or website[:80]
    except httpx.InvalidURL:
        return website[:80]


@cache
def _tls() -> ssl.SSLContext:
    # Cached: creating it reads all certificate authorities.
    return httpx.create_ssl_context()
