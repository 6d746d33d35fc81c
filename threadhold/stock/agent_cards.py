"""Agent cards: name the public URL of the API, or a relative one, instead of the `Host` of the request.

A client chooses this header, and a cache may store the answer for others.
"""

from typing import Any
from urllib.parse import urlsplit

from threadhold.hosts import is_loopback


def relative(stock: Any) -> Any:
    """Return a function that makes agent cards with relative URLs, unless there is a public one.

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

    return generate_agent_card
