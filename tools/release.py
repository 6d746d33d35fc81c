"""Release: `python -m tools.release`, from a checked-out tag such as `v1.2.3`.

Builds the web app, the source distribution and from it the wheel into `dist/`. Then it installs the
wheel into an empty environment of each supported Python and serves with it, and writes a bill of
materials and checksums. Nothing is uploaded.

`--untagged` builds any commit, under a development version. `--core-only` checks no extras.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from tools import audit, pythons, web

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
CHECKSUMS = "SHA256SUMS"
UV = str(Path(sys.executable).parent / "uv")
# Seconds.
BUILD, CHECK = 300, 1800


class ReleaseFailed(Exception):
    """The release cannot be made. The message says why."""


def main(arguments: list[str]) -> int:
    """Make the release, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("--untagged", action="store_true", help="build a commit without a tag")
    parser.add_argument("--core-only", action="store_true", help="check no extras")
    given = parser.parse_args(arguments)
    try:
        if not given.untagged:
            check_tag()
        shutil.rmtree(DIST, ignore_errors=True)
        sdist, wheel = build(DIST)
        print(f"built {sdist.name} and {wheel.name}", flush=True)
        check_contents(sdist, wheel)
        for version in pythons.supported():
            check_wheel(wheel, version, core_only=given.core_only)
        write_sbom(wheel)
        write_checksums()
    except (ReleaseFailed, web.BuildError, pythons.PythonMissing, audit.AuditFailed) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    print("\n".join(sorted(path.name for path in DIST.iterdir())))
    return 0


def check_tag() -> None:
    """Check that a release describes its commit.

    Raises:
        ReleaseFailed: there are changes, no tag, or no heading of the tag in the changelog.
    """
    if _git("status", "--porcelain"):
        raise ReleaseFailed("there are changes that are not committed")
    tag = _git("describe", "--exact-match", "--tags", "HEAD")
    if not tag:
        raise ReleaseFailed(
            "HEAD has no tag, which is the version. Tag it: git tag v1.2.3; or --untagged"
        )
    if f"## [{tag.removeprefix('v')}]" not in (ROOT / "CHANGELOG.md").read_text():
        raise ReleaseFailed(f"CHANGELOG.md has no heading for {tag}")


def build(folder: Path) -> tuple[Path, Path]:
    """Build the page, the source distribution, and the wheel from that one.

    Args:
        folder: Where both files go.

    Raises:
        BuildError: the page cannot be built.
        ReleaseFailed: a distribution cannot be built.
    """
    web.build()
    command = [UV, "build", "--quiet", "--no-build-isolation", "--python", sys.executable]
    _run([*command, "--out-dir", str(folder), str(ROOT)], BUILD)
    [sdist], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def check_contents(sdist: Path, wheel: Path) -> None:
    """Check what is in both files.

    Raises:
        ReleaseFailed: the page is missing, or something that belongs to the repository only.
    """
    with tarfile.open(sdist) as archive:
        top = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    if extra := top & {"tests", "bench", "hooks", "server", "my_agent", "web", "docs"}:
        raise ReleaseFailed(f"{sdist.name} contains {', '.join(sorted(extra))}")
    if kinds := {".html", ".js", ".css"} - page_files(wheel):
        raise ReleaseFailed(f"{wheel.name} has no web app: no {', '.join(sorted(kinds))}")
    if (found := top_level(wheel)) != {"threadhold", "langgraph_runtime_sql"}:
        raise ReleaseFailed(f"{wheel.name} would install {', '.join(sorted(found))}")


def page_files(wheel: Path) -> set[str]:
    """Return the kinds of files of the web app in a wheel, such as `.html`."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith("threadhold/web/")]
    return {Path(name).suffix for name in names}


def top_level(wheel: Path) -> set[str]:
    """Return the names that a wheel puts into site-packages, without its own metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name.partition("/")[0] for name in archive.namelist()}
    return {name for name in names if not name.endswith(".dist-info")}


def check_wheel(wheel: Path, version: str, *, core_only: bool) -> None:
    """Install the wheel with a Python into an empty environment, and serve with it.

    Raises:
        ReleaseFailed: a step failed; its output is on the terminal.
    """
    print(f"--- Python {version}", flush=True)
    command = [sys.executable, "-m", "tests.package", "--wheel", str(wheel)]
    command += ["--python", pythons.find(version), *(["--core-only"] if core_only else [])]
    if subprocess.run(command, cwd=ROOT, timeout=CHECK, check=False).returncode:
        raise ReleaseFailed(f"the wheel does not work with Python {version}")


def write_sbom(wheel: Path) -> None:
    """Write the bill of materials of the locked environment, under the wheel's version."""
    packages = audit.pins(audit.LOCK.read_text())
    document = audit.sbom(packages, audit.licences(packages))
    audit.check_sbom(document, packages)
    _, version, *_ = wheel.name.split("-")
    document["metadata"]["component"]["version"] = version
    (DIST / f"threadhold-{version}.cdx.json").write_text(json.dumps(document, indent=1))


def write_checksums() -> None:
    """Write the checksums of all files, for `sha256sum --check`."""
    # uv writes a file of its own there, so that git ignores the folder.
    files = sorted(path for path in DIST.iterdir() if not path.name.startswith("."))
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (DIST / CHECKSUMS).write_text("".join(lines))


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout.strip()


def _run(command: list[str], seconds: float) -> None:
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False
    )
    if done.returncode:
        raise ReleaseFailed(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-4000:]}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
