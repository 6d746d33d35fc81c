"""Sessions: connect to an MCP server for one question, within bounds of time and size.

A session serves one tenant once, and then ends with its process or connection. So no tenant gets what a
server keeps of another, and nothing is left behind. The SDK's task groups must be left by the task that
entered them: each session has a task of its own, whatever happens to its caller.
"""

import asyncio
import importlib
import logging
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from my_agent.diagnosis.connector import Connector
from my_agent.diagnosis.connectors import pipe, places
from my_agent.settings import variable

if TYPE_CHECKING:
    import httpx2
    from mcp import Client

T = TypeVar("T")

MAX_BYTES = 8 * 2**20
"""Bytes that a server may send in one session."""
# The SDK waits two seconds each for a server to end by itself, and after it was asked to.
_CLOSING_SECONDS = 6.0

logger = logging.getLogger(__name__)
# The event loop keeps only weak references to its tasks.
_closing: set["asyncio.Task[Any]"] = set()


class ConnectorFailed(RuntimeError):
    """A server did not answer. The message says why, without what the server said."""


async def ask(connector: Connector, tenant: str, work: Callable[["Client"], Awaitable[T]]) -> T:
    """Return what `work` returns, which gets an open session.

    Args:
        connector: the server.
        tenant: the tenant that asks.
        work: ends within the connector's time.

    Raises:
        ConnectorFailed: the server cannot be reached, ends too early, or takes too long.
    """
    task = asyncio.create_task(_ask(connector, tenant, work))
    try:
        await asyncio.wait({task}, timeout=connector.seconds)
    finally:
        late = not task.done()
        if late:
            await _end(task)
    if late:
        raise ConnectorFailed(f"{connector.name} did not answer within {connector.seconds:g} s")
    return task.result()


async def _end(task: "asyncio.Task[Any]") -> None:
    """Cancel a session, and wait until its process or connection has ended."""
    _closing.add(task)
    task.add_done_callback(_ended)
    task.cancel()
    await asyncio.wait({task}, timeout=_CLOSING_SECONDS)


def _ended(task: "asyncio.Task[Any]") -> None:
    _closing.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.warning("A session of a connector did not end well: %r", error)


async def _ask(connector: Connector, tenant: str, work: Callable[["Client"], Awaitable[T]]) -> T:
    async with places.taken(connector, tenant):
        # The import takes a second, once in a process.
        sdk = await asyncio.to_thread(importlib.import_module, "mcp")
        transport = _transport(connector)
        found: list[T] = []
        try:
            async with sdk.Client(transport) as client:
                found.append(await work(client))
        except Exception as error:
            # Any kind: a server is not ours, and its failure is an answer. A group hides the reason.
            logger.warning("Connector %s failed: %s", connector.name, "; ".join(_leaves(error)))
            if not found:
                raise ConnectorFailed(f"{connector.name} could not be asked") from error
        return found[0]


def _leaves(error: BaseException) -> list[str]:
    if isinstance(error, BaseExceptionGroup):
        return [text for each in error.exceptions for text in _leaves(each)]
    return [f"{type(error).__name__}: {str(error)[:200]}"]


def _transport(connector: Connector) -> AbstractAsyncContextManager[Any]:
    """Return the transport of a session, not yet opened.

    Raises:
        ConnectorFailed: the deployment has not provided what the connector names.
    """
    if connector.url is not None:
        return _by_http(connector.url, _values(connector, connector.headers), connector.seconds)
    if shutil.which(connector.command[0]) is None:
        raise ConnectorFailed(f"{connector.name}: its command is not installed")
    named = {name: name for name in connector.environment}
    return _by_command(connector.command, _values(connector, named))


def _values(connector: Connector, variables: dict[str, str]) -> dict[str, str]:
    """Return the values of environment variables, by what they are for."""
    try:
        found = {key: variable(name) for key, name in variables.items()}
    except OSError as error:
        raise ConnectorFailed(f"{connector.name}: a file with a secret is missing") from error
    given = {key: value for key, value in found.items() if value}
    if missing := sorted(variables[key] for key in found.keys() - given.keys()):
        raise ConnectorFailed(f"{connector.name}: {', '.join(missing)} is not set")
    return given


def _by_command(
    command: tuple[str, ...], environment: dict[str, str]
) -> AbstractAsyncContextManager[Any]:
    from mcp import StdioServerParameters, stdio_client

    bounded = ["-I", "-S", str(Path(pipe.__file__)), str(MAX_BYTES), *command]
    server = StdioServerParameters(
        command=sys.executable,
        args=bounded,
        env=environment,
        # A line that is not UTF-8 is a bad line, and not the end of the session.
        encoding_error_handler="replace",
    )
    # The server's complaints are the operator's, as our own are.
    return stdio_client(server, sys.__stderr__ or sys.stderr)


@asynccontextmanager
async def _by_http(url: str, headers: dict[str, str], seconds: float) -> AsyncIterator[Any]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    # Decompressing would undo the bound.
    headers = {**headers, "Accept-Encoding": "identity"}
    bound = _Bound()
    async with (
        httpx2.AsyncClient(
            headers=headers, timeout=seconds, event_hooks={"response": [bound.apply]}
        ) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_BYTES) as streams,
    ):
        yield streams


class _Bound:
    """Counts the bytes of all answers in a session, and ends the one that exceeds `MAX_BYTES`."""

    def __init__(self) -> None:
        self._left = MAX_BYTES

    async def apply(self, response: "httpx2.Response") -> None:
        """Wrap the body of an answer. A hook for the responses of a client."""
        import httpx2

        stream, bound = response.stream, self

        class Counted(httpx2.AsyncByteStream):
            async def __aiter__(self) -> AsyncIterator[bytes]:
                if response.headers.get("content-encoding", "identity").lower() != "identity":
                    raise httpx2.StreamError("The answer is compressed, although this was refused")
                async for part in stream:  # type: ignore[union-attr]
                    bound._left -= len(part)
                    if bound._left < 0:
                        raise httpx2.StreamError(f"The answers have more than {MAX_BYTES:,} bytes")
                    yield part

            async def aclose(self) -> None:
                await stream.aclose()  # type: ignore[union-attr]

        response.stream = Counted()
