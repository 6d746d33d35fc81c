"""Web app: the page at `/` and its files, from the build in `threadhold/web`.

The page loads scripts of its own origin only. `/` answers programs as before: only a browser, which
asks for HTML, gets the page.
"""

import html
from collections.abc import Awaitable, Callable
from mimetypes import guess_type
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Match, Route
from starlette.types import Scope

from threadhold.http import compression

BUILD = Path(__file__).resolve().parents[1] / "web"

# Styles may be inline: React sets `style` attributes. Scripts may not.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; media-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
# Made by the build, smallest first.
_SUFFIXES = {"br": ".br", "gzip": ".gz"}
# The script that other pages load, by a name that does not change.
_EMBEDDED = ("embed.js",)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "vary": "Accept",
}
_MISSING = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Threadhold</title>
<h1>The API runs. The web app is not built.</h1>
<p>Install Node 20 or later, then run <code>make serve</code> in the checkout, which builds the
page.</p><p>The API is at <code>{api}</code>. It does not need the page.</p></html>"""


class _PageRoute(Route):
    """A route that matches only requests for HTML."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        found, child = super().matches(scope)
        if found is Match.FULL and not _wants_html(scope):
            return Match.NONE, {}
        # Other methods are the platform's.
        return (found, child) if found is Match.FULL else (Match.NONE, {})


def routes(prefix: str, build: Path = BUILD, *, max_body_bytes: int = 0) -> list[Route]:
    """Return the routes of the page and of its files.

    Args:
        prefix: Mount prefix of the API; empty at the root.
        max_body_bytes: Larger request bodies get a 413, so the page refuses larger files; 0 if
            the page is not told.
        build: Folder of the build. Without one, the page says how to build it.
    """
    return [
        _PageRoute("/", _page(prefix, build, max_body_bytes), methods=["GET"]),
        Route("/assets/{name}", _asset(build), methods=["GET"]),
    ]


def _page(
    prefix: str, build: Path, max_body_bytes: int
) -> Callable[[Request], Awaitable[Response]]:
    async def page(request: Request) -> Response:
        index = build / "index.html"
        if not index.is_file():
            text = _MISSING.format(api=html.escape(prefix or "/"))
            return HTMLResponse(text, headers=_HEADERS)
        # The file has meta elements for them, because its policy allows no inline script.
        text = index.read_text("utf-8").replace("__API__", html.escape(prefix, quote=True))
        text = text.replace("__MAX_BODY__", str(max_body_bytes))
        return HTMLResponse(text, headers={**_HEADERS, "cache-control": "no-cache"})

    return page


def _asset(build: Path) -> Callable[[Request], Awaitable[Response]]:
    async def asset(request: Request) -> Response:
        folder = (build / "assets").resolve()
        path = (folder / request.path_params["name"]).resolve()
        if path.parent != folder or not path.is_file():
            return Response(status_code=404)
        encoding = _encoding(request.headers.get("accept-encoding", ""), path)
        # Other names contain a hash of the content.
        is_fixed = path.name in _EMBEDDED
        caching = "no-cache" if is_fixed else "public, max-age=31536000, immutable"
        headers = {"cache-control": caching, "cross-origin-resource-policy": "cross-origin"}
        if path.suffix in (".js", ".css"):
            # Modules of another origin need it. The files are the same for everybody.
            headers["access-control-allow-origin"] = "*"
        if encoding is not None:
            headers["content-encoding"] = encoding
        headers["vary"] = "Accept-Encoding"
        sent = path.with_name(path.name + _SUFFIXES.get(encoding or "", ""))
        media_type = guess_type(path.name)[0]
        return FileResponse(sent, media_type=media_type, headers={**_HEADERS, **headers})

    return asset


def _encoding(accepted: str, path: Path) -> str | None:
    """Return the first encoding in which the build has a file and which a client accepts."""
    names = compression.accepted(accepted)
    found = (
        name
        for name, suffix in _SUFFIXES.items()
        if name in names and path.with_name(path.name + suffix).is_file()
    )
    return next(found, None)


def _wants_html(scope: Scope) -> bool:
    return any(
        name == b"accept" and b"text/html" in value.lower() for name, value in scope["headers"]
    )
