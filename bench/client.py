"""A minimal HTTP/1.1 keep-alive client.

The load generator shares the CPU cores with the servers that it measures. So it parses with
httptools on a plain asyncio protocol, which takes a tenth of the CPU time of httpx.
"""

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType, TracebackType
from typing import Any, Self

import httptools
import orjson

OnBody = Callable[[bytes], None]


class HTTPFailure(Exception):
    """The server answered with an error status, or closed the connection.

    Attributes:
        status: The status; 0 without an answer.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Client(asyncio.Protocol):
    """One connection to 127.0.0.1:`port`, one request at a time.

    Args:
        port: port of the server.
        token: bearer token; None: no authentication.
        headers: sent with each request.
    """

    def __init__(
        self,
        port: int,
        token: str | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.port = port
        bearer = {"Authorization": f"Bearer {token}"} if token else {}
        self._headers = "".join(
            f"{name}: {value}\r\n" for name, value in (headers | bearer).items()
        )
        self._transport: asyncio.Transport | None = None
        self._parser: Any = None
        self._done: asyncio.Future[None] | None = None
        self._on_body: OnBody = lambda data: None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    async def json(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request and return the decoded answer. Raises HTTPFailure unless the status is
        2xx.
        """
        parts: list[bytes] = []
        await self.request(method, path, body, parts.append)
        data = b"".join(parts)
        return orjson.loads(data) if data else None

    async def request(self, method: str, path: str, body: Any, on_body: OnBody) -> None:
        """Send one request, and call `on_body` with each part of the body as it arrives.

        `body` is sent as JSON; bytes are sent as they are.

        Raises:
            HTTPFailure: the status is not 2xx, or the connection was closed.
        """
        if self._transport is None:
            loop = asyncio.get_running_loop()
            self._transport, _ = await loop.create_connection(lambda: self, "127.0.0.1", self.port)
        self._parser = httptools.HttpResponseParser(self)
        self._done = asyncio.get_running_loop().create_future()
        failed: list[bytes] = []
        self._on_body = lambda data: on_body(data) if self._ok() else failed.append(data)
        payload = b"" if body is None else body if type(body) is bytes else orjson.dumps(body)
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(payload)}\r\n"
            f"{self._headers}\r\n"
        )
        self._transport.write(head.encode() + payload)
        await self._done
        if not self._ok():
            text = b"".join(failed)[:500].decode(errors="replace")
            status = self._parser.get_status_code()
            raise HTTPFailure(f"{method} {path}: {status} {text}", status)
        if not self._parser.should_keep_alive():
            self.close()

    def _ok(self) -> bool:
        status: int = self._parser.get_status_code()
        return 200 <= status < 300

    # callbacks of asyncio and httptools

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._done is not None and not self._done.done():
            self._done.set_exception(
                HTTPFailure(f"connection closed before the end of the answer: {exc}")
            )

    def on_body(self, data: bytes) -> None:
        self._on_body(data)

    def on_message_complete(self) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result(None)
