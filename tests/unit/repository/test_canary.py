"""The canary picks the right releases, says what is missing, and shows failures."""

import subprocess
import sys
from pathlib import Path

import pytest
from packaging.version import Version

from tests.canary import report
from tests.canary.releases import Kind, newest
from tests.canary.report import Findings

ROOT = Path(__file__).parents[3]
VERSIONS = [Version(each) for each in ("1.0.0", "1.1.0rc1", "1.1.0rc2", "1.2.0.dev3", "0.9.0")]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("stable", "1.0.0"), ("candidate", "1.1.0rc2"), ("development", "1.2.0.dev3")],
)
def test_newest_release_of_each_kind(kind: Kind, expected: str) -> None:
    assert newest(VERSIONS, kind) == Version(expected)
    assert newest([*VERSIONS, Version("2.0.0")], kind) == Version("2.0.0")


def test_without_an_index_it_says_so_and_succeeds() -> None:
    page = report.PAGE.read_text()
    done = subprocess.run(
        [sys.executable, "-m", "tests.canary"],
        cwd=ROOT,
        # An index that refuses, and no folder of files.
        env={
            "PATH": "/usr/bin:/bin",
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_INDEX_URL": "http://127.0.0.1:9",
            "PIP_RETRIES": "0",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "no package index" in done.stdout
    assert report.PAGE.read_text() == page


def test_page_shows_the_failure_and_what_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "PAGE", tmp_path / "page.md")
    old = Findings({"langgraph-api": "1.0"}, {"crons": None})
    new = Findings({"langgraph-api": "2.0"}, {"crons": "`never` | fire", "MCP": None})
    report.write({"stable": old, "candidate": new}, {})
    page = report.PAGE.read_text()
    assert "| crons | works | **fails:** `'never' / fire` |" in page
    assert "| MCP | not there | works |" in page
    assert "| `langgraph-api` | 1.0 | 2.0 |" in page
