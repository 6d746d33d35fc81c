"""A server on this machine that webhooks call."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.http_server import QuietHandler, answering


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

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            webhooks.note(self.path, body)
            self.send_response(200)
            self.end_headers()

    with answering(Handler) as url:
        webhooks = Webhooks(url)
        yield webhooks
