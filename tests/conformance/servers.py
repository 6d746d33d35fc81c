"""Start and stop the servers that scenarios are played on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.support.processes import free_port

ROOT = Path(__file__).resolve().parents[2]
GRAPHS_CONFIG = ROOT / "tests" / "graphs" / "langgraph.json"
# Its libraries take a second to import, which no other test server needs to spend.
MORE_GRAPHS = {"deep": "./deep.py:graph"}
START_SECONDS = 120.0
STOP_SECONDS = 60.0
# Enough workers that no scenario waits for another one.
WORKERS = 30


class ServerFailed(RuntimeError):
    """A server did not start, or ended while scenarios were running."""


@dataclass(frozen=True)
class Server:
    """A running server: its name, its address, and its log."""

    name: str
    url: str
    log: Path
    process: subprocess.Popen[bytes]

    def tail(self, lines: int = 40) -> str:
        """Return the end of the server's log, for a failure message."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def served() -> dict[str, Any]:
    """Return the graphs of all servers: each name, and where the graph is."""
    graphs: dict[str, Any] = json.loads(GRAPHS_CONFIG.read_text())["graphs"]
    return {**graphs, **MORE_GRAPHS}


def write_config(directory: Path, auth: Path | None, graphs: dict[str, Any] | None = None) -> Path:
    """Write the configuration that all servers read, and return its path.

    Graph paths become absolute, because stock resolves them against the
    working directory and ours against the file. Webhooks to loopback are
    allowed, because the receiver of the tests listens there.

    :param auth: a module whose ``auth`` authorizes requests; None for an open server.
    :param graphs: graphs with absolute paths; None for those of the scenarios.
    """
    source = GRAPHS_CONFIG
    config: dict[str, Any] = json.loads(source.read_text())
    graphs = config["graphs"] = served() if graphs is None else graphs
    for name, graph in graphs.items():
        path = graph["path"] if isinstance(graph, dict) else graph
        file, _, variable = path.rpartition(":")
        absolute = f"{(source.parent / file).resolve()}:{variable}"
        graphs[name] = {**graph, "path": absolute} if isinstance(graph, dict) else absolute
    config["dependencies"] = [str(ROOT)]
    config["webhooks"] = {"url": {"disable_loopback": False, "require_https": False}}
    if auth is not None:
        config["auth"] = {"path": f"{auth}:auth"}
    target = directory / "langgraph.json"
    target.write_text(json.dumps(config, indent=2))
    return target


@contextmanager
def stock_server(
    directory: Path,
    name: str,
    auth: Path | None = None,
    graphs: dict[str, Any] | None = None,
    **env: str,
) -> Iterator[Server]:
    """Start ``langgraph dev`` with the in-memory edition, in its own directory.

    The server may not be ready yet: see :func:`wait_ready`. The arguments are those of
    :func:`write_config`, and settings of graphs.
    """
    config, port = write_config(directory, auth, graphs), free_port()
    command = [str(Path(sys.executable).with_name("langgraph")), "dev"]
    command += ["--no-browser", "--no-reload", "--allow-blocking", "--config", str(config)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--n-jobs-per-worker", str(WORKERS)]
    with _running(name, command, port, directory, **env) as server:
        yield server


@contextmanager
def our_server(
    directory: Path, name: str, database_url: str, auth: Path | None = None, **env: str
) -> Iterator[Server]:
    """Start this project's server on a new database, with more variables.

    The server may not be ready yet: see :func:`wait_ready`.
    """
    config, port = write_config(directory, auth), free_port()
    command = [sys.executable, "-m", "server", "serve", "--config", str(config)]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    command += ["--database-url", database_url]
    with _running(name, command, port, directory, **env) as server:
        yield server


@contextmanager
def _running(
    name: str, command: list[str], port: int, directory: Path, **env: str
) -> Iterator[Server]:
    url, log = f"http://127.0.0.1:{port}", directory / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=directory,
            # `langgraph dev` sets this itself; a mounted server must be told its own URL.
            env=_environment() | {"LANGGRAPH_API_URL": url} | env,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield Server(name, url, log, process)
    finally:
        _stop(process)


def _environment() -> dict[str, str]:
    """Return the caller's environment without settings and external services."""
    foreign = ("LANGSMITH", "LANGCHAIN", "LANGGRAPH", "LANGSERVE", "OPENAI", "REDIS_", "DATABASE_")
    env = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
    env |= {
        "APP_ENV": "local_dev",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGGRAPH_NO_VERSION_CHECK": "true",
        "LANGSMITH_TRACING": "false",
        "N_JOBS_PER_WORKER": str(WORKERS),
        # Some messages print a Python set, whose order must be equal on all servers.
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        # Check for due crons every second, so that scenarios do not wait for the scheduler.
        "CRON_SCHEDULER_SLEEP_TIME": "1",
    }
    return env


def wait_ready(server: Server) -> None:
    """Wait until the server answers.

    :raises ServerFailed: the server ended, or did not answer in time.
    """
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            code = server.process.returncode
            raise ServerFailed(f"{server.name} exited with {code}:\n{server.tail()}")
        try:
            if httpx.get(f"{server.url}/ok", timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            pass  # not listening yet
        time.sleep(0.1)
    raise ServerFailed(f"{server.name} not ready in {START_SECONDS:.0f} s:\n{server.tail()}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
