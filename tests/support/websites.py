"""Websites on loopback that tests write: pages, redirects, and a gate that holds answers back."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HTML = {"content-type": "text/html; charset=utf-8"}


@dataclass
class Page:
    """What a path answers.

    Attributes:
        body: its content, or what gives it.
        status: its HTTP status.
        headers: its headers.
    """

    body: bytes | Callable[[], bytes] = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: dict(HTML))


def company_page(name: str, text: str) -> Page:
    """A company's first page."""
    html = f"<html><head><title>{name} | Home</title></head><body><main><h1>{name}</h1>"
    return Page(f"{html}<p>{text}</p></main></body></html>".encode())


def redirect(target: str, status: int = 302) -> Page:
    """A redirect."""
    return Page(status=status, headers={"location": target})


@dataclass
class Websites:
    """The server.

    Attributes:
        url: its address.
        pages: what each path answers; a path that is missing, 404.
        asked: the paths that were asked for, in order.
        hosts: the header `Host` of each.
        gate: while it is closed (cleared), answers wait.
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
    """Serve until the end of the block; by https if there is a certificate."""
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
                pass  # whoever asked has gone away, as some tests do

        def log_message(self, *_: object) -> None:
            """Nothing: the tests' own output is for the tests."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Nothing: a client that is killed leaves in the middle."""

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
