"""A local server that receives webhooks."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.http_server import QuietHandler, answering


class Webhooks:
    """The received webhooks.

    Attributes:
        url: The address of the server. Each test uses its own path below it.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._received: list[tuple[str, Any]] = []

    def note(self, path: str, body: Any) -> None:
        """Record a call."""
        self._received.append((path, body))

    def received(self, path: str) -> list[Any]:
        """Return the bodies that a path received, in order."""
        return [body for where, body in list(self._received) if where == path]


@contextmanager
def receiver() -> Iterator[Webhooks]:
    """Receive webhooks until the end of the block."""

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            webhooks.note(self.path, body)
            self.send_response(200)
            self.end_headers()

    with answering(Handler) as url:
        webhooks = Webhooks(url)
        yield webhooks
