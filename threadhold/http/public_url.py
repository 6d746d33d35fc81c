"""Public URL: keep the `Host` header of a request out of its answer.

A client chooses this header, and a cache may store the answer for others. Redirects become
relative. Agent cards name the public URL, or else a relative one.
"""

from typing import Any
from urllib.parse import urlsplit, urlunsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from threadhold.hosts import is_loopback


def install(public_url: str | None) -> None:
    """Make the URLs in agent cards independent of the request. Repeating it changes nothing.

    Args:
        public_url: The URL of the API, which `langgraph_api` then uses itself.
    """
    from langgraph_api.api import a2a

    if public_url is None and not hasattr(a2a.generate_agent_card, "is_relative"):
        a2a.generate_agent_card = _relative_cards(a2a.generate_agent_card)


def _relative_cards(stock: Any) -> Any:
    """Return a function that makes agent cards with relative URLs.

    Cards for a loopback name keep it: only this machine can be named. The stock function takes the
    scheme from `X-Forwarded-Proto`, whatever it is.
    """

    async def generate_agent_card(request: Any, assistant_id: str) -> Any:
        from langgraph_api.metadata import USER_API_URL

        card = await stock(request, assistant_id)
        if not USER_API_URL:
            is_local = is_loopback(request.url.hostname or "")
            origin = f"{request.url.scheme}://{request.url.netloc}" if is_local else ""
            for each in (card, *card.get("supportedInterfaces", ())):
                each["url"] = origin + urlsplit(each["url"]).path
        return card

    generate_agent_card.is_relative = True  # type: ignore[attr-defined]
    return generate_agent_card


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
