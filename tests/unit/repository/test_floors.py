"""`make floors`: what it resolves, and what it says without a package index."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from tools import floors, pythons, uv

PROJECT = tomllib.loads((floors.ROOT / "pyproject.toml").read_text())["project"]


def test_every_requirement_has_a_floor_and_is_tried() -> None:
    library, tests = floors.project()
    extras = [text for each in PROJECT["optional-dependencies"].values() for text in each]
    assert library == [*PROJECT["dependencies"], *extras]
    assert [text for text in library if not re.search(r"[>~]=", text)] == []
    # Bounds of the tests' own packages suit the newest versions of what they test.
    assert {"pytest", "langgraph-cli[inmem]"} <= set(tests)


def test_oldest_and_newest_python_are_those_of_the_metadata() -> None:
    oldest, *_, newest = pythons.supported()
    assert PROJECT["requires-python"] == f">={oldest}"
    assert f"Programming Language :: Python :: {newest}" in PROJECT["classifiers"]


def test_missing_python_is_named() -> None:
    with pytest.raises(pythons.PythonMissing, match=r"Python 3\.99 is not installed"):
        pythons.find("3.99")


def test_without_an_index_it_fails_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(floors, "FOLDER", tmp_path)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    with pytest.raises(uv.NoIndex, match="no package index answers"):
        floors.resolve_neighbours(version, sys.executable)
