"""Our graphs run on stock `langgraph dev`, where their tables are on an engine of their own."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from my_agent.tables import tables

from .servers import ROOT, stock_server, wait_ready

HELLO = {"messages": [{"role": "user", "content": "Yesterday I go to the office."}]}
INPUTS: dict[str, Any] = {
    "chat": HELLO,
    "tutor": HELLO,
    "diagnosis": {"messages": [{"role": "user", "content": "Checkout fails since 10:00 UTC."}]},
    "icp_finder": {"messages": [{"role": "user", "content": "Find companies like my customers."}]},
    "research": {"question": "What is a lighthouse?"},
}
# Tables with a row after the runs. The chat only reads.
WRITTEN = {"diagnosis_events", "research_projects", "tutor_mistakes"}


@pytest.mark.timeout(600)
def test_graphs_run_on_stock_and_keep_their_tables(tmp_path: Path) -> None:
    served = json.loads((ROOT / "langgraph.json").read_text())["graphs"]
    for each in served.values():
        each["path"] = str(ROOT / each["path"].removeprefix("./"))
    with stock_server(tmp_path, "stock", graphs=served) as server:
        wait_ready(server)
        with httpx.Client(base_url=server.url, timeout=120) as client:
            for graph, given in INPUTS.items():
                thread = client.post("/threads", json={}).json()["thread_id"]
                answer = client.post(
                    f"/threads/{thread}/runs/wait", json={"assistant_id": graph, "input": given}
                )
                assert answer.status_code == 200, server.tail()
                # Nobody can search the web here, and only that may fail.
                failed = answer.json().get("__error__", {}).get("message", "")
                assert not failed or (graph == "research" and "search" in failed), (graph, failed)
    with closing(sqlite3.connect(tmp_path / "data" / "threadhold.db")) as raw:
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
