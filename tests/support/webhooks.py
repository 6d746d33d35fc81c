"""A server on this machine that webhooks call."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Webhooks:
    """What was sent where.

    Attributes:
        url: Of the server; each path below it is somebody's own.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._received: list[tuple[str, Any]] = []

    def note(self, path: str, body: Any) -> None:
        """Somebody has called."""
        self._received.append((path, body))

    def received(self, path: str) -> list[Any]:
        """The bodies that were sent to a path, in order."""
        return [body for where, body in list(self._received) if where == path]


@contextmanager
def receiver() -> Iterator[Webhooks]:
    """One that answers every call until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            webhooks.note(self.path, body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    webhooks = Webhooks(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield webhooks
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
