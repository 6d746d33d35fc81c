"""Which product routes a project has, and which requests they answer."""

import os
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import JSONResponse

from server import routes
from server.routes import ProductRoutes, offered
from server.routes.forwarding import Request
from tests.support.processes import GRAPHS, ROOT
from threadhold.config_file import read_config

OURS = ROOT / "my_agent" / "chat" / "graph.py"


async def echo(request: Request) -> None:
    """Answer with the request as the route sees it."""
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
def test_routes_are_offered_where_the_project_serves_our_graph(spec: Any, ours: bool) -> None:
    graphs = read_config({"graphs": {"chat": spec}}).graphs
    assert list(offered(graphs)) == (list(ROUTES) if ours else [])


@pytest.mark.usefixtures("chat_has_routes")
def test_our_graph_under_another_id_has_no_routes() -> None:
    assert offered(read_config({"graphs": {"talk": f"{OURS}:graph"}}).graphs) == {}


@pytest.mark.usefixtures("chat_has_routes")
def test_symbolic_link_to_our_graph_counts_as_our_graph(tmp_path: Path) -> None:
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
async def test_route_matches_its_exact_method_and_path(
    method: str, path: str, answer: Any, prefix: str
) -> None:
    app = ProductRoutes(platform, max_body_bytes=10, products=ROUTES)
    transport = httpx.ASGITransport(app, root_path=prefix)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        assert (await client.request(method, prefix + path, content="7")).json() == answer


async def test_too_large_body_is_refused_with_413() -> None:
    app = ProductRoutes(platform, max_body_bytes=10, products=ROUTES)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://test"
    ) as client:
        answer = await client.post("/sums", content="7" * 11)
    assert answer.status_code == 413
    assert "limit: 10 bytes" in answer.json()["detail"]
