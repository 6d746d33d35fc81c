"""Suites: the source distributions, and how the tests in each are run."""

import json
import os
import re
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as Xml
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools import uv

ROOT = Path(__file__).parents[2]
CACHE = ROOT / "build" / "upstream"
HERE = Path(__file__).parent
# What their tests need besides what this checkout locks.
MORE = ("pytest-asyncio", "pytest-mock", "pytest-repeat", "syrupy")
SETTINGS = {
    # Without the servers of their compose files.
    "NO_DOCKER": "true",
    "LANGSMITH_TRACING": "false",
    # The API reads them at its import, which the saver's serializer begins, and a test of the SDK.
    "LANGGRAPH_RUNTIME_EDITION": "sql",
    "REDIS_URI": "none",
    "DATABASE_URI": "sqlite://",
}
# Names the database for the savers (`threadhold_savers.py`).
TEMPLATE = "THREADHOLD_TESTS_TEMPLATE"
# Seconds for all tests of a suite, and for an installation.
PATIENCE, INSTALL = 3600, 600


@dataclass(frozen=True)
class Suite:
    """The tests of one distribution.

    Attributes:
        package: The distribution, which this checkout locks.
        ours: Whether the tests take savers, and so get ours.
        arguments: More arguments of pytest.
        short: Words in the names of the files that a short run takes. Without, it has none of the suite.
    """

    package: str
    ours: bool
    arguments: tuple[str, ...] = ()
    short: tuple[str, ...] = ()


SUITES = (
    Suite(
        "langgraph",
        ours=True,
        # One measures. The other needs a Postgres at a fixed address.
        arguments=(
            "--ignore=tests/test_delta_channel_benchmark.py",
            "--ignore=tests/test_prune_postgres.py",
        ),
        # Delta channels, interrupts and resuming: what a saver of its own gets wrong first.
        short=("delta", "interrupt", "resume"),
    ),
    Suite("langgraph-prebuilt", ours=True),
    Suite("langgraph-sdk", ours=False),
)


class NoSources(Exception):
    """The source distributions cannot be fetched."""


def locked(package: str) -> str:
    """Return the version of a package in the lock."""
    found = re.search(
        rf"^{package}==(\S+)", (ROOT / "requirements-dev.lock").read_text(), re.MULTILINE
    )
    if found is None:
        raise LookupError(f"{package} is not locked")
    return found.group(1)


def sources(package: str) -> Path:
    """Fetch the source distribution of the locked version, and return the folder of its content.

    Raises:
        NoSources: There is no index, or it does not have it.
    """
    version = locked(package)
    folder = CACHE / f"{package.replace('-', '_')}-{version}"
    if folder.exists():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:"]
    command += ["--no-build-isolation", "--dest", str(CACHE), f"{package}=={version}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    archive = folder.with_name(f"{folder.name}.tar.gz")
    # pip may fail to build what it has fetched.
    if not archive.exists():
        raise NoSources(done.stderr.strip()[-500:])
    with tarfile.open(archive) as content:
        content.extractall(CACHE, filter="data")
    return folder


def environment() -> Path:
    """Make the environment with what is locked and what their tests need. Return its interpreter.

    Raises:
        UvFailed: There is no index (`NoIndex`), or it does not have something.
    """
    folder = CACHE / "env"
    python, mark = folder / "bin" / "python", folder / "made"
    lock = (ROOT / "requirements-dev.lock").read_text()
    pins = "\n".join(re.findall(r"^[A-Za-z0-9._-]+(?:\[[a-z,]+\])?==[^\\\n]+", lock, re.MULTILINE))
    if mark.exists() and mark.read_text() == pins:
        return python
    CACHE.mkdir(parents=True, exist_ok=True)
    listed = CACHE / "requirements.txt"
    listed.write_text(f"{pins}\n")
    uv.run(CACHE, INSTALL, "venv", "--quiet", "--clear", str(folder))
    install = ("pip", "install", "--quiet", "--python", str(python))
    uv.run(CACHE, INSTALL, *install, "--no-deps", "--requirement", str(listed))
    uv.run(CACHE, INSTALL, *install, *MORE)
    mark.write_text(pins)
    return python


def run(
    suite: Suite, python: Path, more: list[str], *, is_short: bool = False, template: str = ""
) -> Iterator[tuple[str, str]]:
    """Run a suite, and yield each test that fails with the first line of its failure.

    Args:
        suite: The suite.
        python: The interpreter.
        more: More arguments of pytest.
        is_short: Whether to run only the files that `Suite.short` names.
        template: The URL of a Postgres database, of which each test gets a copy; by default SQLite.

    Raises:
        NoSources: The sources cannot be fetched.
    """
    folder = sources(suite.package)
    results = folder / "results.xml"
    results.unlink(missing_ok=True)
    plugins = ["-p", "threadhold_savers"] if suite.ours else []
    # Theirs come first: both have a package `tests`.
    paths = os.pathsep.join((str(HERE), str(ROOT)))
    # The short run leaves out langgraph's own saver in memory.
    tests = ["-k", "not memory", *_short(suite, folder)] if is_short else ["tests"]
    subprocess.run(
        [
            *(str(python), "-m", "pytest", "-q", "-n", "2", "--timeout", "120", *plugins, *tests),
            *("-p", "no:cacheprovider", f"--junit-xml={results}", *suite.arguments, *more),
        ],
        cwd=folder,
        env={**os.environ, **SETTINGS, "PYTHONPATH": paths, TEMPLATE: template},
        stdout=(folder / "output.txt").open("w"),
        stderr=subprocess.STDOUT,
        check=False,
        timeout=PATIENCE,
    )
    if not results.exists():
        yield "all", f"the tests did not end: {folder / 'output.txt'}"
        return
    for case in Xml.parse(results).iter("testcase"):
        for failure in (*case.iter("failure"), *case.iter("error")):
            said = (failure.get("message") or failure.text or "").strip().splitlines()
            yield f"{case.get('classname')}.{case.get('name')}", said[0] if said else ""


def _short(suite: Suite, folder: Path) -> Iterator[str]:
    """Yield the files of a short run, each relative to the folder of the distribution."""
    for path in sorted(folder.glob("tests/test_*.py")):
        name = f"tests/{path.name}"
        if (
            any(word in path.name for word in suite.short)
            and f"--ignore={name}" not in suite.arguments
        ):
            yield name


def expected(package: str) -> dict[str, str]:
    """Return the failures of a suite that are known, each pattern of a test with its reason.

    A pattern that begins with `sometimes ` need not fail.
    """
    known: dict[str, dict[str, str]] = json.loads((HERE / "expected.json").read_text())
    return known.get(package, {})
