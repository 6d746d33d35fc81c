"""Releases: the newest versions of a package on the index, of each kind."""

import re
import subprocess
import sys
from typing import Literal

from packaging.version import Version

Kind = Literal["stable", "candidate", "development"]
KINDS: tuple[Kind, ...] = ("stable", "candidate", "development")


class NoIndex(Exception):
    """The package index cannot be asked."""


def on_index(package: str) -> list[Version]:
    """Return the versions of a package on the index.

    Raises:
        NoIndex: It does not answer.
    """
    command = [sys.executable, "-m", "pip", "index", "versions", package, "--pre"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    found = re.search(r"^Available versions: (.*)$", done.stdout, re.MULTILINE)
    if found is None:
        raise NoIndex(f"pip found no {package}: {(done.stderr or done.stdout).strip()[-300:]}")
    return [Version(each) for each in found.group(1).split(", ")]


def newest(versions: list[Version], kind: Kind) -> Version:
    """Return the newest version of a kind, or the newest stable one if that is newer."""
    allowed = {
        "stable": lambda each: not each.is_prerelease,
        "candidate": lambda each: not each.is_devrelease,
        "development": lambda each: each.is_devrelease or not each.is_prerelease,
    }
    return max(filter(allowed[kind], versions))
