"""What stands around a request: few apps, in one order, and a body that is read once."""

import gc
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp

from tests.support.processes import ROOT, environment, ran
from threadhold.http import middleware, request_body
from threadhold.http.body_limits import BodyLimit, JsonLimit
from threadhold.http.error_boundary import error_boundary, json_errors
from threadhold.http.json_limits import JsonLimits
from threadhold.http.layers import Exchange, Layer
from threadhold.http.request_body import Replaced

MOST = 20
POST = {"type": "http", "method": "POST", "path": "/", "headers": []}


def test_at_most_20_apps_stand_around_a_streamed_run(tmp_path: Path) -> None:
    env = environment(LANGGRAPH_JSON=str(ROOT / "langgraph.json"))
    ended = ran([sys.executable, "-m", "tests.support.asgi_apps"], tmp_path, env)
    assert ended.returncode == 0, ended.stderr[-4000:]
    found = ended.stdout.splitlines()
    print(ended.stdout)
    assert len(found) <= MOST
    steps = [step for line in found for step in line.partition(": ")[2].split(", ") if step]
    once = [step for step in steps if step not in ("RequestTurns", "relative_redirects")]
    # For other hosts these stand around the platform, too. Each request meets one of the two.
    assert len(once) == len(set(once)) == len(steps) - 4
    assert found[-1].endswith("api_request_response.<locals>.app")


class Client:
    """A client that sends a body in parts and then leaves, and keeps the answer."""

    def __init__(self, *parts: bytes) -> None:
        self.left = list(parts)
        self.sent: list[Any] = []
        self.asked = 0

    async def receive(self) -> Any:
        self.asked += 1
        if not self.left:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": self.left.pop(0), "more_body": bool(self.left)}

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    async def ask(self, app: ASGIApp) -> None:
        """Send the request to an app."""
        # uvicorn keeps it with the connection, too.
        self.scope = dict(POST)
        await app(self.scope, self.receive, self.send)


def limited(app: ASGIApp, limit: int = 100) -> Layer:
    """Return an app within the limits of bodies, as a route of the API is."""
    inner = Layer(app, [JsonLimit(JsonLimits(), json_rpc=False)])
    return Layer(inner, [error_boundary, json_errors, BodyLimit(limit=limit, seconds=60)])


async def test_a_body_is_read_once_and_kept() -> None:
    seen: list[bytes] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.extend([await request_body.read(scope, receive) for _ in range(3)])
        assert await receive() == {"type": "http.disconnect"}

    client = Client(b'{"a":', b"1}")
    await client.ask(limited(app))
    assert seen[0] == b'{"a":1}'
    # Not even copied.
    assert seen[0] is seen[1] is seen[2]
    assert client.asked == 3


async def test_a_body_that_a_route_replaces_is_read_in_its_place() -> None:
    async def inner(scope: Any, receive: Any, send: Any) -> None:
        assert await request_body.read(scope, receive) == b"[2]"
        assert await receive() == {"type": "http.disconnect"}
        await PlainTextResponse("read")(scope, receive, send)

    async def route(scope: Any, receive: Any, send: Any) -> None:
        assert await request_body.read(scope, receive) == b"[1]"
        await inner(scope, request_body.put(scope, Replaced(b"[2]", receive)), send)

    client = Client(b"[1]")
    await client.ask(limited(route))
    assert client.sent[-1]["body"] == b"read"


async def test_middleware_of_a_project_may_change_the_body() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = await request_body.read(scope, receive)
        await PlainTextResponse(body)(scope, receive, send)

    async def changing(exchange: Exchange) -> None:
        receive = exchange.receive

        async def upper() -> Any:
            message = await receive()
            return {**message, "body": message["body"].upper()}

        exchange.receive = upper

    route = Layer(app, [JsonLimit(JsonLimits(), json_rpc=False)])
    client = Client(b'"a', b'b"')
    await client.ask(Layer(Layer(route, [changing]), [BodyLimit(limit=100, seconds=60)]))
    assert client.sent[-1]["body"] == b'"AB"'


async def test_a_request_is_freed_as_soon_as_it_is_answered() -> None:
    """Its body may be large, and garbage collection comes late."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = await request_body.read(scope, receive)
        await PlainTextResponse(body, 400)(scope, receive, send)

    layered = Layer(limited(app), middleware.around_host()[:1])
    await Client(b"[1]").ask(layered)
    gc.collect()
    gc.disable()
    try:
        await Client(b"[1]").ask(layered)
        assert gc.collect() == 0
    finally:
        gc.enable()


async def test_a_refused_body_is_answered_whatever_the_app_makes_of_the_refusal() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        try:
            await request_body.read(scope, receive)
        except HTTPException:
            await PlainTextResponse("no matter")(scope, receive, send)

    client = Client(b"x" * 11)
    await client.ask(Layer(app, [json_errors, BodyLimit(limit=10, seconds=60)]))
    start, body = client.sent
    assert (start["status"], (b"connection", b"close") in start["headers"]) == (413, True)
    assert b"limit: 10 bytes" in body["body"]


@pytest.mark.parametrize("held", [False, True], ids=["before the answer", "an error is held back"])
async def test_a_failure_is_a_500_until_an_answer_has_begun(held: bool) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if held:
            await send({"type": "http.response.start", "status": 404, "headers": []})
        raise ZeroDivisionError

    client = Client(b"{}")
    await client.ask(limited(app))
    start, body = client.sent
    assert start["status"] == 500
    assert b"Internal server error" in body["body"]


async def test_nothing_is_answered_to_a_client_that_left_in_its_body() -> None:
    client = Client()
    await client.ask(limited(PlainTextResponse("never")))
    assert client.sent == []


async def test_steps_see_the_answer_from_the_inside_out_and_end_in_that_order() -> None:
    seen: list[str] = []

    def step(name: str) -> Any:
        async def enter(exchange: Exchange) -> ASGIApp | None:
            async def start(message: Any) -> None:
                seen.append(f"{name} starts {message['status']}")

            async def end(error: BaseException | None) -> None:
                seen.append(f"{name} ends {exchange.status}")

            exchange.at_start(start)
            exchange.at_end(end)
            return PlainTextResponse("no", 403) if name == "second" else None

        return enter

    client = Client()
    await client.ask(Layer(PlainTextResponse("never"), [*map(step, ("first", "second", "third"))]))
    assert client.sent[-1]["body"] == b"no"
    assert seen == ["second starts 403", "first starts 403", "second ends 403", "first ends 403"]
