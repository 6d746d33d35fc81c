"""Metrics text: one scrape of several processes, and a port for a process without one.

With `--workers`, each process offers its metrics at a socket in a folder of the supervisor. The
process that a scrape meets reads all of them, and adds the label `process` to each value.
"""

import asyncio
import logging
import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from langgraph_runtime_sql.errors import DatabaseOutage, RuntimeSqlError
from langgraph_runtime_sql.gauges import sampler
from threadhold.http.metrics_access import MetricsAccess

logger = logging.getLogger(__name__)

FOLDER, NUMBER = "THREADHOLD_METRICS_FOLDER", "THREADHOLD_PROCESS"
READ_SECONDS = 3.0
HEAD_BYTES = 65_536
_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (.+)")


class Metrics:
    """Answer `/metrics` with all processes; leave `?format=json` to the stock route.

    Args:
        stock: The app of the stock route.
    """

    def __init__(self, stock: ASGIApp) -> None:
        self._stock = stock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if Request(scope).query_params.get("format") == "json":
            await self._stock(scope, receive, send)
            return
        from prometheus_client import CONTENT_TYPE_LATEST

        response = Response(await of_all(), media_type=CONTENT_TYPE_LATEST)
        await response(scope, receive, send)


async def of_this() -> str:
    """Return the metrics of this process."""
    from prometheus_client import generate_latest

    try:
        await sampler.sample()
    except DatabaseOutage:
        # The gauge of the state says so.
        pass
    except RuntimeSqlError as error:
        # The counters are still true.
        logger.warning("The database does not answer a scrape", exc_info=error)
    return generate_latest().decode()


async def of_all() -> str:
    """Return the metrics of this process, or of all that its supervisor runs."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return await of_this()
    sockets = sorted(Path(folder).glob("*.sock"))
    texts = await asyncio.gather(*map(_read, sockets))
    return merged({path.stem: text for path, text in zip(sockets, texts, strict=True)})


async def _read(path: Path) -> str:
    """Return the metrics of another process; nothing if it has just ended."""
    try:
        async with asyncio.timeout(READ_SECONDS):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                return (await reader.read()).decode()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return ""


def merged(texts: Mapping[str, str]) -> str:
    """Return the texts of several processes as one, with the label `process`.

    Args:
        texts: The metrics of each process, by the name of the process.
    """
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for process, text in texts.items():
        family = ""
        for line in text.splitlines():
            if line.startswith("#"):
                parts = line.split(" ", 3)
                if len(parts) > 2 and parts[1] in ("HELP", "TYPE"):
                    family = parts[2]
                    head = heads.setdefault(family, [])
                    if line not in head and len(head) < 2:
                        head.append(line)
            elif found := _SAMPLE.fullmatch(line):
                name, labels, value = found.groups()
                inside = f'process="{process}"' + (f",{labels}" if labels else "")
                samples.setdefault(family, []).append(f"{name}{{{inside}}} {value}")
    lines = [line for name, found in samples.items() for line in (*heads.get(name, ()), *found)]
    return "\n".join([*lines, ""])


@asynccontextmanager
async def offered() -> AsyncIterator[None]:
    """Offer the metrics of this process to its siblings until the end of the block."""
    folder, number = os.environ.get(FOLDER), os.environ.get(NUMBER)
    if not (folder and number):
        yield
        return

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await of_this()).encode())
        await writer.drain()
        writer.close()

    path = Path(folder, f"{number}.sock")
    path.unlink(missing_ok=True)
    server = await asyncio.start_unix_server(answer, path)
    try:
        yield
    finally:
        server.close()
        path.unlink(missing_ok=True)


def _authorization(head: bytes) -> str | None:
    """Return the first `Authorization` header in the head of a request."""
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"authorization":
            return value.decode("latin-1").strip()
    return None


@asynccontextmanager
async def served(host: str, port: int, access: MetricsAccess) -> AsyncIterator[None]:
    """Answer `/metrics` and `/ok` at a port until the end of the block.

    Args:
        host: Address to listen on.
        port: Port to listen on.
        access: The callers that may read the metrics.

    Raises:
        OSError: the port is not free.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].partition(b"?")[0] if head.count(b" ") >= 2 else b""
            status, body = "404 Not Found", ""
            if path == b"/metrics" and not access.allows(_authorization(head)):
                status = "401 Unauthorized"
            elif path == b"/metrics":
                status, body = "200 OK", await of_this()
            elif path == b"/ok":
                status, body = "200 OK", '{"ok":true}'
            content = body.encode()
            kind = "application/json" if path == b"/ok" else "text/plain; version=1.0.0"
            writer.write(
                f"HTTP/1.1 {status}\r\ncontent-type: {kind}; charset=utf-8\r\n"
                f"content-length: {len(content)}\r\nconnection: close\r\n\r\n".encode()
                + content
            )
            await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # The client left, or sent no request.
        finally:
            writer.close()

    server = await asyncio.start_server(answer, host, port, limit=HEAD_BYTES)
    try:
        yield
    finally:
        server.close()
