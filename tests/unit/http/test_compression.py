"""Compression: which answers are sent with gzip, and that large ones do not hold up the event loop."""

import asyncio
import gzip
import threading
from collections.abc import Iterator

import httpx
import pytest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from threadhold.http import compression
from threadhold.http.layers import Layer

LARGE = {"text": "value " * 1_000}
BODY = JSONResponse(LARGE).body
GZIP = {"accept-encoding": "br, gzip;q=0.5"}


async def asked(answer: ASGIApp, method: str = "GET", **headers: str) -> httpx.Response:
    """Ask an app that gives an answer."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await answer(scope, receive, send)

    transport = httpx.ASGITransport(Layer(app, [compression.compress]))
    async with httpx.AsyncClient(transport=transport, base_url="http://t") as http:
        sent = {"accept-encoding": "identity", **headers}
        return await http.request(method, "/", headers=sent)


async def test_large_json_is_compressed_and_says_what_it_depends_on() -> None:
    found = await asked(JSONResponse(LARGE, headers={"vary": "Origin"}), **GZIP)
    assert found.json() == LARGE
    assert found.headers["content-encoding"] == "gzip"
    assert found.headers["vary"] == "Origin, Accept-Encoding"
    assert int(found.headers["content-length"]) < len(BODY) / 5
    plain = await asked(JSONResponse(LARGE), "GET")
    assert (plain.headers.get("content-encoding"), plain.content) == (None, BODY)
    assert plain.headers["vary"] == "Accept-Encoding"


def streamed() -> Iterator[bytes]:
    yield b"\n"
    yield BODY


@pytest.mark.parametrize(
    ("answer", "headers"),
    [
        (JSONResponse({"a": "b" * 900}), GZIP),
        (Response("data: " + "x" * 9_000, media_type="text/event-stream"), GZIP),
        (StreamingResponse(streamed(), media_type="application/json"), GZIP),
        (Response(b"x" * 9_000, media_type="image/png"), GZIP),
        (JSONResponse(LARGE, headers={"etag": '"1"'}), GZIP),
        (JSONResponse(LARGE, 206, headers={"content-range": "bytes 0-9/10"}), GZIP),
        (JSONResponse(LARGE, headers={"cache-control": "no-transform"}), GZIP),
        (JSONResponse(LARGE), {"accept-encoding": "br, gzip;q=0"}),
        (JSONResponse(LARGE), {**GZIP, "cookie": "a=b", "sec-fetch-site": "cross-site"}),
        (JSONResponse(LARGE), {**GZIP, "cookie": "a=b"}),
    ],
    ids=[
        "small",
        "events",
        "streamed",
        "image",
        "tagged",
        "part",
        "no transform",
        "refused",
        "cookie of another site",
        "cookie",
    ],
)
async def test_other_answers_are_sent_as_they_are(answer: ASGIApp, headers: dict[str, str]) -> None:
    found = await asked(answer, **headers)
    assert "content-encoding" not in found.headers
    assert len(found.content) > 900


async def test_page_of_the_same_origin_with_cookies_and_head_get_the_same_headers() -> None:
    headers = {**GZIP, "cookie": "a=b", "sec-fetch-site": "same-origin"}
    found = [await asked(JSONResponse(LARGE), method, **headers) for method in ("GET", "HEAD")]
    assert found[0].headers == found[1].headers
    assert found[0].headers["content-encoding"] == "gzip"


async def test_large_body_is_compressed_in_a_thread_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stock, threads = compression._gzip, set[str]()
    go = threading.Event()

    def held(body: bytes) -> bytes:
        threads.add(threading.current_thread().name)
        assert go.wait(60)
        return stock(body)

    monkeypatch.setattr(compression, "_gzip", held)
    large = {"text": "value " * 20_000}
    count = compression.MOST_WAITING + 3
    asking = [asyncio.create_task(asked(JSONResponse(large), **GZIP)) for _ in range(count)]
    # The loop goes on, and what is too much is sent as it is.
    done, waiting = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
    assert ["content-encoding" in (await each).headers for each in done] == [False] * len(done)
    go.set()
    found: list[httpx.Response] = [await each for each in waiting]
    assert all(each.json() == large for each in found)
    assert {each.headers["content-encoding"] for each in found} == {"gzip"}
    assert all(name.startswith("compression") for name in threads)


def test_what_is_sent_is_gzip() -> None:
    assert gzip.decompress(compression._gzip(BODY)) == BODY
