"""Try the lowest versions that `pyproject.toml` accepts: `python -m tools.floors [--short]`.

For the oldest and the newest supported Python it resolves the library with all extras and the lowest
version of each direct requirement, installs that into an environment of its own in `build/floors`,
and runs the unit tests, the conformance tests and those that kill servers. Then it resolves the
library together with popular neighbours.

`--short` tests only on the oldest Python: a server on SQLite that is killed, and goes on. Without a
package index it says so; then only the long form fails.
"""

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools import pythons, uv
from tools.neighbours import NEIGHBOURS

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "floors"
# Seconds.
RESOLVE, INSTALL, TESTS = 300, 600, 3600

TESTED = ("tests/unit", "tests/conformance", "tests/chaos/test_kill.py")
KILL = "tests/chaos/test_kill.py::test_server_killed_during_its_start_starts_the_next_time"
# They are about the locked versions, or need the developers' tools.
LOCKED = (
    "tests/unit/repository/test_floors.py::test_without_an_index_it_fails_and_says_so",
    "tests/unit/repository/test_package.py::test_links_of_the_readme_work_on_an_index",
    "tests/unit/events/test_partial_messages.py::test_a_tool_call_that_was_cut_is_an_invalid_one[tool-call-delta]",
    "tests/unit/repository/test_stock.py::test_the_table_was_tried_with_the_installed_versions",
    "tests/conformance/test_conformance.py::test_every_listed_difference_occurs",
)
# Old packages warn about newer ones beside them.
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "default::DeprecationWarning")

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_WITH_EXTRAS = re.compile(r"[A-Za-z0-9._-]+(\[[^\]]*\])?")


class FloorsFailed(Exception):
    """Tests failed. The message has what they printed."""


def main(arguments: list[str]) -> int:
    """Try all, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.floors", description=__doc__)
    parser.add_argument(
        "--short", action="store_true", help="only kill a server, on the oldest Python"
    )
    short = parser.parse_args(arguments).short
    oldest, *_, newest = pythons.supported()
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for version in (oldest, newest):
            python = pythons.find(version)
            pins = resolve(version, python)
            print(f"{version}: {len(pins.read_text().split())} packages resolved", flush=True)
            if not short or version == oldest:
                run_tests(install(version, python, pins), short=short)
        for version in (oldest,) if short else (oldest, newest):
            resolve_neighbours(version, pythons.find(version))
    except (FloorsFailed, uv.UvFailed, pythons.PythonMissing) as error:
        print(f"floors: {error}", file=sys.stderr)
        # A check of a change must also end where there is no index.
        return 0 if short and isinstance(error, uv.NoIndex) else 1
    return 0


def project() -> tuple[list[str], list[str]]:
    """Return what the library requires with all extras, and the names of what its tests do.

    The tests' own bounds suit the newest versions. Here they get what goes with the lowest.
    """
    content = tomllib.loads((ROOT / "pyproject.toml").read_text())
    about = content["project"]
    extras = [text for each in about["optional-dependencies"].values() for text in each]
    groups = content["dependency-groups"]

    def names(group: str) -> Iterator[str]:
        for each in groups[group]:
            if isinstance(each, dict):
                yield from names(each["include-group"])
            elif found := _WITH_EXTRAS.match(each):
                yield found[0]

    return [*about["dependencies"], *extras], sorted({*names("test"), *names("build")})


def resolve(version: str, python: str) -> Path:
    """Write the lowest version of each direct requirement, and what the tests need with these.

    Returns:
        The file of pins.
    """
    library, tests = project()
    lowest = _compile(version, python, "lowest", library, "--resolution", "lowest-direct")
    direct = {found[0] for text in library if (found := _NAME.match(text))}
    kept = [pin for pin in lowest.read_text().split("\n") if pin.partition("==")[0] in direct]
    return _compile(version, python, "tests", [*kept, *library, *tests])


def install(version: str, python: str, pins: Path) -> str:
    """Bring an environment to the pins, with the library in place, and return its interpreter."""
    folder = FOLDER / version
    inside = str(folder / "bin" / "python")
    if not Path(inside).exists():
        uv.run(FOLDER, INSTALL, "venv", "--quiet", "--python", python, str(folder))
    uv.run(FOLDER, INSTALL, "pip", "sync", "--quiet", "--python", inside, str(pins))
    # Built apart: setuptools needs a newer `packaging` than the library.
    editable = ("--no-deps", "--editable", str(ROOT))
    uv.run(FOLDER, INSTALL, "pip", "install", "--quiet", "--python", inside, *editable)
    return inside


def run_tests(python: str, *, short: bool) -> None:
    """Run the tests with an interpreter.

    Raises:
        FloorsFailed: a test failed.
    """
    left_out = [option for each in LOCKED for option in ("--deselect", each)]
    spread = ("-n", "4", "--dist", "loadfile", *left_out)
    arguments = (KILL, "-k", "sqlite") if short else (*spread, *TESTED)
    command = [python, *PYTEST, *arguments]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=TESTS, check=False
    )
    if done.returncode:
        raise FloorsFailed(f"{' '.join(command)} failed:\n{done.stdout[-8000:]}")
    print(f"{python}: passed {arguments[-1]}", flush=True)


def resolve_neighbours(version: str, python: str) -> None:
    """Resolve the library with each neighbour.

    Raises:
        UvFailed: they cannot be installed together.
    """
    library, _ = project()

    def one(number: int, neighbour: str) -> None:
        wanted = [*library, *NEIGHBOURS[neighbour]]
        _compile(version, python, f"neighbour-{number}", wanted)
        print(f"{version}: goes with {neighbour}", flush=True)

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(one, *each) for each in enumerate(NEIGHBOURS)]:
            done.result()


def _compile(version: str, python: str, name: str, wanted: list[str], *options: str) -> Path:
    """Resolve requirements for a Python, and return the file of pins."""
    source, target = FOLDER / f"{name}-{version}.in", FOLDER / f"{name}-{version}.txt"
    source.write_text("\n".join(wanted))
    # An old file would be preferred to the newest versions.
    target.unlink(missing_ok=True)
    plain = ("--quiet", "--no-header", "--no-annotate")
    made = ("--python", python, "--output-file", str(target))
    uv.run(FOLDER, RESOLVE, "pip", "compile", str(source), *plain, *made, *options)
    return target


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
