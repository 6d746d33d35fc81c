"""Product routes: which ones a project has, and how OpenAPI describes them."""

import os
from pathlib import Path
from typing import Any

import pytest

from server import routes
from server.routes import offered
from server.routes.diagnosis import ROUTES as DIAGNOSIS
from server.routes.documents import ROUTES as DOCUMENTS
from server.routes.endpoint import described
from server.routes.runs import chosen
from tests.support.processes import GRAPHS, ROOT
from threadhold.config_file import read_config

OURS = ROOT / "my_agent" / "chat" / "graph.py"


ROUTES = DOCUMENTS


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
    assert offered(read_config({"graphs": {"talk": f"{OURS}:graph"}}).graphs) == []


@pytest.mark.usefixtures("chat_has_routes")
def test_link_to_our_graph_has_its_routes(tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(OURS.parent)
    graphs = read_config({"graphs": {"chat": f"{tmp_path}/linked/graph.py:graph"}}).graphs
    assert list(offered(graphs)) == list(ROUTES)


def test_types_of_bodies_and_queries_are_described() -> None:
    made = described([*DOCUMENTS, *DIAGNOSIS])
    shown = made["paths"]["/api/documents"]["get"]
    assert {each["name"]: each["schema"].get("maximum") for each in shown["parameters"]} == {
        "limit": 1000,
        "after": None,
        "name": None,
    }
    upload = made["paths"]["/api/documents/{name}"]["put"]
    assert [each["name"] for each in upload["parameters"]] == ["name"]
    assert list(upload["requestBody"]["content"]) == ["application/octet-stream"]
    added = made["paths"]["/diagnosis/{thread_id}/events"]["post"]["requestBody"]
    schemas, place = made["components"]["schemas"], "#/components/schemas/"
    notes = added["content"]["application/json"]["schema"]["$ref"].removeprefix(place)
    [note] = schemas[notes]["properties"]["events"]["items"].values()
    assert schemas[note.removeprefix(place)]["properties"]["text"]["maxLength"] == 4000


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
