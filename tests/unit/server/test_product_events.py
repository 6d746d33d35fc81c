"""Product events: the stream of a run is translated, for any sizes of its chunks."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from langgraph_sdk.schema import StreamPart
from starlette.responses import JSONResponse, StreamingResponse

from server.routes import ProductRoutes
from server.routes.events import Event, stream_run
from server.routes.forwarding import Request

RUN = "/api/threads/t1/runs/r1"
STREAM = (
    b": heartbeat\r\n\r\n"
    b'event: metadata\r\ndata: {"run_id": "r1"}\r\nid: 1\r\n\r\n'
    b'event: values\r\ndata: {"said": "caf\xc3\xa9"}\r\nid: 2\r\n\r\n'
    b": heartbeat\r\n\r\n"
    b'event: values\r\ndata: {"said": "two"}\r\n\r\n'
)


class Translator:
    """Passes on the run's data, with the ids of the run."""

    def begin(self, thread_id: str, run_id: str) -> Iterator[Event]:
        yield Event("begin", [thread_id, run_id])

    def follow(self, part: StreamPart) -> Iterator[Event]:
        data: Any = part.data
        if part.event == "values":
            yield Event("said", data["said"])

    def end(self) -> Iterator[Event]:
        yield Event("end", None)


async def route(request: Request) -> None:
    await stream_run(request, "/threads/t1/runs/stream", {"input": 1}, Translator())


async def answer(platform: Any) -> httpx.Response:
    app = ProductRoutes(platform, max_body_bytes=100, products={"POST /stream": route})
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://test"
    ) as client:
        return await client.post("/stream", content="{}")


@pytest.mark.parametrize("size", [1, 2, 7, 50, len(STREAM)])
async def test_events_are_translated_as_they_arrive(size: int) -> None:
    asked: list[Any] = []

    async def pieces() -> Any:
        for start in range(0, len(STREAM), size):
            yield STREAM[start : start + size]

    async def platform(scope: Any, receive: Any, send: Any) -> None:
        asked.append((scope["method"], scope["path"], (await receive())["body"]))
        headers = {"content-location": RUN, "x-of": "the platform", "content-type": "x/y"}
        await StreamingResponse(pieces(), headers=headers)(scope, receive, send)

    response = await answer(platform)
    assert asked == [
        ("POST", "/threads/t1/runs/stream", b'{"on_disconnect": "continue", "input": 1}')
    ]
    assert response.status_code == 200
    assert response.headers["x-of"] == "the platform"
    assert response.headers.get_list("content-type") == ["text/event-stream; charset=utf-8"]
    assert response.text == (
        'event: begin\ndata: ["t1", "r1"]\n\n'
        ": heartbeat\n\n"
        'event: said\ndata: "caf\\u00e9"\n\n'
        ": heartbeat\n\n"
        'event: said\ndata: "two"\n\n'
        "event: end\ndata: null\n\n"
    )


async def test_refusal_of_platform_is_passed_on() -> None:
    refusal = JSONResponse({"detail": "Thread not found"}, 404, {"x-of": "the platform"})
    response = await answer(refusal)
    assert response.status_code == 404
    assert response.json() == {"detail": "Thread not found"}
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-of"] == "the platform"


async def test_a_stopping_server_says_in_the_products_stream_how_to_resume() -> None:
    told = {"type": "resume", "path": "/threads/t1/runs/r1/stream", "last_event_id": "3"}
    stream = f'event: said\ndata: "one"\n\nevent: resume\ndata: {json.dumps(told)}\n\n'

    async def platform(scope: Any, receive: Any, send: Any) -> None:
        await StreamingResponse(iter([stream]), headers={"content-location": RUN})(
            scope, receive, send
        )

    text = (await answer(platform)).text
    assert f"event: resume\ndata: {json.dumps(told)}\n\n" in text
