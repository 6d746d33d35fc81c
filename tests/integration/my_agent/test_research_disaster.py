"""Research without its database, and workers that run out of time; in this process."""

import asyncio
import itertools
import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from my_agent.research import projects, state_file
from my_agent.research.graph import graph
from my_agent.research.nodes.stop import ResearchFailed
from my_agent.research.planning import by_words
from my_agent.user import LOCAL_TENANT
from tests.support.products import using
from tests.support.research import ARTICLES, QUESTION, claims, fetched, publish
from tests.support.websites import Page, Websites, websites

KEY = projects.Key(LOCAL_TENANT, "p1")
CONFIG: Any = {"configurable": {"thread_id": KEY.project_id}}


@pytest.fixture
def web(tmp_path: Path, no_model: pytest.MonkeyPatch) -> Iterator[Websites]:
    with websites() as found:
        for name, value in {
            "FEEDS": publish(found, "news", ARTICLES),
            "PRIVATE_NETWORKS": "127.0.0.1/32",
            "WEB_SEARCH": "false",
            "CORPUS": "false",
            "HOST_DELAY_SECONDS": "0",
            "DATA_FOLDER": str(tmp_path / "task-data"),
        }.items():
            no_model.setenv(f"RESEARCH_{name}", value)
        yield found


async def test_lost_database_is_replaced_by_the_newest_whole_backup(
    tmp_path: Path, web: Websites, caplog: pytest.LogCaptureFixture
) -> None:
    with using(f"sqlite:///{tmp_path}/first.db"):
        await graph.ainvoke({"question": QUESTION}, CONFIG)
    assert len(fetched(web)) == len(ARTICLES)
    backups = sorted((tmp_path / "task-data").rglob("backups/*/*.md"))
    backups[-1].write_text("damaged")
    with using(f"sqlite:///{tmp_path}/second.db"), caplog.at_level(logging.WARNING):
        state = await graph.ainvoke({"question": QUESTION}, CONFIG)
    assert "Skarra costs 20 euros a month for each user." in claims(state["report"])
    assert len(fetched(web)) == len(ARTICLES), "a page of the backup was fetched again"
    assert backups[-1].name in caplog.text
    assert "backup" in state["notes"][0]


async def test_backups_of_another_question_are_not_used(tmp_path: Path, web: Websites) -> None:
    with using(f"sqlite:///{tmp_path}/first.db"):
        await graph.ainvoke({"question": QUESTION}, CONFIG)
    with using(f"sqlite:///{tmp_path}/second.db"):
        state = await graph.ainvoke({"question": "What is Heron?"}, CONFIG)
    assert state["notes"] == []


