"""Compression: send JSON answers with gzip to clients that accept it.

Streams are sent as they are, and so is what is small, or has another type, an encoding, a range or an `ETag`.

Compressed answers can be guessed by their size if they have both a secret and a text that an attacker has
chosen (BREACH). The attacker needs the victim's browser for that, which sends cookies to other sites, but
no bearer tokens. So requests of other sites with cookies get no compressed answers. The API's answers have
no secrets beside what they are about, either.
"""

import asyncio
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message

from langgraph_runtime_sql.errors import TooManyWaiting
from langgraph_runtime_sql.tenancy import scope
from langgraph_runtime_sql.thread_pool import ThreadPool
from threadhold.http.layers import Exchange

# Smaller answers fit into a packet or two.
SMALLEST = 1_024
# Larger ones take milliseconds, so a thread does it. zlib releases the interpreter's lock.
INLINE_BYTES = 16 * 2**10
# How much of a tenant waits for a thread. Further answers are sent as they are.
MOST_WAITING = 16
# The best of the fast ones: JSON repeats enough for it.
_LEVEL, _GZIP = 3, 16 + zlib.MAX_WBITS
_WHOLE_ANSWERS = range(200, 600)
_OWN_ENCODING = ("content-encoding", "content-range", "etag")

_pool = ThreadPool(2, "compression")


async def compress(exchange: Exchange) -> None:
    """Compress the answer, if it may be and the client accepts it."""
    if exchange.scope["type"] == "http":
        exchange.send = _Compressor(exchange).send


def accepted(header: str) -> set[str]:
    """Return the encodings that an `Accept-Encoding` names and does not exclude."""
    weights = (each.partition(";") for each in header.lower().split(","))
    return {name.strip() for name, _, weight in weights if not _is_zero(weight)}


def _is_zero(weight: str) -> bool:
    """Return whether a weight of RFC 9110 excludes its encoding."""
    return weight.replace(" ", "").rstrip("0.") == "q="


class _Compressor:
    """Sends one answer.

    Args:
        exchange: The request. What sends its answer here is replaced later.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._headers: Iterable[tuple[bytes, bytes]] = exchange.scope["headers"]
        self._send = exchange.send
        # The beginning of an answer that may be compressed, until its body comes.
        self._start: Message | None = None

    async def send(self, message: Message) -> None:
        """Send a message of the answer."""
        if message["type"] == "http.response.start" and _may_be_compressed(message):
            MutableHeaders(scope=message).add_vary_header("Accept-Encoding")
            if _accepts(Headers(raw=list(self._headers))):
                self._start = message
                return
        elif self._start is not None:
            start, self._start = self._start, None
            await self._begin(start, message)
        await self._send(message)

    async def _begin(self, start: Message, message: Message) -> None:
        """Send the beginning of an answer, and compress its body, which is in one message."""
        body = message.get("body", b"")
        if message["type"] == "http.response.body" and not message.get("more_body"):
            made = await _compressed(body) if len(body) >= SMALLEST else None
            if made is not None:
                headers = MutableHeaders(scope=start)
                headers["content-encoding"] = "gzip"
                headers["content-length"] = str(len(made))
                message["body"] = made
        await self._send(start)


def _may_be_compressed(start: Message) -> bool:
    """Return whether an answer is JSON, whole and large enough."""
    headers = Headers(scope=start)
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    # Without a length it is a stream, such as that of a wait.
    length = headers.get("content-length", "")
    return (
        (kind == "application/json" or kind.endswith("+json"))
        and start["status"] in _WHOLE_ANSWERS
        and length.isdecimal()
        and int(length) >= SMALLEST
        and not any(name in headers for name in _OWN_ENCODING)
        and "no-transform" not in headers.get("cache-control", "")
    )


def _accepts(asked: Mapping[str, str]) -> bool:
    """Return whether the client of a request gets compressed answers."""
    is_of_page = asked.get("sec-fetch-site", "") in ("same-origin", "none")
    if "cookie" in asked and not is_of_page:
        return False
    return "gzip" in accepted(asked.get("accept-encoding", ""))


async def _compressed(body: bytes) -> bytes | None:
    """Return a body with gzip, or None if too much waits for that."""
    if len(body) < INLINE_BYTES:
        return _gzip(body)
    try:
        # Without tenants, too, no more may wait.
        turn = scope.turn() or ""
        work: Any = _pool.submit(lambda: _gzip(body), tenant=turn, most=MOST_WAITING)
    except TooManyWaiting:
        return None
    made: bytes = await asyncio.wrap_future(work)
    return made


def _gzip(body: bytes) -> bytes:
    return zlib.compress(body, _LEVEL, _GZIP)
