"""Build the web app: `python -m tools.web`.

It does nothing if neither the lock file nor a source has changed since the last build. Without
Node 20 or later, or if the build fails, it says so and succeeds: the API does not need the page.
`--strict` fails instead.
"""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WEB, BUILD = ROOT / "web", ROOT / "threadhold" / "web"
NODE = 20
# Seconds.
INSTALL, COMPILE = 300, 300


class BuildError(Exception):
    """The web app cannot be built; the message says what to do."""


def main(arguments: list[str]) -> int:
    """Build if needed, and return the exit code."""
    try:
        build()
    except BuildError as error:
        print(f"The web app is not built: {error}", file=sys.stderr)
        return 1 if "--strict" in arguments else 0
    return 0


def build(web: Path = WEB, target: Path = BUILD) -> bool:
    """Build the sources in `web` into `target`, and return whether they had changed.

    Raises:
        BuildError: Node is missing or too old, or a command failed.
    """
    stamp = target / ".sources"
    state = fingerprint(web)
    if stamp.is_file() and stamp.read_text() == state:
        return False
    npm = check_node()
    lock = hashlib.sha256((web / "package-lock.json").read_bytes()).hexdigest()
    installed = web / "node_modules" / ".lock"
    if not installed.is_file() or installed.read_text() != lock:
        _run([npm, "ci", "--no-audit", "--no-fund"], web, INSTALL)
        installed.write_text(lock)
    _run([npm, "run", "--silent", "build", "--", "--outDir", str(target)], web, COMPILE)
    stamp.write_text(state)
    return True


def fingerprint(web: Path) -> str:
    """Return a digest of the files from which the build is made."""
    digest = hashlib.sha256()
    files = [each for each in (web / "src").rglob("*") if each.is_file()]
    files += [each for each in web.iterdir() if each.is_file()]
    for path in sorted(files):
        digest.update(f"{path.relative_to(web)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def check_node() -> str:
    """Return the path of npm.

    Raises:
        BuildError: Node is missing or too old.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise BuildError(f"install Node {NODE} or later with npm, and run this again")
    found = subprocess.run(
        [node, "--version"], check=False, capture_output=True, text=True, timeout=30
    )
    version = found.stdout.strip().removeprefix("v")
    if found.returncode or int(version.partition(".")[0] or 0) < NODE:
        raise BuildError(f"Node is {version or 'broken'}; install Node {NODE} or later")
    return npm


def _run(command: list[str], folder: Path, seconds: float) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, timeout=seconds, capture_output=True, text=True, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"{' '.join(command)} took longer than {seconds} s") from error
    if done.returncode:
        raise BuildError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-4000:]}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