async def test_file_of_a_project_that_is_deleted_meanwhile_is_removed(
    tmp_path: Path, web: Websites, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = state_file.write

    def delete_and_write(folder: Path, made: Any) -> Path:
        """Delete the project as its route does, after the run has seen that it exists."""
        with closing(sqlite3.connect(tmp_path / "first.db")) as raw, raw:
            raw.execute("DELETE FROM research_projects")
        state_file.remove(folder, made.project_id)
        return write(folder, made)

    monkeypatch.setattr(state_file, "write", delete_and_write)
    with using(f"sqlite:///{tmp_path}/first.db"), pytest.raises(ResearchFailed, match="deleted"):
        await graph.ainvoke({"question": QUESTION}, CONFIG)
    assert list((tmp_path / "task-data").rglob(f"*{KEY.project_id}*")) == []


async def test_folder_that_cannot_be_written_is_a_warning(
    tmp_path: Path, web: Websites, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "task-data").write_text("a file, not a folder")
    with using(f"sqlite:///{tmp_path}/first.db"):
        state = await graph.ainvoke({"question": QUESTION}, CONFIG)
    assert claims(state["report"])
    assert "was not written" in caplog.text


async def test_worker_without_end_is_repeated_and_then_fails_the_project(
    tmp_path: Path, web: Websites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESEARCH_AGENT_SECONDS", "3")
    began = []

    async def endless(self: Any, item: str) -> None:
        if item == "what the pages say":
            began.append(1)
            await asyncio.Event().wait()

    monkeypatch.setattr("my_agent.research.work.Work.began", endless)
    with using(f"sqlite:///{tmp_path}/first.db"):
        with pytest.raises(ResearchFailed, match="analyzing did not end within 3 seconds"):
            await graph.ainvoke({"question": QUESTION}, CONFIG)
        found = await projects.find(KEY)
    assert len(began) == 3
    assert found is not None
    assert (found.status, found.progress["timeouts"]) == ("failed", 3)
    assert "did not end" in str(found.error)


async def test_worker_that_is_slow_once_is_repeated(
    tmp_path: Path, web: Websites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESEARCH_AGENT_SECONDS", "3")
    began = []

    async def slow_once(self: Any, item: str) -> None:
        began.append(item)
        if len(began) == 1:
            await asyncio.Event().wait()

    monkeypatch.setattr("my_agent.research.work.Work.began", slow_once)
    with using(f"sqlite:///{tmp_path}/first.db"):
        state = await graph.ainvoke({"question": QUESTION}, CONFIG)
    assert tuple(state["plan"]["queries"]) == by_words(QUESTION, 6).queries
    assert [each["what"] for each in state["timeouts"]] == ["agent"]
    assert claims(state["report"])


async def test_slow_page_is_recorded_retried_and_left_out(
    tmp_path: Path, web: Websites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESEARCH_CRAWL_SECONDS", "3")
    never = threading.Event()
    page = web.pages["/news/market"]
    web.pages["/news/market"] = Page(lambda: b"x" * never.wait(60), 200, page.headers)
    with using(f"sqlite:///{tmp_path}/first.db"):
        state = await graph.ainvoke({"question": QUESTION}, CONFIG)
    never.set()
    assert fetched(web).count("market") == 2
    [row] = [row for url, row in state["read"].items() if url.endswith("/market")]
    assert (row["ok"], "3 seconds" in row["reason"]) == (False, True)
    assert [each["stage"] for each in state["timeouts"]] == ["extracting"] * 2
    assert "Skarra costs 20 euros a month for each user." in claims(state["report"])


async def test_extractor_with_a_slow_page_is_repeated_where_it_stopped(
    tmp_path: Path, web: Websites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESEARCH_PARALLEL", "1")
    monkeypatch.setenv("RESEARCH_AGENT_SECONDS", "3")
    slow, hits, ended = max(ARTICLES), itertools.count(), threading.Event()
    page = web.pages[f"/news/{slow}"]

    def body() -> bytes:
        if next(hits) == 0:
            ended.wait(30)
        return page.body

    web.pages[f"/news/{slow}"] = Page(body, 200, page.headers)
    with using(f"sqlite:///{tmp_path}/first.db"):
        state = await graph.ainvoke({"question": QUESTION}, CONFIG)
    ended.set()
    assert {"stage": "extracting", "what": "agent", "seconds": 3.0} in state["timeouts"]
    assert sum(row["ok"] for row in state["read"].values()) == len(ARTICLES)
    # Only the page whose reading was stopped is read again.
    assert len(fetched(web)) == len(ARTICLES) + 1
    assert "Skarra costs 20 euros a month for each user." in claims(state["report"])


async def test_searcher_without_end_fails_the_project(
    tmp_path: Path, web: Websites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESEARCH_AGENT_SECONDS", "2")
    page = web.pages["/news/feed"]
    never = threading.Event()
    web.pages["/news/feed"] = Page(lambda: b"x" * never.wait(60), 200, page.headers)
    with using(f"sqlite:///{tmp_path}/first.db"):
        with pytest.raises(ResearchFailed, match="searching did not end within 2 seconds"):
            await graph.ainvoke({"question": QUESTION}, CONFIG)
        found = await projects.find(KEY)
        never.set()
    assert found is not None
    assert (found.status, found.progress["timeouts"]) == ("failed", 2)
