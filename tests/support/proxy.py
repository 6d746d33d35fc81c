"""A TCP proxy that can cut its connections, slow them down, or drop all data."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from tests.support.processes import free_port

T = TypeVar("T")


class Proxy:
    """Forwards connections to a local port or a Unix socket.

    Args:
        target: The port, or the path of the socket.
        rate: The limit of each connection in bytes a second; None for no limit.

    Attributes:
        port: The port on which the proxy listens.
        silent: Whether the proxy accepts and keeps connections but drops all data.
    """

    def __init__(self, target: int | Path, rate: int | None = None) -> None:
        self.port = free_port()
        self.silent = False
        self._target = target
        self._rate = rate
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._serve, "127.0.0.1", self.port))

    def cut(self) -> None:
        """Close all connections; new ones work."""
        self._run(self._cut())

    def leave(self) -> None:
        """Close all connections, and refuse new ones from now on."""
        self._run(self._leave())

    def close(self) -> None:
        """Close everything."""
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def _leave(self) -> None:
        self._server.close()
        await self._cut()

    async def _close(self) -> None:
        await self._leave()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            if isinstance(self._target, Path):
                far_reader, far_writer = await asyncio.open_unix_connection(self._target)
            else:
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            self._writers.discard(writer)
            return
        self._writers.add(far_writer)
        await asyncio.gather(
            self._pump(reader, far_writer), self._pump(far_reader, writer), return_exceptions=True
        )
        for each in (writer, far_writer):
            self._writers.discard(each)
            each.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                if not self.silent:
                    writer.write(data)
                    await writer.drain()
                if self._rate is not None:
                    await asyncio.sleep(len(data) / self._rate)
        writer.transport.abort()


@contextmanager
def proxied(target: int | Path, rate: int | None = None) -> Iterator[Proxy]:
    """Run a proxy until the end of the block."""
    proxy = Proxy(target, rate)
    try:
        yield proxy
    finally:
        proxy.close()
