"""Redirects: keep the `Host` header of a request out of its redirects.

A client chooses this header, and a cache may store the answer for others.
"""

from urllib.parse import urlsplit, urlunsplit

from starlette.types import Message

from threadhold.http.layers import Exchange

_DONE = "threadhold.relative_redirects"


async def relative_redirects(exchange: Exchange) -> None:
    """Make redirects to the host of the request relative, once."""
    scope = exchange.scope
    if scope["type"] != "http" or _DONE in scope:
        return
    scope[_DONE] = True

    async def make_relative(message: Message) -> None:
        if 300 <= message["status"] < 400:
            hosts = {value for name, value in scope["headers"] if name == b"host"}
            message["headers"] = [
                (name, _relative(value, hosts) if name.lower() == b"location" else value)
                for name, value in message["headers"]
            ]

    exchange.at_start(make_relative)


def _relative(location: bytes, hosts: set[bytes]) -> bytes:
    try:
        parts = urlsplit(location)
    except ValueError:
        return location
    if not parts.netloc or parts.netloc not in hosts:
        return location
    # One slash: a path of `//other.example` would be another host.
    path = b"/" + parts.path.lstrip(b"/")
    return urlunsplit((b"", b"", path, parts.query, parts.fragment))
