"""Victim: a server that a test kills, stops, starves and starts again, on one database file."""

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
from threadhold.admin import doctor_postgres
from threadhold.admin import findings as doctor

# Seconds; far above what anything here takes, so that only what is stuck meets them.
PATIENCE = 120.0

Document = dict[str, Any]


class Victim:
    """A server that can be started again and again.

    Attributes:
        url: Its address.
        folder: Where its files are: `chaos.db`, `server.log`, and what tests put there.
        client: Talks to it; a request waits as long as a run may take.
        pid: Its process, 0 while it does not run.
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
        """End everything. Repeatable."""
        assert self._launcher.stdin is not None
        assert self._launcher.stdout is not None
        # The launcher takes its child with it.
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
        """Everything it has printed."""
        return (self.folder / "server.log").read_text(errors="replace")

    # --- life and death

    def start(self, *, lease: float | None = None) -> None:
        """Start it, and wait until it answers; `lease` is how long its claims last, in seconds."""
        self.begin(lease=lease)
        self.await_(self.answers)

    def begin(self, *, lease: float | None = None) -> None:
        """Start it, and do not wait until it answers."""
        self.pid = self._say(f"start {lease or ''}")

    def answers(self) -> bool:
        """Whether it serves requests."""
        try:
            return httpx.get(f"{self.url}/ok", timeout=5).is_success
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """`kill -9`."""
        os.kill(self.pid, signal.SIGKILL)
        self.wait()

    def terminate(self) -> int:
        """End it as an operator would; its exit status."""
        os.kill(self.pid, signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait for its end; its exit status."""
        status = self._say("wait")
        self.pid = 0
        return status

    def stop(self) -> None:
        """Be sure that it does not run. Repeatable."""
        if self.pid:
            self.kill()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """SIGSTOP, and SIGCONT at the end."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def limit_files(self, size: int | None) -> None:
        """The largest file that it may write from now on."""
        soft = resource.RLIM_INFINITY if size is None else size
        hard = resource.prlimit(self.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (soft, hard))

    def erase(self) -> None:
        """Start from nothing next time."""
        self.stop()
        for path in self.folder.iterdir():
            if path.name != "server.log" and path.name != "langgraph.json":
                path.unlink()
        databases.erase(self.database)
        databases.url(self.database)

    # --- what one does with it

    def post(self, path: str, body: Any) -> Any:
        """The answer's document; fails unless it is a good one."""
        answer = self.client.post(path, json=body)
        assert answer.is_success, (path, answer.status_code, answer.text)
        return answer.json()

    def get(self, path: str) -> Any:
        """The answer's document; fails unless it is a good one."""
        answer = self.client.get(path)
        assert answer.is_success, (path, answer.status_code, answer.text)
        return answer.json()

    def thread(self, **body: Any) -> str:
        """A new thread's id."""
        return str(self.post("/threads", body)["thread_id"])

    def run(self, thread: str, graph: str, input: Any, **body: Any) -> str:
        """A new background run's id."""
        body = {"assistant_id": graph, "input": input, **body}
        return str(self.post(f"/threads/{thread}/runs", body)["run_id"])

    def status(self, thread: str, run: str) -> str:
        """A run's status."""
        return str(self.get(f"/threads/{thread}/runs/{run}")["status"])

    def ended(self, thread: str, run: str) -> str:
        """Wait for a run's end; its status."""
        self.await_(lambda: self.status(thread, run) not in ("pending", "running"))
        return self.status(thread, run)

    def await_(self, condition: Callable[[], Any]) -> None:
        """Wait until something holds."""
        wait_for(condition, lambda: f"the server's log ends:\n{self.log()[-4000:]}")

    def sql(self, statement: str, *parameters: Any) -> list[Any]:
        """Run a statement on the database, past the server."""
        return databases.execute(self.database, statement, *parameters)

    def findings(self) -> list[str]:
        """What the doctor says, while the server runs or not."""
        if databases.kind() == "postgresql":
            found = doctor_postgres.examine(databases.url(self.database))
            return [f"{each.what} {each.id}: {each.why}" for each in found]
        with closing(sqlite3.connect(self.database, timeout=60)) as raw:
            filters.register_functions(raw)
            raw.execute("BEGIN")
            found = doctor.examine(Connection(raw, DIALECT), served=bool(self.pid))
        return [f"{each.what} {each.id}: {each.why}" for each in found]


def wait_for(condition: Callable[[], Any], explain: Callable[[], str] = str) -> None:
    """Wait until something holds; `explain` says more if it never does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"waited in vain; {explain()}")
        time.sleep(0.02)


def lines(path: Path) -> list[str]:
    """The lines of a file that a graph writes; none before it has begun."""
    return path.read_text().splitlines() if path.exists() else []


def write_config(folder: Path) -> Path:
    """A configuration that serves the test graphs, and calls webhooks on this machine."""
    graphs = json.loads((GRAPHS / "langgraph.json").read_text())["graphs"]
    config = {
        "dependencies": [str(ROOT)],
        "graphs": {name: str(GRAPHS / place) for name, place in graphs.items()},
        "webhooks": {"url": {"disable_loopback": False, "require_https": False}},
    }
    path = folder / "langgraph.json"
    path.write_text(json.dumps(config))
    return path
