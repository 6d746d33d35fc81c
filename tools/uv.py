"""Run uv, and tell a missing package index from other failures."""

import re
import subprocess
import sys
from pathlib import Path

UV = str(Path(sys.executable).parent / "uv")

_AWAY = re.compile(
    r"Failed to fetch|dns error|error sending request|Connection refused", re.IGNORECASE
)


class UvFailed(Exception):
    """A command failed. The message has what it printed."""


class NoIndex(UvFailed):
    """No package index answers."""


def run(folder: Path, seconds: float, *arguments: str) -> None:
    """Run a command in a folder, for at most some seconds.

    Raises:
        NoIndex: no package index answers.
        UvFailed: anything else went wrong.
    """
    try:
        done = subprocess.run(
            [UV, *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UvFailed(f"uv {' '.join(arguments)} took longer than {seconds:.0f} s") from error
    if done.returncode:
        said = f"uv {' '.join(arguments)} failed:\n{done.stderr[-4000:]}"
        if _AWAY.search(done.stderr):
            raise NoIndex(f"no package index answers, so nothing was tried.\n{said}")
        raise UvFailed(said)
