"""The packages from the npm registry with which tests act as users' clients."""

import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest

JAVASCRIPT = Path(__file__).parents[1] / "javascript"
_LOCK = JAVASCRIPT / "package-lock.json"


@pytest.fixture(scope="session")
def packages() -> None:
    """Install the packages of the lock file, unless they are installed."""
    # Another test process may be installing them.
    with _LOCK.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _are_installed():
            npm = shutil.which("npm")
            assert npm is not None, "tests of JavaScript clients need Node 20 or later with npm"
            command = [npm, "ci", "--no-audit", "--no-fund"]
            subprocess.run(command, cwd=JAVASCRIPT, check=True, timeout=240, capture_output=True)


def _are_installed() -> bool:
    installed = JAVASCRIPT / "node_modules" / ".package-lock.json"
    return installed.exists() and installed.stat().st_mtime >= _LOCK.stat().st_mtime
