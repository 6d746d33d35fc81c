"""A small HTTP server in this process, which the servers under test call."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class QuietHandler(BaseHTTPRequestHandler):
    """A request handler that logs nothing."""

    def log_message(self, *_: Any) -> None:
        """Log nothing: the output belongs to the tests."""


@contextmanager
def answering(handler: type[QuietHandler]) -> Iterator[str]:
    """Serve with this handler until the end of the block, and give the URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
