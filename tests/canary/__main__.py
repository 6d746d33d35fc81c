"""Examines the newest releases of what Threadhold stands on.

    python -m tests.canary [--only stable candidate development] [--probe-only]

Writes `docs/reference/compatibility.md`. Ends with 1 if an area fails, and with 0 if there is no package index.
"""

import argparse
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as Xml
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.canary import environments, report
from tests.canary.environments import PACKAGES, ROOT, Unresolved
from tests.canary.releases import KINDS, NoIndex, newest, on_index
from tests.canary.report import Findings

# Seconds. Both take a few minutes on an idle machine.
PROBE_SECONDS = 1800
SCENARIO_SECONDS = 3600


def main() -> None:
    """Examine each kind of release, and write the page."""
    arguments = argparse.ArgumentParser(prog="python -m tests.canary")
    arguments.add_argument("--only", nargs="+", choices=KINDS, default=KINDS)
    arguments.add_argument("--probe-only", action="store_true", help="no conformance scenarios")
    asked = arguments.parse_args()
    try:
        versions = {name: on_index(name) for name in PACKAGES}
    except NoIndex as error:
        print(f"There is no package index to take newer releases from. {error}")
        return
    try:
        folder, javascript = environments.javascript()
    except (OSError, Unresolved) as error:
        print(f"Node's packages cannot be installed: {error}")
        folder, javascript = environments.CACHE, {}
    found = {}
    for kind in asked.only:
        wanted = {name: newest(all_, kind) for name, all_ in versions.items()}
        print(
            kind, *(f"{name} {version}" for name, version in wanted.items()), sep="\n  ", flush=True
        )
        found[kind] = Findings({name: str(each) for name, each in wanted.items()})
        try:
            python = environments.make(kind, wanted)
        except Unresolved as error:
            reason = found[kind].problems["installation"] = _reason(str(error))
            print(f"  installation: {reason}", flush=True)
            continue
        findings = found[kind]
        findings.versions = {
            name: version if str(wanted[name]) == version else f"{version}, not {wanted[name]}"
            for name, version in environments.installed(python).items()
        }
        for area, problem in (*_probed(python, folder), *_compared(python, asked.probe_only)):
            findings.problems[area] = problem
            print(f"  {area}: {problem or report.WORKS}", flush=True)
    report.write(found, javascript)
    sys.exit(any(problem for each in found.values() for problem in each.problems.values()))


def _reason(text: str) -> str:
    lines = [each.strip(" ╰─▶×") for each in text.splitlines() if each.strip()]
    return next((each for each in lines if "Because" in each), lines[-1] if lines else "")


def _probed(python: Path, javascript: Path) -> Iterator[tuple[str, str | None]]:
    """Run the probe, and yield each area with its problem."""
    done = subprocess.run(
        [python, "-m", "tests.canary.probe"],
        cwd=ROOT,
        env={**os.environ, "CANARY_JAVASCRIPT": str(javascript)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=PROBE_SECONDS,
    )
    for line in done.stdout.splitlines():
        area, problem = json.loads(line)
        yield area, problem
    if done.returncode:
        yield "the probe itself", f"it has ended with {done.returncode}"


def _compared(python: Path, is_left_out: bool) -> Iterator[tuple[str, str | None]]:
    """Play the conformance scenarios, and yield each of their modules with the first failure."""
    if is_left_out:
        return
    with TemporaryDirectory() as place:
        results = Path(place) / "results.xml"
        subprocess.run(
            [
                *(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "sqlite"),
                *("tests/conformance/test_conformance.py", f"--junit-xml={results}"),
            ],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            check=False,
            timeout=SCENARIO_SECONDS,
        )
        if not results.exists():
            yield "scenarios", "they did not end"
            return
        problems: dict[str, str | None] = {}
        for case in Xml.parse(results).iter("testcase"):
            name = case.get("name", "").partition("-")[2].removesuffix("]")
            area = f"scenarios: {name.partition('.')[0]}" if name else "scenarios: differences"
            failures = [*case.iter("failure"), *case.iter("error")]
            said = f"{name}: {_first(failures[0])}" if failures else None
            problems[area] = problems.get(area) or said
    yield from sorted(problems.items())


def _first(failure: Xml.Element) -> str:
    """Return the first place that differs."""
    lines = [each.strip() for each in (failure.get("message") or failure.text or "").splitlines()]
    return " ".join(lines[:4]).removeprefix("AssertionError: ")


if __name__ == "__main__":
    main()
