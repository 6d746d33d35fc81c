"""The files around the code: lock files, licence, ignored folders, version and changelog."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from threadhold.stock.replacement import API_VERSIONS

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def pins(lock: str) -> dict[str, str]:
    """Return the name and version of every requirement that a lock file pins."""
    text = (ROOT / lock).read_text()
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", text, re.MULTILINE))


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def group(name: str) -> list[str]:
    """Return the requirements of a dependency group, with the groups it includes."""
    found: list[str] = []
    for entry in PROJECT["dependency-groups"][name]:
        found += [entry] if isinstance(entry, str) else group(entry["include-group"])
    return found


@pytest.mark.parametrize(
    ("lock", "requirements"),
    [
        ("requirements.lock", PROJECT["project"]["dependencies"]),
        ("requirements-dev.lock", PROJECT["project"]["dependencies"] + group("dev")),
        # `make setup` installs the project with the locked setuptools, not with a fetched one.
        ("requirements.lock", PROJECT["build-system"]["requires"]),
    ],
    ids=["runtime", "dev", "build"],
)
def test_lock_file_satisfies_every_declared_requirement(lock: str, requirements: list[str]) -> None:
    locked = pins(lock)
    wrong = [
        str(requirement)
        for requirement in map(Requirement, requirements)
        if not requirement.specifier.contains(locked.get(normal(requirement.name), "0"))
    ]
    assert not wrong, f"{lock} is behind pyproject.toml: run `make lock`"


def test_development_lock_contains_the_runtime_lock_pin_for_pin() -> None:
    assert pins("requirements.lock").items() <= pins("requirements-dev.lock").items()


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_every_pin_has_a_hash_and_no_index_is_named(lock: str) -> None:
    text = (ROOT / lock).read_text()
    entries = re.findall(r"^\S.*?(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    requirements = [entry for entry in entries if not entry.startswith("#")]
    assert requirements
    assert [entry for entry in requirements if "--hash=sha256:" not in entry] == []
    assert "://" not in text


def test_every_requirement_has_a_lower_bound() -> None:
    requirements = PROJECT["project"]["dependencies"] + group("dev")
    loose = [
        text
        for text in requirements
        if not any(bound.operator in (">=", "~=") for bound in Requirement(text).specifier)
    ]
    assert loose == []


def test_langgraph_api_is_bound_to_the_minor_series_that_were_tried() -> None:
    [requirement] = [
        Requirement(text)
        for text in PROJECT["project"]["dependencies"]
        if Requirement(text).name == "langgraph-api"
    ]
    bounds = {each.operator: each.version for each in requirement.specifier}
    assert bounds.keys() == {">=", "<"}
    tried = {tuple(each.split(".")[:2]) for each in API_VERSIONS}
    first, end = (bounds[each].split(".") for each in (">=", "<"))
    assert first[0] == end[0]
    assert tried == {(first[0], str(minor)) for minor in range(int(first[1]), int(end[1]))}


def test_licence_is_mit_and_part_of_the_package() -> None:
    assert (ROOT / "LICENSE").read_text().startswith("MIT License")
    assert PROJECT["project"]["license"] == "MIT"
    assert PROJECT["project"]["license-files"] == ["LICENSE"]


def test_no_generated_file_is_tracked() -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    generated = re.compile(r"(^|/)(__pycache__|\.venv|data|\.langgraph_api|\.hypothesis)/|\.db$")
    assert [path for path in tracked if generated.search(path)] == []


def test_setup_refuses_an_old_python_and_says_what_to_do(tmp_path: Path) -> None:
    old = tmp_path / "old-python"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.18" || exit 1\n')
    old.chmod(0o755)
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text())
    for name in ("pyproject.toml", "requirements.lock", "requirements-dev.lock"):
        (tmp_path / name).touch()
    made = subprocess.run(
        ["make", "setup", f"PYTHON={old}"],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert made.returncode != 0
    assert "needs Python 3.11 or newer" in made.stderr
    assert "Python 3.9.18" in made.stderr
    assert "make setup PYTHON=python3.12" in made.stderr


# --- tests run on both databases

# Text that opens a database, and text that makes a module run on each database.
OPENS = re.compile(
    r"databases\.|opened\(|served\(|running\(|victim\b|open_database\(|policy\.server"
)
ON_EACH = re.compile(r"each_database|product_database")
# Modules that test a single database, each with the reason.
OF_ONE = {
    "integration/cli/test_backup.py": "`threadhold backup` copies a file",
    "integration/platform/test_one_platform.py": "what differs between two platforms, and bad URLs",
    "integration/migrations/test_migrations.py": "URLs that are refused",
    "integration/move/test_move.py": "from a file to Postgres, and no other way",
    "integration/move/test_move_rules.py": "what of that is refused",
    "integration/http/test_log_privacy.py": "log lines, whatever the database is",
    "integration/http/test_fuzz.py": "sends each request to both databases",
    "integration/platform/test_mounting.py": "each host and prefix on one of the databases",
    "chaos/test_reaper.py": "processes that a test session leaves",
    "integration/my_agent/test_diagnosis_connectors.py": "sessions with an MCP server, which open no database",
    "integration/http/test_connections.py": "sockets, before any request reaches a database",
    "integration/http/test_security_baseline.py": "processes that refuse to start",
    "integration/cli/test_init.py": "the project that `threadhold init` writes keeps a file",
    "integration/cli/test_layouts.py": "which packages are imported, before any database is",
    "integration/cli/test_start_errors.py": "what never opens one, and URLs that are refused",
    "integration/cli/test_unusable_files.py": "what is wrong with a file",
    "integration/my_agent/test_research_disaster.py": "backups, which are files of any database",
}


def behaviour() -> dict[str, str]:
    """Return the text of every module that tests behaviour."""
    tests = ROOT / "tests"
    found = [
        path for kind in ("integration", "chaos") for path in (tests / kind).rglob("test_*.py")
    ]
    return {str(path.relative_to(tests)): path.read_text() for path in sorted(found)}


def test_modules_that_open_a_database_run_on_both() -> None:
    modules = behaviour()
    assert len(modules) > 50
    single = [
        name
        for name, text in modules.items()
        if OPENS.search(text) and not ON_EACH.search(text) and name not in OF_ONE
    ]
    assert single == [], "they run on each database, or are listed here with a reason"


def test_sqlite_urls_are_only_in_listed_modules() -> None:
    named = {name for name, text in behaviour().items() if "sqlite:///" in text}
    assert named <= OF_ONE.keys(), "use `databases.url`, or list them with a reason"
