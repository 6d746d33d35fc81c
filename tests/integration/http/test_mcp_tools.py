"""Tools of MCP: an assistant cannot take the name of a graph or of another assistant."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support import databases
from tests.support.processes import GRAPHS, Running
from tests.support.served import served

pytestmark = pytest.mark.usefixtures("each_database")

PATIENCE = 60.0
USER = {"x-user": "ada", "accept": "application/json"}
CONFIG = {
    "graphs": {"echo": f"{GRAPHS}/echo.py:graph", "my tool": f"{GRAPHS}/failing.py:graph"},
    "auth": {"path": f"{GRAPHS}/auth.py:auth"},
}


class Client:
    """A client of a server's assistants and tools."""

    def __init__(self, server: Running) -> None:
        self._http = httpx.Client(base_url=server.url, headers=USER, timeout=PATIENCE)

    def request(self, method: str, path: str, body: Any = None) -> httpx.Response:
        return self._http.request(method, path, json=body)

    def create(self, name: str, **fields: Any) -> Any:
        body = {"graph_id": "echo", "name": name, **fields}
        return self.request("POST", "/assistants", body).raise_for_status().json()

    def rpc(self, method: str, **params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.request("POST", "/mcp", body).raise_for_status().json()

    def tools(self) -> dict[str, str]:
        """Return the descriptions of all tools by name."""
        found: list[tuple[str, str]] = []
        cursor: Any = 0
        while cursor is not None:
            result = self.rpc("tools/list", cursor=str(cursor))["result"]
            found += [(each["name"], each["description"]) for each in result["tools"]]
            cursor = result.get("nextCursor")
        assert len(dict(found)) == len(found), "two tools have one name"
        return dict(found)

    def call(self, tool: str) -> str:
        """Call a tool and return its text."""
        answer = self.rpc("tools/call", name=tool, arguments={"value": "hello"})
        return str(answer.get("result", answer).get("content", answer))

    def close(self) -> None:
        self._http.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "langgraph.json"
    path.write_text(json.dumps(CONFIG))
    return path


@pytest.fixture
def client(tmp_path: Path, project: Path) -> Iterator[Client]:
    with served(tmp_path, project) as server:
        client = Client(server)
        yield client
        client.close()


def test_name_of_a_graph_is_refused(client: Client) -> None:
    other = client.create("another")["assistant_id"]
    # MCP rewrites blanks and drops other characters, so these names give the same tool.
    for name, graph in (("echo", "echo"), (" e!cho ", "echo"), ("my_tool", "my tool")):
        for method, path in (("POST", "/assistants"), ("PATCH", f"/assistants/{other}")):
            refused = client.request(method, path, {"graph_id": "echo", "name": name})
            assert refused.status_code == 422, (method, name, refused.text)
            assert f"reserved for the server's own assistant of the graph '{graph}'" in refused.text
    assert client.request("GET", f"/assistants/{other}").json()["name"] == "another"
    assert client.create("Echo of mine")["name"] == "Echo of mine"


def test_stored_assistant_with_the_name_of_a_graph_is_not_its_tool(
    client: Client, tmp_path: Path
) -> None:
    """Such a row is older than the graph, or than the rule."""
    made = client.create("thief", description="the thief")["assistant_id"]
    for table in ("assistants", "assistant_versions"):
        statement = f"UPDATE {table} SET name = 'echo' WHERE name = 'thief'"
        databases.execute(tmp_path / "data.db", statement)
    tools = client.tools()
    assert tools["echo"] == "Tool based on the echo assistant"
    assert tools[f"echo-{made[:8]}"] == "the thief"
    assert "hello" in client.call("echo")
    latest = client.request("POST", f"/assistants/{made}/latest", {"version": 1})
    assert latest.status_code == 422, latest.text


def test_later_assistant_neither_hides_nor_blocks_the_tool_of_an_earlier_one(
    client: Client,
) -> None:
    client.create("mine", description="first")
    later = client.create("mine", graph_id="my tool", description="second")["assistant_id"]
    tools = client.tools()
    assert (tools["mine"], tools[f"mine-{later[:8]}"]) == ("first", "second")
    assert "hello" in client.call("mine")
    # The graph "my tool" fails.
    assert "isError" in str(client.rpc("tools/call", name=f"mine-{later[:8]}", arguments={}))
