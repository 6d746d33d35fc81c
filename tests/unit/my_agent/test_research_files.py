"""State files, backups, duplicates and escaping of research projects."""

import asyncio
import logging
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from my_agent.research import backups, files, state_file
from my_agent.research.compression import compress_results
from my_agent.research.model import (
    Analysis,
    Claim,
    CrawledPage,
    LedgerEntry,
    ProjectSnapshot,
    Report,
    SearchResult,
    Section,
    SourceRow,
)
from my_agent.research.projects import Key
from my_agent.research.report import html, markdown
from my_agent.research.settings import ResearchSettings
from tests.support.served import PATIENCE

HOSTILE = "# <script>alert(1)</script> | --> ```mermaid\n[x](javascript:alert(1)) --- **b**"
words = st.text(st.characters(codec="utf-8"), max_size=60) | st.just(HOSTILE)
pages = st.builds(
    CrawledPage, url=words, requested_url=words, title=words, text=words, sha256=words,
    entities=st.dictionaries(words, st.lists(words, max_size=2), max_size=2),
)  # fmt: skip
results = st.builds(
    SearchResult, url=words, title=words, source=words, snippet=words,
    published=st.none() | words, quality=st.floats(0, 1),
)  # fmt: skip
claims = st.builds(Claim, text=words, entries=st.tuples(words), reason=words)
snapshots = st.builds(
    ProjectSnapshot,
    project_id=st.just("p1"), title=words, status=words, progress=st.integers(0, 100),
    progress_message=words, created_at=words, updated_at=words,
    results=st.lists(results, max_size=2).map(tuple), pages=st.lists(pages, max_size=2).map(tuple),
    analysis=st.none() | st.builds(
        Analysis, overview=words, features=st.lists(claims, max_size=1).map(tuple),
        swot=st.dictionaries(words, st.lists(claims, max_size=1), max_size=1),
    ),
    citations=st.lists(
        st.builds(LedgerEntry, id=words, url=words, sha256=words, start=st.integers(0),
                  end=st.integers(0), quote=words), max_size=1).map(tuple),
)  # fmt: skip


def snapshot(title: str = "Skarra") -> ProjectSnapshot:
    return ProjectSnapshot("p1", title, "running", 40, "Read the pages", "c", "u")


@given(snapshots)
def test_state_file_gives_the_state_back(state: ProjectSnapshot) -> None:
    text = state_file.render(state)
    assert state_file.parse(text) == state
    found = MarkdownIt().enable("table").parse(text.split("---\n", 2)[2])
    headings = [
        found[place + 1].content
        for place, mark in enumerate(found)
        if mark.type == "heading_open" and mark.tag in ("h1", "h2")
    ]
    # No title of a page has become a heading of ours.
    assert headings[1:] == ["Search results", "Pages", "Analysis", "Citations"]


@pytest.mark.parametrize(("count", "tables"), [(50, 1), (51, 2)])
def test_many_results_are_summarized_in_a_table_of_their_own(count: int, tables: int) -> None:
    text = f"Skarra costs 20 euros. {HOSTILE} Birds sing in the harbour. " * 9
    found = [SearchResult(f"https://{n}.example/", HOSTILE, "web", text) for n in range(count)]
    state = replace(snapshot(), results=tuple(compress_results(found)))
    content = state_file.render(state)
    assert state_file.parse(content) == state
    tokens = MarkdownIt().enable("table").parse(content.split("---\n", 2)[2])
    assert sum(each.type == "table_open" for each in tokens) == tables
    # A header and the results, in each table; no word of a page makes a row or a cell.
    assert sum(each.type == "tr_open" for each in tokens) == tables * (count + 1)
    assert sum(each.type == "td_open" for each in tokens) == tables * count * 5
    if tables == 2:
        assert all(
            len(each.snippet) < 200 and 1 <= len(each.key_points) < 5 for each in state.results
        )


@pytest.mark.parametrize("bad", ["../x", "a/b", "", ".", "a\\b", "x" * 200, "a\x00"])
def test_project_cannot_leave_its_folder(tmp_path: Path, bad: str) -> None:
    with pytest.raises(state_file.BadProjectId):
        state_file.write(tmp_path, ProjectSnapshot(bad, "", "", 0, "", "", ""))
    assert list(tmp_path.iterdir()) == []


def test_damaged_backup_is_skipped_for_the_next_older(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    backups.save(tmp_path, "p1", snapshot("first"), latest=True)
    newest = backups.save(tmp_path, "p1", snapshot("second"), latest=True)
    assert backups.restore(tmp_path, "p1") == snapshot("second")
    newest.write_bytes(newest.read_bytes()[:-20])
    with caplog.at_level(logging.WARNING):
        assert backups.restore(tmp_path, "p1") == snapshot("first")
    assert newest.name in caplog.text
    assert backups.restore(tmp_path, "other") is None


def test_old_backups_are_pruned_and_the_latest_kept(tmp_path: Path) -> None:
    for number in range(6):
        backups.save(tmp_path, "p1", snapshot(str(number)), latest=number == 0, keep=3)
    kept = sorted(each.name for each in (tmp_path / "backups" / "p1").glob("*.md"))
    assert kept == ["000001.md", "000004.md", "000005.md", "000006.md"]


async def test_file_of_a_deleted_project_is_removed_though_its_run_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ResearchSettings(research_data_folder=str(tmp_path))
    key = Key("t1", "p1")
    writing, may_end = threading.Event(), threading.Event()

    def write(folder: Path, state: ProjectSnapshot) -> None:
        writing.set()
        assert may_end.wait(PATIENCE)
        state_file.replace_file(folder / f"{state.project_id}.md", b"late")

    async def find(_: Key) -> None:
        return None

    monkeypatch.setattr(files.state_file, "write", write)
    monkeypatch.setattr(files, "find", find)
    run = asyncio.create_task(files.save(settings, key, snapshot()))
    assert await asyncio.to_thread(writing.wait, PATIENCE)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    place = files.folder(settings, key)
    assert place is not None
    may_end.set()
    async with asyncio.timeout(PATIENCE):
        while not place.exists() or list(place.iterdir()):
            await asyncio.sleep(0.01)


def test_files_that_another_removal_has_removed_are_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        backups.save(tmp_path, "p1", snapshot(str(number)), latest=False)
    unlink = os.unlink

    def first_by_another(path: Any, **options: Any) -> None:
        unlink(path, **options)
        unlink(path, **options)

    monkeypatch.setattr(os, "unlink", first_by_another)
    state_file.remove(tmp_path, "p1")
    assert not list((tmp_path / "backups").iterdir())


def test_hostile_words_stay_words_in_every_report() -> None:
    claim = Claim(HOSTILE, ("1",), 1, "supported")
    report = Report(
        *("p1", HOSTILE, HOSTILE, "", "", "completed"),
        sections=(Section(HOSTILE, (claim,)),),
        ledger=(LedgerEntry("1", HOSTILE, "", 0, 1, HOSTILE),),
        sources=(SourceRow("javascript:alert(1)", HOSTILE),),
    )
    page = html.render(report)
    assert "<script" not in page
    assert "href='javascript" not in page
    shown = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown.render(report))
    assert "<script" not in shown
    assert "href=" not in shown
    assert shown.count("<table>") == 1
    assert shown.count('class="language-mermaid"') == 2
