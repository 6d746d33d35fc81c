"""One request over a checked address: its status, its redirect and a bounded body."""

import asyncio
import socket
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpx

from contexts.addresses import Network
from my_agent.web.fetch import SiteRefused, SiteUnreadable, _tls, shown_host
from my_agent.web.transport import CheckedTransport, PrivateAddressError


@dataclass(frozen=True)
class PoliteAnswer:
    """The answer of a server.

    Attributes:
        status: the HTTP status.
        kind: the media type, without parameters.
        charset: the charset of the header; None if it has none.
        location: the target of a redirect; None if it is none.
        content: the body, decompressed and cut at the limit.
        is_cut: whether the body was longer.
    """

    status: int
    kind: str
    charset: str | None
    location: str | None
    content: bytes
    is_cut: bool


async def answer_of(
    url: str, allowed: Sequence[Network], limit: int, headers: Mapping[str, str]
) -> PoliteAnswer:
    """Send a GET without following redirects.

    Args:
        url: the address.
        allowed: private networks that may be asked.
        limit: bytes of the body that are read.
        headers: the headers.

    Raises:
        SiteRefused: the address is private, or not http or https.
        SiteUnreadable: the server does not answer, or its answer cannot be decompressed.
    """
    shown = shown_host(url)
    tls = await asyncio.to_thread(_tls)
    try:
        async with (
            httpx.AsyncClient(
                transport=CheckedTransport(tls, allowed),
                headers=dict(headers),
                timeout=None,
                # A proxy would connect to an address that has not been checked.
                trust_env=False,
            ) as client,
            client.stream("GET", url) as answer,
        ):
            return await _read(answer, limit)
    except PrivateAddressError as error:
        raise SiteRefused(f"{error.host} is at a private address, which is not read.") from error
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise SiteRefused(f"{shown} is not an http or https address.") from error
    except socket.gaierror as error:
        raise SiteUnreadable(f"{shown} is not known on the internet.") from error
    except (httpx.HTTPError, zlib.error, UnicodeError) as error:
        raise SiteUnreadable(f"{shown} could not be read.") from error


async def _read(answer: httpx.Response, limit: int) -> PoliteAnswer:
    content = b""
    async for part in answer.aiter_raw():
        content += part
        if len(content) > limit:
            break
    is_cut = len(content) > limit
    content = content[:limit]
    coding = answer.headers.get("content-encoding", "identity").lower()
    if coding not in ("identity", "gzip", "deflate"):
        raise SiteUnreadable(f"{answer.url.host} is compressed in an unknown way.")
    if coding != "identity":
        # Decompressed with a limit: a small answer can expand to a huge page.
        unpacker = zlib.decompressobj(wbits=47)
        content = unpacker.decompress(content, limit)
        is_cut = is_cut or bool(unpacker.unconsumed_tail)
    is_redirect = answer.status_code in (301, 302, 303, 307, 308)
    return PoliteAnswer(
        status=answer.status_code,
        kind=answer.headers.get("content-type", "").partition(";")[0].strip().lower(),
        charset=answer.charset_encoding,
        location=answer.headers.get("location") if is_redirect else None,
        content=content,
        is_cut=is_cut,
    )
