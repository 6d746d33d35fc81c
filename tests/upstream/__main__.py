"""Runs the tests inside of the source distributions of what is locked, on our saver and our server.

    python -m tests.upstream [--only langgraph] [--short] [--database postgresql] [PYTEST-ARGUMENT ...]

Failures that `expected.json` lists with a reason are allowed, and must occur. Ends with 1 otherwise, and with 0 if
there is no package index. What is fetched stays in `build/upstream`, which is no part of the repository.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from tests.support import databases
from tests.upstream import scripts, suites
from tests.upstream.suites import SUITES, NoSources, Suite
from tools import uv

SOMETIMES = "sometimes "


def main() -> None:
    """Run each suite, and compare its failures with the known ones."""
    arguments = argparse.ArgumentParser(prog="python -m tests.upstream")
    arguments.add_argument("--only", action="append", choices=[each.package for each in SUITES])
    arguments.add_argument("--short", action="store_true", help="delta channels and resuming only")
    arguments.add_argument("--database", choices=databases.KINDS, default="sqlite")
    asked, more = arguments.parse_known_args()
    wrong = list[str]()
    for suite in SUITES:
        if (asked.only and suite.package not in asked.only) or (asked.short and not suite.short):
            continue
        try:
            failed = dict(_failures(suite, more, asked.short, asked.database))
        except (NoSources, uv.NoIndex) as error:
            print(f"There are no sources of {suite.package} to test with. {error}")
            continue
        print(f"{suite.package} {suites.locked(suite.package)}: {len(failed)} fail", flush=True)
        # A part of the tests may not have the known failures.
        found = list(
            problems(failed, suites.expected(suite.package), is_whole=not (more or asked.short))
        )
        print(*(f"  {each}" for each in found), sep="\n", end="\n" if found else "", flush=True)
        wrong += found
    sys.exit(bool(wrong))


def _failures(
    suite: Suite, more: list[str], is_short: bool, database: str
) -> Iterator[tuple[str, str]]:
    python = suites.environment()
    with databases.on(database), tempfile.TemporaryDirectory() as folder:
        is_postgres = suite.ours and database == "postgresql"
        template = databases.url(Path(folder) / "template") if is_postgres else ""
        yield from suites.run(suite, python, more, is_short=is_short, template=template)
    if suite.package == "langgraph-sdk" and not more:
        yield from scripts.run(python)


def problems(failed: dict[str, str], known: dict[str, str], *, is_whole: bool) -> Iterator[str]:
    """Yield each failure that is not known, and each known one that does not occur.

    Args:
        failed: The failures: each test with the first line of what it says.
        known: The known ones: each pattern of a test with its reason.
        is_whole: Whether all tests were run.
    """
    patterns = {pattern: pattern.removeprefix(SOMETIMES) for pattern in known}
    for name, said in failed.items():
        if not any(fnmatchcase(name, pattern) for pattern in patterns.values()):
            yield f"not expected: {name}: {said}"
    for listed, pattern in patterns.items():
        occurs = any(fnmatchcase(name, pattern) for name in failed)
        if is_whole and not occurs and not listed.startswith(SOMETIMES):
            yield f"expected to fail, and does not: {pattern}"


if __name__ == "__main__":
    main()
