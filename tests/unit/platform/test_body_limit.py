"""Request bodies that are too large, as the middleware sees them."""

import asyncio
from typing import Any

import pytest

from threadhold.http import body_limits
from threadhold.http.layers import Layer


async def test_a_client_that_declares_too_much_and_sends_nothing_gets_413_after_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(body_limits, "DRAIN_PAUSE_SECONDS", 0.01)
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("the request was handled")

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "headers": [(b"content-length", b"20000000")]}
    async with asyncio.timeout(60):
        limit = body_limits.BodyLimit(limit=10_000_000, seconds=60)
        await Layer(app, [limit])(scope, receive, send)
    start, body = sent
    assert start["status"] == 413
    assert (b"connection", b"close") in start["headers"]
    assert b"limit: 10000000 bytes" in body["body"]
