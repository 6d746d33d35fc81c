"""A server that a test kills, stops, limits and restarts on one database."""

import json
import os
import resource
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.sqlite.engine import DIALECT
from langgraph_runtime_sql.search import filters
from tests.support import databases
from tests.support.processes import GRAPHS, ROOT, environment, free_port
from threadhold.admin import findings as doctor
from threadhold.admin.doctor import examine

# Seconds; far more than any wait needs, so that only a hanging server reaches the limit.
PATIENCE = 120.0

Document = dict[str, Any]


class Victim:
    """A server that can be started again and again.

    Attributes:
        url: Its address.
        folder: The folder of its files: `chaos.db`, `server.log`, and files of tests.
        client: A client of it; a request may take as long as a run.
        pid: Its process id, 0 while it does not run.
    """

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder = folder
        self.database = folder / "chaos.db"
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.client = httpx.Client(base_url=self.url, timeout=PATIENCE)
        self.pid = 0
        self._log = (folder / "server.log").open("ab")
        self._launcher = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("launcher.py")), str(port)],
            cwd=folder,
            env=environment(**env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        try:
            self._answer()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End launcher and server. Repeatable."""
        assert self._launcher.stdin is not None
        assert self._launcher.stdout is not None
        # The launcher ends its server, too.
        self._launcher.stdin.close()
        try:
            self._launcher.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            if self.pid:
                os.kill(self.pid, signal.SIGKILL)
            self._launcher.kill()
            self._launcher.wait()
        self._launcher.stdout.close()
        self._log.close()
        self.client.close()

    def _say(self, command: str) -> int:
        assert self._launcher.stdin is not None
        self._launcher.stdin.write(f"{command}\n".encode())
        self._launcher.stdin.flush()
        return int(self._answer())

    def _answer(self) -> str:
        assert self._launcher.stdout is not None
        ready, _, _ = select.select([self._launcher.stdout], [], [], PATIENCE)
        line = self._launcher.stdout.readline().decode() if ready else ""
        if not line:
            pytest.fail(f"the launcher does not answer:\n{self.log()[-4000:]}")
        return line

    def log(self) -> str:
        """Return everything that the server has printed."""
        return (self.folder / "server.log").read_text(errors="replace")

    # --- starting and ending

    def start(self, *, lease: float | None = None) -> None:
        """Start the server and wait until it answers; `lease` is the claim length in seconds."""
        self.begin(lease=lease)
        self.await_(self.answers)

    def begin(self, *, lease: float | None = None) -> None:
        """Start the server without waiting until it answers."""
        self.pid = self._say(f"start {lease or ''}")

    def answers(self) -> bool:
        """Return whether the server answers requests."""
        try:
            return httpx.get(f"{self.url}/ok", timeout=5).is_success
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """Kill the server with SIGKILL."""
        os.kill(self.pid, signal.SIGKILL)
        self.wait()

    def terminate(self) -> int:
        """End the server with SIGTERM and return its exit status."""
        os.kill(self.pid, signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait for the end of the server and return its exit status."""
        status = self._say("wait")
        self.pid = 0
        return status

    def stop(self) -> None:
        """Kill the server if it runs. Repeatable."""
        if self.pid:
            self.kill()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Send SIGSTOP, and SIGCONT at the end of the block."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def limit_files(self, size: int | None) -> None:
        """Limit the size of files that the server writes; None for no limit."""
        soft = resource.RLIM_INFINITY if size is None else size
        hard = resource.prlimit(self.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (soft, hard))

    def erase(self) -> None:
        """Stop the server and empty its database and folder."""
        self.stop()
        for path in self.folder.iterdir():
            if path.name != "server.log" and path.name != "langgraph.json":
                path.unlink()
        databases.erase(self.database)
        databases.url(self.database)

    # --- requests and checks

    def post(self, path: str, body: Any) -> Any:
        """Post a document and return the answer's document; the request must succeed."""
        answer = self.client.post(path, json=body)
        assert answer.is_success, (path, answer.status_code, answer.text)
        return answer.json()

    def get(self, path: str) -> Any:
        """Return the answer's document; the request must succeed."""
        answer = self.client.get(path)
        assert answer.is_success, (path, answer.status_code, answer.text)
        return answer.json()

    def thread(self, **body: Any) -> str:
        """Create a thread and return its id."""
        return str(self.post("/threads", body)["thread_id"])

    def run(self, thread: str, graph: str, input: Any, **body: Any) -> str:
        """Start a background run and return its id."""
        body = {"assistant_id": graph, "input": input, **body}
        return str(self.post(f"/threads/{thread}/runs", body)["run_id"])

    def status(self, thread: str, run: str) -> str:
        """Return the status of a run."""
        return str(self.get(f"/threads/{thread}/runs/{run}")["status"])

    def ended(self, thread: str, run: str) -> str:
        """Wait for the end of a run and return its status."""
        self.await_(lambda: self.status(thread, run) not in ("pending", "running"))
        return self.status(thread, run)

    def await_(self, condition: Callable[[], Any]) -> None:
        """Wait until a condition holds."""
        wait_for(condition, lambda: f"the server's log ends:\n{self.log()[-4000:]}")

    def sql(self, statement: str, *parameters: Any) -> list[Any]:
        """Run a statement on the database, without the server."""
        return databases.execute(self.database, statement, *parameters)

    def findings(self) -> list[str]:
        """Return the doctor's findings, whether the server runs or not."""
        if databases.kind() == "postgresql":
            found = examine(databases.url(self.database))
            return [f"{each.what} {each.id}: {each.why}" for each in found]
        with closing(sqlite3.connect(self.database, timeout=60)) as raw:
            filters.register_functions(raw)
            raw.execute("BEGIN")
            found = doctor.examine(Connection(raw, DIALECT), served=bool(self.pid))
        return [f"{each.what} {each.id}: {each.why}" for each in found]


def wait_for(condition: Callable[[], Any], explain: Callable[[], str] = str) -> None:
    """Wait until a condition holds; `explain` gives details for the failure message."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"waited in vain; {explain()}")
        time.sleep(0.02)


def lines(path: Path) -> list[str]:
    """Return the lines of a file that a graph writes; none if it does not exist."""
    return path.read_text().splitlines() if path.exists() else []


def write_config(folder: Path) -> Path:
    """Write a configuration with the test graphs that allows webhooks to this machine."""
    graphs = json.loads((GRAPHS / "langgraph.json").read_text())["graphs"]
    graphs["payment"] = "payment.py:graph"
    config = {
        "dependencies": [str(ROOT)],
        "graphs": {name: str(GRAPHS / place) for name, place in graphs.items()},
        "webhooks": {"url": {"disable_loopback": False, "require_https": False}},
    }
    path = folder / "langgraph.json"
    path.write_text(json.dumps(config))
    return path
