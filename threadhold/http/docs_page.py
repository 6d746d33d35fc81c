"""Docs page: one HTML page that shows the OpenAPI description and sends requests.

The page loads nothing: its script and style are inside, and its policy allows no others. The stock
page runs a script of another site, which could read the token that a developer types into it.
"""

import base64
import functools
import hashlib
from pathlib import Path

from starlette.responses import HTMLResponse

_PAGE = Path(__file__).with_name("docs_page.html")


def response(spec: bytes) -> HTMLResponse:
    """Return the page of an OpenAPI description.

    Args:
        spec: The description as JSON.
    """
    # Without `<`, no text in the description can end the script element.
    text = spec.decode().replace("<", "\\u003c")
    return HTMLResponse(_page().replace("__SPEC__", text), headers=_headers())


@functools.cache
def _page() -> str:
    return _PAGE.read_text("utf-8")


def _element(name: str) -> str:
    """Return the content of the page's only element of a name."""
    return _page().partition(f"<{name}>")[2].partition(f"</{name}>")[0]


@functools.cache
def _headers() -> dict[str, str]:
    """Return headers that allow the page's own script and style, and requests to its origin."""
    script, style = _element("script"), _element("style")
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
    }


def _digest(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
