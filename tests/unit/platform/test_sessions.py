"""Sessions end by themselves, and each command of a WebSocket is checked before the application."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from langgraph_runtime_sql.ops import revocations
from threadhold import sessions
from threadhold.http import session_guard
from threadhold.http.layers import Layer
from threadhold.sessions import Target

TOKEN = Target(token_id="t")
WEBSOCKET = {"type": "websocket", "path": "/"}
HTTP = {"type": "http", "method": "POST", "path": "/", "headers": []}


@pytest.fixture
def revoked(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Replace the deny-list by a set. A process asks it again at every check."""
    found: set[str] = set()

    async def find(keys: Any) -> set[str]:
        return found & set(keys)

    monkeypatch.setattr(revocations, "find", find)
    monkeypatch.setattr(sessions, "CHECK_SECONDS", 0.0)
    monkeypatch.setattr(sessions, "_known", {})
    return found


async def answered(app: Any, scope: dict[str, Any], messages: list[Any] | None = None) -> list[Any]:
    """Return what the guarded application sends. After the messages, the client is silent."""
    left, sent = list(messages or []), []

    async def receive() -> Any:
        if left:
            return left.pop(0)
        return await asyncio.get_running_loop().create_future()

    async def send(message: Any) -> None:
        sent.append(message)

    async with asyncio.timeout(60):
        await Layer(app, [session_guard.guard])(dict(scope), receive, send)
    return sent


def limited(
    begun: Callable[[Any], None], *first: dict[str, Any], seen: list[Any] | None = None
) -> Any:
    """Make an application that begins a session, sends messages, and reads until the end."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        begun(scope)
        for message in first:
            await send(message)
        while True:
            message = await receive()
            if seen is not None:
                seen.append(message)

    return app


def expiring(scope: Any) -> None:
    sessions.begin(scope, expires_at=time.time() + 0.05, targets=[TOKEN])


def lasting(scope: Any) -> None:
    sessions.begin(scope, expires_at=time.time() + 1e12, targets=[TOKEN])


async def test_command_after_a_revocation_does_not_reach_the_application(revoked: set[str]) -> None:
    seen: list[Any] = []

    def begun(scope: Any) -> None:
        lasting(scope)
        revoked.add(TOKEN.key)

    app = limited(begun, {"type": "websocket.accept"}, seen=seen)
    command = {"type": "websocket.receive", "text": "run"}
    sent = await answered(app, WEBSOCKET, [{"type": "websocket.connect"}, command])
    assert seen == [{"type": "websocket.connect"}]
    assert sent[-1] == {"type": "websocket.close", "code": 1008, "reason": "The token is revoked"}


async def test_command_of_a_valid_session_reaches_the_application(revoked: set[str]) -> None:
    seen: list[Any] = []
    command = {"type": "websocket.receive", "text": "run"}
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await answered(limited(lasting, seen=seen), WEBSOCKET, [command])
    assert seen == [command]


async def test_silent_request_without_an_answer_gets_401() -> None:
    start, body = await answered(limited(expiring), HTTP)
    assert start["status"] == 401
    assert b"The token has expired" in body["body"]


async def test_stream_ends_with_an_error_event() -> None:
    headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
    start = {"type": "http.response.start", "status": 200, "headers": headers}
    sent = await answered(limited(expiring, start), HTTP)
    assert sent[0] == start
    assert sent[1]["body"].startswith(b'event: error\r\ndata: {"error":"SessionEnded"')


async def test_begun_answer_stays_incomplete() -> None:
    start = {"type": "http.response.start", "status": 200, "headers": []}
    assert await answered(limited(expiring, start), HTTP) == [start]


async def test_timeout_of_the_application_is_not_an_end_of_the_session() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        lasting(scope)
        raise TimeoutError("of the application")

    with pytest.raises(TimeoutError, match="of the application"):
        await answered(app, HTTP)


async def test_open_sessions_are_checked_without_any_message(
    revoked: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "CHECK_SECONDS", 0.01)

    def begun(scope: Any) -> None:
        lasting(scope)
        revoked.add(TOKEN.key)

    async with sessions.watching():
        sent = await answered(limited(begun, {"type": "websocket.accept"}), WEBSOCKET)
    assert sent[-1]["reason"] == "The token is revoked"


@pytest.mark.parametrize(
    "named", [{}, {"tenant": "a"}, {"subject": "a"}, {"token_id": "a", "subject": "b"}], ids=str
)
def test_target_is_a_token_or_a_user(named: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="either a token, or a tenant and a user"):
        Target(**named)


def test_keys_of_different_targets_differ() -> None:
    targets = [
        Target(token_id='["subject", "a", "b"]'),
        Target(tenant="a", subject="b"),
        Target(tenant="a.b", subject=""),
        Target(tenant="a", subject="b.c"),
        Target(tenant="a.b", subject="c"),
    ]
    assert len({target.key for target in targets}) == len(targets)


async def test_requests_with_one_token_share_a_look_up_until_something_is_revoked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[asyncio.Future[set[str]]] = []

    async def find(keys: Any) -> set[str]:
        asked.append(asyncio.get_running_loop().create_future())
        return await asked[-1]

    async def lift(target: Target) -> bool:
        return True

    monkeypatch.setattr(revocations, "find", find)
    monkeypatch.setattr(revocations, "lift", lift)
    monkeypatch.setattr(sessions, "_known", {})
    first = [asyncio.create_task(sessions.is_revoked([TOKEN])) for _ in range(50)]
    while not asked:
        await asyncio.sleep(0)
    assert len(asked) == 1
    # The others go on without the request that was first.
    first[0].cancel()
    # What is changed now, the look-up under way may not have seen.
    await sessions.lift(Target(token_id="other"))
    later = asyncio.create_task(sessions.is_revoked([TOKEN]))
    while len(asked) < 2:
        await asyncio.sleep(0)
    asked[1].set_result({TOKEN.key})
    assert await later
    asked[0].set_result(set())
    answers = await asyncio.gather(*first, return_exceptions=True)
    assert len(asked) == 2
    assert answers[1:] == [False] * 49
    assert await sessions.is_revoked([TOKEN])
