"""Product routes: which ones a project has, and how they receive requests."""

import os
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import JSONResponse

from server import routes
from server.routes import ProductRoutes, offered
from server.routes.forwarding import Request
from server.routes.runs import chosen
from tests.support.processes import GRAPHS, ROOT
from threadhold.config_file import read_config
from threadhold.http.json_limits import Limits

OURS = ROOT / "my_agent" / "chat" / "graph.py"


async def echo(request: Request) -> None:
    """Answer with the request as the route receives it."""
    answer = {"names": request.names, "body": request.body.decode()}
    await request.respond(JSONResponse(answer), [])


async def platform(scope: Any, receive: Any, send: Any) -> None:
    await JSONResponse("the platform")(scope, receive, send)


ROUTES: dict[str, routes.Handler] = {
    "POST /sums": echo,
    "GET /sums/{sum_id}/parts/{part}": echo,
}


@pytest.fixture
def chat_has_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "PRODUCTS", {"chat": ROUTES})


@pytest.mark.usefixtures("chat_has_routes")
@pytest.mark.parametrize(
    ("spec", "ours"),
    [
        (f"{OURS}:graph", True),
        ({"path": f"{OURS}:graph", "description": "It answers."}, True),
        (f"{os.path.relpath(OURS)}:graph", True),
        (f"{OURS.parent}/../chat/__init__.py:graph", True),
        ("my_agent.chat:graph", True),
        ("my_agent.chat.graph:graph", True),
        (f"{GRAPHS}/echo.py:graph", False),
        ("somebody.chat.graph:graph", False),
    ],
)
def test_routes_exist_if_project_serves_our_graph(spec: Any, ours: bool) -> None:
    graphs = read_config({"graphs": {"chat": spec}}).graphs
    assert list(offered(graphs)) == (list(ROUTES) if ours else [])


@pytest.mark.usefixtures("chat_has_routes")
def test_our_graph_under_other_id_has_no_routes() -> None:
    assert offered(read_config({"graphs": {"talk": f"{OURS}:graph"}}).graphs) == {}


@pytest.mark.usefixtures("chat_has_routes")
def test_link_to_our_graph_has_its_routes(tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(OURS.parent)
    graphs = read_config({"graphs": {"chat": f"{tmp_path}/linked/graph.py:graph"}}).graphs
    assert list(offered(graphs)) == list(ROUTES)


PLATFORM = "the platform"


@pytest.mark.parametrize(
    ("method", "path", "answer"),
    [
        ("POST", "/sums", {"names": {}, "body": "7"}),
        ("GET", "/sums/7/parts/a%20b", {"names": {"sum_id": "7", "part": "a b"}, "body": "7"}),
        ("GET", "/sums", PLATFORM),
        ("POST", "/sums/7/parts/a", PLATFORM),
        ("POST", "/sums/", PLATFORM),
        ("POST", "/sums%0A", PLATFORM),
        ("GET", "/sums//parts/a", PLATFORM),
        ("GET", "/sums/7/parts/a/b", PLATFORM),
        ("POST", "/under/sums", PLATFORM),
        # Without hooks there is no thread policy.
        ("POST", "/threads/resolve", PLATFORM),
    ],
)
@pytest.mark.parametrize("prefix", ["", "/under"])
async def test_route_matches_method_and_path(
    method: str, path: str, answer: Any, prefix: str
) -> None:
    app = ProductRoutes(platform, max_body_bytes=10, products=ROUTES)
    transport = httpx.ASGITransport(app, root_path=prefix)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        assert (await client.request(method, prefix + path, content="7")).json() == answer


async def test_oversized_body_is_rejected_with_413() -> None:
    app = ProductRoutes(platform, max_body_bytes=10, products=ROUTES)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://test"
    ) as client:
        answer = await client.post("/sums", content="7" * 11)
    assert answer.status_code == 413
    assert "limit: 10 bytes" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [("[0,0,0,0]", "too many values: 5 (limit: 4"), ("[[[0]]]", "too deeply: 3 levels (limit: 2")],
)
async def test_json_beyond_limits_is_rejected_before_the_route(content: str, expected: str) -> None:
    limits = Limits(values=4, depth=2)
    app = ProductRoutes(platform, max_body_bytes=100, limits=limits, products=ROUTES)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://test"
    ) as client:
        answer = await client.post("/sums", content=content)
        assert (await client.post("/sums", content="[0,0,0]")).status_code == 200
    assert answer.status_code == 422
    assert expected in answer.json()["detail"]


async def test_route_errors_are_answered_and_platform_errors_pass() -> None:
    """The platform answers its own errors, inside of CORS. No error is answered twice."""

    async def broken(request: Request) -> None:
        raise LookupError("the secret of the route")

    async def broken_platform(scope: Any, receive: Any, send: Any) -> None:
        raise LookupError("the platform's own")

    app = ProductRoutes(broken_platform, max_body_bytes=10, products={"POST /sums": broken})
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://test"
    ) as client:
        answer = await client.post("/sums")
        body = answer.json()
        expected = {"detail": "Internal server error", "reference": body["reference"]}
        assert (answer.status_code, body) == (500, expected)
        with pytest.raises(LookupError, match="the platform's own"):
            await client.get("/other")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("acme.com", "a"),
        ("The one for ACME.com, please.", "a"),
        ("2", "b"),
        ("beta.io (04 May 2026, 12:00 UTC)", "b"),
        ("Default ICP", "c"),
        ("shop.acme.com", None),
        ("beta.io", "b"),
        ("acme.com or Default ICP", None),
        ("hello", None),
        ("9", None),
    ],
)
def test_message_chooses_a_session_by_its_name(text: str, found: str | None) -> None:
    labels = ("acme.com", "beta.io (04 May 2026, 12:00 UTC)", "Default ICP")
    offered = [{"thread_id": id_, "label": label} for id_, label in zip("abc", labels, strict=True)]
    assert chosen(offered, text) == found
