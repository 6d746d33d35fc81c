"""Tools of MCP: an assistant cannot take the name of a graph or of another assistant, nor its look."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support import databases
from tests.support.processes import GRAPHS, Running
from tests.support.served import served

pytestmark = pytest.mark.usefixtures("each_database")

PATIENCE = 60.0
CONFIG = {
    "graphs": {
        "echo": f"{GRAPHS}/echo.py:graph",
        "my tool": f"{GRAPHS}/failing.py:graph",
        "Tools1": f"{GRAPHS}/memory.py:graph",
    },
    "auth": {"path": f"{GRAPHS}/auth.py:auth"},
}


# Names that a reader takes for the graph's.
LOOK_ALIKES = {
    "echo": [
        *("Echo", "ECHO", "e.c.h.o", "E-c h_o", "echó", "ech0", "€cho"),
        # Cyrillic letters, Greek, small capitals, full width, mathematical, circled, Roman numeral.
        *("есһо", "eсho", "!есhо!", "εchο", "ᴇᴄʜᴏ", "ＥＣＨＯ", "𝐞𝐜𝐡𝐨", "ⓔⓒⓗⓞ", "eⅽho"),
        # Zero-width characters, a soft hyphen, an override of the direction, fillers, an accent.
        *("e\u200bcho", "echo\u2060", "ec\u00adho", "\u202eecho", "\u3164echo", "ech\u030ao"),
    ],
    "my tool": ["My_Tool", "mytool", "rny tool", "mу tооl", "ｍｙ　ｔｏｏｌ"],
    "Tools1": ["tools1", "toolsl", "T00LS1", "Tооls1"],
}


class Client:
    """A client of a user of her own: she sees her own assistants and those of the graphs."""

    def __init__(self, server: Running) -> None:
        headers = {"x-user": uuid4().hex, "accept": "application/json"}
        self._http = httpx.Client(base_url=server.url, headers=headers, timeout=PATIENCE)

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
        listed: list[Any] = []
        cursor: Any = 0
        while cursor is not None:
            result = self.rpc("tools/list", cursor=str(cursor))["result"]
            listed += result["tools"]
            found += [(each["name"], each["description"]) for each in result["tools"]]
            cursor = result.get("nextCursor")
        assert len(dict(found)) == len(found), "two tools have one name"
        assert len({each["title"].casefold() for each in listed}) == len(listed)
        return dict(found)

    def call(self, tool: str) -> str:
        """Call a tool and return its text."""
        answer = self.rpc("tools/call", name=tool, arguments={"value": "hello"})
        return str(answer.get("result", answer).get("content", answer))

    def close(self) -> None:
        self._http.close()


@pytest.fixture(scope="module")
def folder(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tools")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    path = folder / "langgraph.json"
    path.write_text(json.dumps(CONFIG))
    with served(folder, path) as started:
        yield started


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
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


@pytest.mark.parametrize("graph", LOOK_ALIKES)
def test_name_that_looks_like_a_graph_is_refused(client: Client, graph: str) -> None:
    other = client.create("another")["assistant_id"]
    for name in LOOK_ALIKES[graph]:
        for method, path in (("POST", "/assistants"), ("PATCH", f"/assistants/{other}")):
            refused = client.request(method, path, {"graph_id": "echo", "name": name})
            assert refused.status_code == 422, (method, name, refused.text)
            assert f"{name!a} is reserved" in refused.json()["detail"]
    for name in ("Echoes", "Der Bote", "Эхо-бот", "回声", "my other tool", "tools of ours"):
        assert client.create(name)["name"] == name
    assert {"echo", "my_tool", "Tools1", "Echoes", "my_other_tool"} <= client.tools().keys()


def test_stored_assistant_with_the_name_of_a_graph_is_not_its_tool(
    client: Client, folder: Path
) -> None:
    """Such a row is older than the graph, or than the rule."""
    made = client.create("thief", description="the thief")["assistant_id"]
    for table in ("assistants", "assistant_versions"):
        statement = f"UPDATE {table} SET name = 'echo' WHERE name = 'thief'"
        databases.execute(folder / "data.db", statement)
    tools = client.tools()
    assert tools["echo"] == "Tool based on the echo assistant"
    assert tools[f"echo-{made[:8]}"] == "the thief"
    assert "hello" in client.call("echo")
    latest = client.request("POST", f"/assistants/{made}/latest", {"version": 1})
    assert latest.status_code == 422, latest.text


def test_stored_look_alikes_are_neither_the_tool_nor_the_title_of_a_graph_or_another(
    client: Client, folder: Path
) -> None:
    made = {
        name: client.create(f"thief {n}", description=name)["assistant_id"]
        for n, name in enumerate((*LOOK_ALIKES["echo"], "notes", "Notes", "nоtеs", "n\u200botes"))
    }
    for name, identifier in made.items():
        statement = "UPDATE assistants SET name = ? WHERE assistant_id = ?"
        databases.execute(folder / "data.db", statement, name, identifier)
    tools = client.tools()
    assert tools["echo"] == "Tool based on the echo assistant"
    assert tools["notes"] == "notes"
    for name, identifier in made.items():
        if name != "notes":
            [found] = [tool for tool, said in tools.items() if said == name]
            assert found.endswith(f"-{identifier[:8]}"), found
    assert "hello" in client.call("echo")


def test_names_that_end_in_an_id_collide_with_none(client: Client) -> None:
    mine, other = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "ab")
    for name in (f"notes-{other[:8]}", f"notes-{other}", "notes"):
        client.create(name)
    client.create("notes", assistant_id=other, description="the last")
    tools = client.tools()
    assert tools[f"notes-{other}-2"] == "the last"
    assert client.create("notes", assistant_id=mine)["name"] == "notes"
    assert f"notes-{mine[:8]}" in client.tools()


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
