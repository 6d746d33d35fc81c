"""A clean environment with the wheel in it, and servers that run there."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.processes import START_SECONDS, environment, stop

# Of the environment itself, whatever is installed in it.
TOOLS = ("pip", "setuptools")


class Environment:
    """A virtual environment of its own.

    Args:
        folder: Where it is made.
        python: The interpreter to make it with.
    """

    def __init__(self, folder: Path, python: str) -> None:
        self._bin = folder / "bin"
        subprocess.run([python, "-m", "venv", folder], check=True)
        [self._packages] = folder.glob("lib/python*/site-packages")

    def install(self, requirement: str) -> None:
        """Install something with what it requires, unlocked."""
        pip = [str(self._bin / "python"), "-m", "pip", "install", "--disable-pip-version-check"]
        subprocess.run([*pip, "--quiet", "--progress-bar", "off", requirement], check=True)

    def packages(self) -> list[str]:
        """The names of what is installed, without the environment's own tools."""
        names = (path.name.split("-")[0] for path in self._packages.glob("*.dist-info"))
        return sorted(name for name in names if name not in TOOLS)

    def megabytes(self) -> float:
        """What they take on the disk, compiled modules included."""
        tools = tuple(str(self._packages / name) for name in TOOLS)
        files = (path for path in self._packages.rglob("*") if path.is_file())
        sizes = (path.lstat().st_size for path in files if not str(path).startswith(tools))
        return sum(sizes) / 2**20

    def run(self, *command: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a script of the environment to its end, with what it printed."""
        name, *arguments = command
        return subprocess.run(
            [self._bin / name, *arguments],
            cwd=folder,
            env=clean(**env),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )

    @contextmanager
    def serving(self, *command: str, folder: Path, **env: str) -> Iterator[str]:
        """Run a server, whose last arguments are `--port` and this adds, until the block ends; its URL.

        Raises:
            SystemExit: it does not answer; with what it printed.
        """
        port = free_port()
        log = folder / f"server-{port}.log"
        name, *arguments = command
        with log.open("wb") as output:
            process = subprocess.Popen(
                [self._bin / name, *arguments, "--port", str(port)],
                cwd=folder,
                env=clean(**env),
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        url = f"http://127.0.0.1:{port}"
        try:
            deadline = time.monotonic() + START_SECONDS
            while not _answers(url):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"{' '.join(command)} does not serve:\n{log.read_text()}")
                time.sleep(0.1)
            yield url
        finally:
            stop(process)


def clean(**env: str) -> dict[str, str]:
    """This process's environment, without what would let a server see this checkout."""
    kept = {name: value for name, value in environment().items() if name != "PYTHONPATH"}
    return {**kept, "PYTHONSAFEPATH": "", **env}


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/ok", timeout=5).is_success
    except httpx.TransportError:
        return False


def asked(url: str, question: dict[str, object]) -> dict[str, object]:
    """What a run of the graph `agent` on a thread of its own answers."""
    answer = httpx.post(f"{url}/threads", json={}, timeout=60)
    answer.raise_for_status()
    run = {"assistant_id": "agent", "input": question}
    thread = answer.json()["thread_id"]
    answer = httpx.post(f"{url}/threads/{thread}/runs/wait", json=run, timeout=60)
    answer.raise_for_status()
    found: dict[str, object] = answer.json()
    return found
