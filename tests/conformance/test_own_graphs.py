"""Our graphs run on stock `langgraph dev`, where their tables are on an engine of their own."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from my_agent.chat.documents.ingestion import ingest
from my_agent.tables import tables
from tests.support.icp import Sites
from tests.support.products import using
from threadhold.tables import SHARED

from .servers import ROOT, Server, stock_server, wait_ready

HELLO = "Yesterday I go to the office."
SAID = {
    "chat": [HELLO],
    "tutor": [HELLO],
    "diagnosis": ["Checkout fails since 10:00 UTC."],
    # Then the websites of its customers.
    "icp_finder": ["Our website is http://maker.example"],
}
DOCUMENT = "# Skarra Light\n\n## Tower\n\nIt has six levels.\n"
# Tables with a row after the runs.
WRITTEN = {
    *("diagnosis_events", "icp_rules", "research_projects"),
    *("tenant_company_profiles", "tutor_mistakes"),
}


class Client:
    """Runs graphs of a stock server."""

    def __init__(self, server: Server, http: httpx.Client) -> None:
        self._server = server
        self._http = http

    def thread(self) -> str:
        return str(self._http.post("/threads", json={}).json()["thread_id"])

    def run(self, graph: str, thread: str, given: Any) -> Any:
        """Return the state after a run on this input."""
        body = {"assistant_id": graph, "input": given}
        answer = self._http.post(f"/threads/{thread}/runs/wait", json=body)
        assert answer.status_code == 200, self._server.tail()
        return answer.json()

    def say(self, graph: str, *texts: str) -> Any:
        """Return the state after messages in a new thread."""
        thread, state = self.thread(), {}
        for text in texts:
            state = self.run(graph, thread, {"messages": [{"role": "user", "content": text}]})
            assert "__error__" not in state, (graph, state)
        return state


@pytest.mark.timeout(600)
def test_graphs_run_on_stock_and_keep_their_tables(tmp_path: Path) -> None:
    served = json.loads((ROOT / "langgraph.json").read_text())["graphs"]
    for each in served.values():
        each["path"] = str(ROOT / each["path"].removeprefix("./"))
    settings = {"ICP_PRIVATE_NETWORKS": "127.0.0.0/8", "ICP_WEB_SEARCH": "false"}
    file = tmp_path / "data" / "threadhold.db"
    with Sites() as sites, stock_server(tmp_path, "stock", graphs=served, **settings) as server:
        wait_ready(server)
        with httpx.Client(base_url=server.url, timeout=120) as http:
            client = Client(server, http)
            said = SAID | {"icp_finder": [*SAID["icp_finder"], ", ".join(sites.urls)]}
            states = {graph: client.say(graph, *texts) for graph, texts in said.items()}
            [waits] = states["icp_finder"]["__interrupt__"]
            assert waits["value"]["kind"] == "confirm_icp"
            # Nobody can search the web here, and only that fails.
            state = client.run("research", client.thread(), {"question": "What is a lighthouse?"})
            assert "search" in state["__error__"]["message"]
            # The server has made the tables. Another process adds a document to them.
            (tmp_path / "skarra.md").write_text(DOCUMENT)
            with using(f"sqlite:///{file}"):
                ingest(tmp_path / "skarra.md", SHARED)
            state = client.say("chat", "How many levels does Skarra Light have?")
            assert "It has six levels." in str(state), state
    with closing(sqlite3.connect(file)) as raw:
        made = {name for (name,) in raw.execute("SELECT name FROM sqlite_master")}
        # Neither the runtime of this project nor its tables.
        assert "runs" not in made
        assert frozenset(v for (v,) in raw.execute("SELECT version_num FROM product_version")) == (
            tables.heads
        )
        empty = [
            table
            for table in sorted(WRITTEN)
            if raw.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        ]
        assert empty == []
