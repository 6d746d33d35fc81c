"""Websites on loopback with pages, redirects, and a gate that delays answers."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HTML = {"content-type": "text/html; charset=utf-8"}


@dataclass
class Page:
    """The answer of a path.

    Attributes:
        body: the content, or a function that returns it.
        status: the HTTP status.
        headers: the headers.
    """

    body: bytes | Callable[[], bytes] = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: dict(HTML))


def company_page(name: str, text: str) -> Page:
    """Return a company's home page."""
    html = f"<html><head><title>{name} | Home</title></head><body><main><h1>{name}</h1>"
    return Page(f"{html}<p>{text}</p></main></body></html>".encode())


def redirect(target: str, status: int = 302) -> Page:
    """Return a redirect."""
    return Page(status=status, headers={"location": target})


@dataclass
class Websites:
    """The server.

    Attributes:
        url: the address.
        pages: the answer of each path; other paths answer 404.
        asked: the requested paths, in order.
        hosts: the header `Host` of each request.
        gate: answers wait while this event is cleared.
    """

    url: str = ""
    pages: dict[str, Page] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


@contextmanager
def websites(tls: ssl.SSLContext | None = None) -> Iterator[Websites]:
    """Serve until the end of the block.

    Args:
        tls: The certificate for HTTPS; None for HTTP.
    """
    sites = Websites()
    sites.gate.set()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sites.asked.append(self.path)
            sites.hosts.append(self.headers.get("host", ""))
            sites.gate.wait(60)
            page = sites.pages.get(self.path, Page(b"nothing here", 404))
            body = page.body() if callable(page.body) else page.body
            try:
                self.send_response(page.status)
                for name, value in page.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                pass  # some tests disconnect before the answer

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Log nothing: the output belongs to the tests."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Ignore errors: a killed client disconnects during the answer."""

    with Server(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        sites.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield sites
        finally:
            sites.gate.set()
            server.shutdown()
            thread.join()
