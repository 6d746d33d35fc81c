"""Interpreters: the supported versions of Python, and where this machine has them."""

import os
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Seconds.
_PATIENCE = 30


class PythonMissing(Exception):
    """This machine lacks a supported Python. The message says which."""


def supported() -> list[str]:
    """Return the versions that `pyproject.toml` names, such as `3.11`, the oldest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [text.rpartition(":: ")[2] for text in project["classifiers"]]
    found = [name for name in names if name.startswith("3.") and name[2:].isdigit()]
    return sorted(found, key=lambda name: int(name[2:]))


def find(version: str) -> str:
    """Return the path of an interpreter: of the search path, or one that pyenv has installed.

    Args:
        version: Major and minor, such as `3.13`.

    Raises:
        PythonMissing: this machine has none.
    """
    folder = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    others = sorted(folder.glob(f"{version}.*/bin/python{version}"))
    # A shim of pyenv is on the search path also where its version is not active.
    for candidate in (f"python{version}", *map(str, reversed(others))):
        try:
            asked = subprocess.run(
                [candidate, "-c", "import sys; print(sys.executable)"],
                capture_output=True,
                text=True,
                timeout=_PATIENCE,
                check=False,
            )
        except FileNotFoundError:
            continue
        if asked.returncode == 0:
            return asked.stdout.strip()
    raise PythonMissing(f"Python {version} is not installed; install it so that it is tried, too")
