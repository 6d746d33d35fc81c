"""PostgresWire: LISTEN and NOTIFY. It works without any other server.

A NOTIFY serializes commits, so a process sends at most one in `EVERY_SECONDS`.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

import psycopg

from langgraph_runtime_sql.events import wire
from langgraph_runtime_sql.events.wire import Message, Receive

logger = logging.getLogger(__name__)

CHANNEL = "threadhold"
EVERY_SECONDS = 0.025
# Postgres limits a payload to 8,000 bytes.
PAYLOAD_BYTES = 7_000
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0
# A silent connection is checked this often.
CHECK_SECONDS = 10.0
_NETWORK = {"connect_timeout": 10, "keepalives_idle": 10, "tcp_user_timeout": 25_000}


class PostgresWire:
    """The messages of one process over Postgres.

    Args:
        dsn: The connection string.
        name: The unique name of this process.
        receive: Called with each message of another process.
        connected: Called when messages arrive again: earlier ones may have been lost.

    Attributes:
        well: Whether messages arrive.
    """

    def __init__(self, dsn: str, name: str, receive: Receive, connected: Callable[[], None]):
        self._dsn, self._name = dsn, name
        self._receive, self._connected = receive, connected
        self._waiting: dict[Message, None] = {}
        self._due = asyncio.Event()
        self.well = False

    def send(self, message: Message) -> None:
        """Send a message soon. Call it on the event loop of the tasks."""
        self._waiting[message] = None
        self._due.set()

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        """Return what sends and receives until cancelled, each for a task of its own."""
        return [self._repeat(self._listen, "listen"), self._repeat(self._send_all, "notify")]

    async def _connect(self) -> psycopg.AsyncConnection[Any]:
        given = psycopg.conninfo.conninfo_to_dict(self._dsn)
        options: dict[str, Any] = {k: v for k, v in _NETWORK.items() if k not in given}
        return await psycopg.AsyncConnection.connect(
            self._dsn, autocommit=True, application_name="threadhold", **options
        )

    async def _repeat(self, work: Callable[[Any], Awaitable[None]], name: str) -> None:
        """Do `work` on a connection, and again on a new one when that is lost."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            began = time.monotonic()
            try:
                connection = await self._connect()
                try:
                    await work(connection)
                finally:
                    with suppress(psycopg.Error, OSError):
                        await connection.close()
            except (psycopg.Error, OSError) as error:
                if pause == FIRST_PAUSE_SECONDS:
                    logger.warning("Postgres does not %s; trying again: %s", name, error)
            if time.monotonic() - began > LONGEST_PAUSE_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    async def _listen(self, connection: psycopg.AsyncConnection[Any]) -> None:
        await connection.execute(f"LISTEN {CHANNEL}")
        self.well = True
        self._connected()
        try:
            while True:
                async for found in connection.notifies(timeout=CHECK_SECONDS):
                    self._handle(found.payload)
                await connection.execute("SELECT 1")
        finally:
            self.well = False

    def _handle(self, payload: str) -> None:
        try:
            sender, messages = wire.unpack(payload)
        except ValueError:
            logger.warning("Ignored a foreign notification on the channel %s", CHANNEL)
            return
        if sender != self._name:
            for message in messages:
                self._receive(message)

    async def _send_all(self, connection: psycopg.AsyncConnection[Any]) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            waiting, self._waiting = self._waiting, {}
            try:
                for payload in _payloads(self._name, list(waiting)):
                    await connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))
            except BaseException:
                self._waiting = {**waiting, **self._waiting}
                self._due.set()
                raise
            await asyncio.sleep(EVERY_SECONDS)


def _payloads(name: str, messages: list[Message]) -> list[str]:
    """Divide messages into payloads that Postgres accepts."""
    payload = wire.pack(name, messages).decode()
    if len(payload.encode()) <= PAYLOAD_BYTES or len(messages) == 1:
        return [payload]
    half = len(messages) // 2
    return [*_payloads(name, messages[:half]), *_payloads(name, messages[half:])]
