"""Redirects: keep the `Host` header of a request out of its redirects.

A client chooses this header, and a cache may store the answer for others.
"""

from urllib.parse import urlsplit, urlunsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class RelativeRedirects:
    """Make redirects to the host of the request relative."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_relative(message: Message) -> None:
            if message["type"] == "http.response.start" and 300 <= message["status"] < 400:
                hosts = {value for name, value in scope["headers"] if name == b"host"}
                message["headers"] = [
                    (name, _relative(value, hosts) if name.lower() == b"location" else value)
                    for name, value in message["headers"]
                ]
            await send(message)

        await self._app(scope, receive, send_relative)


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
