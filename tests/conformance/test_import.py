"""`threadhold import` takes over what stock has: from its files, and over its API. People go on here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support import databases
from tests.support.processes import environment, ran, threadhold

from .servers import GRAPHS_CONFIG, Server, our_server, stock_server, wait_ready

GRAPHS = ("echo", "interrupt", "subgraph", "failing")
WAITING = {"interrupt": ("summary", "yes"), "subgraph": ("verdict", "yes")}
# The database that each way is tried with.
WAYS = {"files": "sqlite", "api": "postgresql"}


class Seen:
    """What a server shows of its data, and the ids to ask for."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = httpx.request(method, f"{self.url}{path}", json=body, timeout=60)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def threads(self) -> dict[str, Any]:
        found = self.ask("POST", "/threads/search", {"limit": 100})
        kept = ("values", "status", "interrupts", "metadata", "created_at")
        return {
            each["thread_id"]: {name: each.get(name) or None for name in kept} for each in found
        }

    def history(self, thread: str) -> list[Any]:
        states = self.ask("POST", f"/threads/{thread}/history", {"limit": 100})
        return [
            {
                "values": each["values"],
                "next": each["next"],
                "id": each["checkpoint"]["checkpoint_id"],
                "parent": (each["parent_checkpoint"] or {}).get("checkpoint_id"),
                "interrupts": each.get("interrupts"),
            }
            for each in states
        ]

    def assistants(self) -> dict[str, Any]:
        found = self.ask("POST", "/assistants/search", {"limit": 100, "metadata": {"owner": "ana"}})
        names = ("graph_id", "name", "config", "context", "metadata", "version")
        versions = {
            each["assistant_id"]: self.ask(
                "POST", f"/assistants/{each['assistant_id']}/versions", {}
            )
            for each in found
        }
        return {
            each["assistant_id"]: (
                {name: each[name] for name in names},
                [(one["version"], one["name"]) for one in versions[each["assistant_id"]]],
            )
            for each in found
        }

    def items(self) -> list[Any]:
        found = self.ask("POST", "/store/items/search", {"namespace_prefix": [], "limit": 100})
        return sorted((each["namespace"], each["key"], each["value"]) for each in found["items"])


def fill(seen: Seen) -> None:
    """Make data of each kind."""
    for number in range(3):
        for graph in GRAPHS:
            if number and graph != "echo":
                continue
            body = {"graph_id": graph} if number else {"metadata": {"owner": "ana"}}
            thread = seen.ask("POST", "/threads", body)["thread_id"]
            for said in ("one", "two")[: 2 if graph == "echo" else 1]:
                message = {"role": "user", "content": said}
                asked = {"assistant_id": graph, "input": {"messages": [message]}}
                seen.ask("POST", f"/threads/{thread}/runs/wait", asked)
    seen.ask("POST", "/threads", {"metadata": {"is": "empty"}})
    mine = {"graph_id": "echo", "name": "first", "metadata": {"owner": "ana"}}
    key = seen.ask("POST", "/assistants", {**mine, "context": {"x": 1}})["assistant_id"]
    seen.ask("PATCH", f"/assistants/{key}", {"name": "second"})
    seen.ask("POST", f"/assistants/{key}/latest", {"version": 1})
    for namespace in (["a"], ["a", "b"], ["c"]):
        item = {"namespace": namespace, "key": "k", "value": {"in": namespace}}
        seen.ask("PUT", "/store/items", item)
    daily = {"assistant_id": "echo", "schedule": "0 3 1 1 *", "input": {"x": 1}}
    seen.ask("POST", "/runs/crons", daily)


class Brought:
    """The result of an import: our server's database, and what the command printed."""

    def __init__(self, folder: Path, source: str) -> None:
        self.folder = folder
        self.source = source
        self.url = databases.url(folder / "data.db")

    def run(self, *more: str) -> str:
        config = ("--config", str(GRAPHS_CONFIG), "--database-url", self.url)
        command = threadhold("import", self.source, *config, *more)
        done = ran(command, self.folder, environment())
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def imported(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[dict[str, Brought], dict[str, Any], dict[str, str]]]:
    """Fill stock, read it, and import it in both ways. Return also what stock showed."""
    folder = tmp_path_factory.mktemp("stock")
    brought, said = {}, {}
    with stock_server(folder, "stock") as stock:
        wait_ready(stock)
        seen = Seen(stock.url)
        fill(seen)
        threads = seen.threads()
        shown = {
            "threads": threads,
            "histories": {thread: seen.history(thread) for thread in threads},
            "assistants": seen.assistants(),
            "items": seen.items(),
        }
        sources = {"api": stock.url, "files": str(folder)}
        for way in ("api", "files"):
            with databases.on(WAYS[way]):
                brought[way] = Brought(tmp_path_factory.mktemp(way), sources[way])
        said["dry"] = brought["api"].run("--dry-run")
        said["api"] = brought["api"].run()
        said["again"] = brought["api"].run("--dry-run")
    said["files"] = brought["files"].run()
    yield brought, shown, said


@pytest.mark.parametrize("way", WAYS)
def test_a_thread_goes_on_where_stock_left_it(
    imported: tuple[dict[str, Brought], dict[str, Any], dict[str, str]],
    way: str,
    tmp_path: Path,
) -> None:
    brought, shown, said = imported
    assert (
        re.sub(r"imported", "to import", said[way].partition("The crons")[0])
        == (said["dry"].partition("The crons")[0])
    ), said
    with our_server(tmp_path, "ours", brought[way].url) as ours:
        wait_ready(ours)
        seen = Seen(ours.url)
        threads = seen.threads()
        assert threads == shown["threads"]
        assert seen.assistants() == shown["assistants"]
        assert seen.items() == shown["items"]
        [cron] = seen.ask("POST", "/runs/crons/search", {})
        assert (cron["enabled"], cron["payload"]["input"]) == (False, {"x": 1})
        for thread in threads:
            assert seen.history(thread) == shown["histories"][thread], threads[thread]
        goes_on(ours, seen, threads)
    # All is there, also where it has changed since.
    again = said["again"] if way == "api" else brought[way].run("--dry-run")
    assert set(re.findall(r"([\d,]+) to import", again)) == {"0"}, again


def goes_on(server: Server, seen: Seen, threads: dict[str, Any]) -> None:
    """Answer what waits, and say one thing more where nothing does."""
    answered = set()
    for thread, about in threads.items():
        graph = about["metadata"].get("graph_id")
        if graph in WAITING:
            body = {"assistant_id": graph, "command": {"resume": "yes"}}
            state = seen.ask("POST", f"/threads/{thread}/runs/wait", body)
            name, wanted = WAITING[graph]
            assert state.get(name) == wanted, (graph, state, server.tail())
            answered.add(graph)
        if graph == "echo":
            message = {"role": "user", "content": "three"}
            body = {"assistant_id": graph, "input": {"messages": [message]}}
            state = seen.ask("POST", f"/threads/{thread}/runs/wait", body)
            texts = [each["content"] for each in state["messages"]]
            assert texts == ["one", "echo: one", "two", "echo: two", "three", "echo: three"]
    assert answered == set(WAITING)
