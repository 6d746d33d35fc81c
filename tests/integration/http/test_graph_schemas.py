"""Schemas are computed once for each graph, and for a factory once for each config and user."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.processes import GRAPHS
from tests.support.served import served

pytestmark = pytest.mark.usefixtures("each_database")

PATIENCE = 60.0
ASSISTANTS = 30

# `Counted` writes a line whenever a schema of it is made, and `made` whenever it makes a graph.
PROJECT = """
from pathlib import Path
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph_sdk.runtime import ServerRuntime
from typing_extensions import TypedDict

RECORD = Path(__file__).parent


def record(name: str) -> None:
    with (RECORD / name).open("a") as file:
        file.write("x")


class Counted:
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        record("schemas")
        return handler(int)


class State(TypedDict, total=False):
    counted: Counted


def node(state: Any) -> Any:
    return {}


def built(state: Any) -> Any:
    return StateGraph(state).add_node(node).add_edge(START, "node").add_edge("node", END).compile()


static = built(State)


def made(config: dict[str, Any], runtime: ServerRuntime) -> Any:
    record("made")
    kind = config["configurable"].get("kind", "plain")
    user = runtime.user.identity if runtime.user else "nobody"
    return built(TypedDict("Made", {f"{kind}_of_{user}": int}, total=False))
"""


class Project:
    """A served project and the calls that it recorded."""

    def __init__(self, client: httpx.Client, folder: Path) -> None:
        self.client = client
        self._folder = folder

    def recorded(self, name: str) -> int:
        path = self._folder / name
        return len(path.read_text()) if path.exists() else 0

    def assistants(self, graph: str, count: int, user: str = "ada", **fields: Any) -> list[str]:
        """Create assistants with unique names."""
        made = []
        for number in range(count):
            name = f"{graph} {user} {number} {sorted(fields)}"
            body = {"graph_id": graph, "name": name, **fields}
            answer = self.client.post("/assistants", json=body, headers={"x-user": user})
            made.append(str(answer.raise_for_status().json()["assistant_id"]))
        return made

    def tools(self, user: str = "ada") -> dict[str, Any]:
        """Return the titles of all tools with the properties of their input."""
        found: dict[str, Any] = {}
        cursor: Any = 0
        headers = {"x-user": user, "accept": "application/json"}
        while cursor is not None:
            params = {"cursor": str(cursor)}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}
            result = self.client.post("/mcp", json=body, headers=headers).json()["result"]
            found |= {
                each["title"]: sorted(each["inputSchema"]["properties"]) for each in result["tools"]
            }
            cursor = result.get("nextCursor")
        return found

    def schemas(self, assistant: str, user: str = "ada") -> Any:
        """Return the answer of the route for schemas."""
        path = f"/assistants/{assistant}/schemas"
        return self.client.get(path, headers={"x-user": user}).raise_for_status().json()


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    (tmp_path / "graphs.py").write_text(PROJECT)
    config = {
        "graphs": {
            "static": "./graphs.py:static",
            "again": "./graphs.py:static",
            "made": "./graphs.py:made",
            "echo": f"{GRAPHS}/echo.py:graph",
        },
        "auth": {"path": f"{GRAPHS}/auth.py:auth"},
    }
    (tmp_path / "langgraph.json").write_text(json.dumps(config))
    with (
        served(tmp_path, tmp_path / "langgraph.json") as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE) as client,
    ):
        yield Project(client, tmp_path)


def test_schemas_are_computed_once_for_all_assistants_of_a_graph(project: Project) -> None:
    first, *others = project.assistants("static", ASSISTANTS)
    before = project.schemas(first)
    assert before["input_schema"]["properties"]["counted"]["type"] == "integer"
    once = project.recorded("schemas")
    assert once > 0
    assert all(project.schemas(each) == before for each in others)
    tools = project.tools()
    assert project.recorded("schemas") <= 2 * once  # The same graph as "again" has its own title.
    assert sum(properties == ["counted"] for properties in tools.values()) == ASSISTANTS + 2


def test_graph_with_two_ids_has_a_title_for_each(project: Project) -> None:
    titles = {
        graph: project.schemas(project.assistants(graph, 1)[0])["state_schema"]["title"]
        for graph in ("static", "again", "static")
    }
    assert titles == {"static": "static_state", "again": "again_state"}


def test_factory_is_called_once_for_assistants_with_equal_configs(project: Project) -> None:
    config = {"configurable": {"kind": "special"}}
    project.assistants("made", ASSISTANTS)
    project.assistants("made", ASSISTANTS, config=config)
    before = project.recorded("made")
    tools = project.tools()
    # Those without a config and with one; the factory is also asked for the graph's own assistant.
    assert project.recorded("made") - before in (2, 3)
    assert sum(each == ["plain_of_ada"] for each in tools.values()) == ASSISTANTS + 1
    assert sum(each == ["special_of_ada"] for each in tools.values()) == ASSISTANTS


def test_schemas_of_a_factory_are_separate_for_each_user(project: Project) -> None:
    for user in ("ada", "bob", "ada", "bob"):
        (assistant,) = project.assistants("made", 1, user=user, metadata={"of": user})
        properties = project.schemas(assistant, user)["input_schema"]["properties"]
        assert list(properties) == [f"plain_of_{user}"]


def test_changed_config_has_new_schemas_at_once(project: Project) -> None:
    (assistant,) = project.assistants("made", 1)
    for kind in ("first", "second", "first"):
        change = {"config": {"configurable": {"kind": kind}}}
        path, headers = f"/assistants/{assistant}", {"x-user": "ada"}
        project.client.patch(path, json=change, headers=headers).raise_for_status()
        properties = project.schemas(assistant)["input_schema"]["properties"]
        assert list(properties) == [f"{kind}_of_ada"]


def test_drawing_of_a_graph_is_independent_of_its_schemas(project: Project) -> None:
    (assistant,) = project.assistants("made", 1)
    project.schemas(assistant)
    drawing = project.client.get(f"/assistants/{assistant}/graph", headers={"x-user": "ada"})
    assert {each["id"] for each in drawing.json()["nodes"]} == {"__start__", "node", "__end__"}
