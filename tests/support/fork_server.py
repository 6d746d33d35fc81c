"""A process that imports the libraries of every server once, and then forks servers.

Imports take half of a server's start, and the tests start hundreds of servers. The fork server
imports no module that reads the environment, and no package that a served project may have, too. A
forked process gets its own environment, and then
runs `python -m`, a script or the code of `python -c` like any other process.

    < {"start": [...], "folder": ..., "log": ..., "errors": ..., "environment": {...}}
                                        > the process id
    < {"poll": pid}                     > its exit status once it has ended, else null
"""

import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
import types
from contextlib import suppress
from typing import Any

# Not langgraph_api, which reads the environment, nor packages of the example, like `hooks`: a project
# of a test may have another one.
LIBRARIES = (
    *("langchain_core.messages", "langchain_core.runnables", "langchain_core.load"),
    *("langgraph.graph", "langgraph.pregel", "langgraph.pregel.remote", "langgraph.func"),
    *("langgraph.checkpoint.base", "langgraph.store.sqlite", "langgraph_sdk", "langsmith.client"),
    *("sqlalchemy.dialects.sqlite", "sqlalchemy.dialects.postgresql.psycopg", "psycopg"),
    *("langgraph.store.postgres", "pydantic_settings"),
    *("starlette.applications", "starlette.middleware.cors", "starlette.testclient"),
    *("uvicorn.config", "uvicorn.protocols.http.httptools_impl", "websockets.server", "httpx"),
    *("numpy", "rich.console", "structlog.stdlib", "prometheus_client", "requests", "psutil"),
    *("google.protobuf.json_format", "grpc", "grpc.aio", "opentelemetry.sdk.trace", "watchfiles"),
    *("orjson", "ormsgpack", "jsonschema_rs", "click", "yaml", "aiosqlite", "sse_starlette"),
    *("alembic.command", "cryptography.hazmat.primitives.ciphers.aead", "jwt", "langchain_openai"),
    *("langgraph_runtime_sql.lifespan", "threadhold.host", "threadhold.cli", "threadhold.move"),
    *("threadhold.serving.server", "threadhold.admin.doctor"),
)
POLL_SECONDS = 0.01


class Child:
    """A forked process, with the methods of `subprocess.Popen` that tests need.

    Attributes:
        pid: The process id.
        returncode: The exit status once `poll` or `wait` has seen the end; None before.
    """

    def __init__(self, fork_server: "ForkServer", pid: int, command: list[str]) -> None:
        self._fork_server = fork_server
        self.args = command
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, or None while the process runs."""
        if self.returncode is None:
            self.returncode = self._fork_server.ask({"poll": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process and return its exit status.

        Raises:
            subprocess.TimeoutExpired: the process still runs after `timeout` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            time.sleep(POLL_SECONDS)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The fork server's process, as its clients use it."""

    def __init__(self, env: dict[str, str]) -> None:
        self._asking = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, __file__], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def start(
        self, command: list[str], folder: str, log: str, env: dict[str, str], errors: str = ""
    ) -> Child:
        """Run a command in a forked process.

        Args:
            command: `python -m module ...`, `python script.py ...` or `python -c code ...`.
            folder: The working directory.
            log: The file for standard output.
            env: The whole environment.
            errors: The file for standard error; by default `log`.
        """
        asked = {"start": command[1:], "folder": folder, "log": log, "errors": errors or log}
        asked["environment"] = env
        return Child(self, self.ask(asked), command)

    def ask(self, question: Any) -> Any:
        """Send a question and return the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._asking:
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        assert answer, "the fork server has died"
        return json.loads(answer)

    def close(self) -> None:
        """End the fork server and all processes that it forked."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class _Forked(BaseException):
    """Leaves the fork server's loop in the forked process."""

    def __init__(self, order: Any) -> None:
        self.order = order


def _serve() -> None:
    children: set[int] = set()
    try:
        for line in sys.stdin:
            order = json.loads(line)
            answer = _fork(order, children) if "start" in order else _poll(order["poll"], children)
            print(json.dumps(answer), flush=True)
    finally:
        # The client has closed the connection or died.
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


def _fork(order: Any, children: set[int]) -> int:
    if child := os.fork():
        children.add(child)
        return child
    children.clear()
    raise _Forked(order)


def _poll(child: int, children: set[int]) -> int | None:
    found, status = os.waitpid(child, os.WNOHANG)
    if not found:
        return None
    children.discard(child)
    return os.waitstatus_to_exitcode(status)


def _become(order: Any) -> None:
    """Run the ordered command as a new Python process does."""
    for target, path in ((0, os.devnull), (1, order["log"]), (2, order["errors"])):
        how = os.O_RDONLY if target == 0 else os.O_WRONLY | os.O_APPEND | os.O_CREAT
        source = os.open(path, how)
        os.dup2(source, target)
        os.close(source)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    first, *arguments = order["start"]
    # The order of `python -m`: the working directory, then PYTHONPATH.
    said = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    rest = [each for each in sys.path[1:] if each not in said]
    if first == "-m":
        sys.path[:] = [order["folder"], *said, *rest]
        sys.argv = arguments
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.path[:] = [order["folder"], *said, *rest]
        sys.argv = [first, *arguments[1:]]
        sys.modules["__main__"] = module = types.ModuleType("__main__")
        exec(compile(arguments[0], "<string>", "exec"), module.__dict__)  # noqa: S102  # as asked
    else:
        # `-P` keeps the script's folder out of the path.
        script, folder = (
            (first, [os.path.dirname(first)]) if first != "-P" else (arguments.pop(0), [])
        )
        sys.path[:] = [*folder, *said, *rest]
        sys.argv = [script, *arguments]
        runpy.run_path(script, run_name="__main__")


def main() -> None:
    for name in LIBRARIES:
        importlib.import_module(name)
    assert "langgraph_api" not in sys.modules
    # Otherwise each forked process copies the pages of these objects when it collects garbage.
    gc.collect()
    gc.freeze()
    try:
        _serve()
    except _Forked as forked:
        order = forked.order
    else:
        return
    _become(order)


if __name__ == "__main__":
    main()
