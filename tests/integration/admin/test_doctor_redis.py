"""The doctor examines the Redis through which processes exchange events."""

import asyncio
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from langgraph_runtime_sql import migrations
from tests.support import databases
from tests.support.processes import free_port
from tests.support.redis import started
from threadhold.cli import main

# Redis is used with Postgres; test_doctor.py tests what the doctor finds in a database.
pytestmark = [pytest.mark.usefixtures("each_database", "settings"), pytest.mark.only("postgresql")]
PASSWORD = "a-secret"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a Redis that needs a password and yield its address."""
    with started(tmp_path_factory.mktemp("valkey")) as server:
        server.do("CONFIG", "SET", "requirepass", PASSWORD)
        yield f"127.0.0.1:{server.port}"


@pytest.fixture(scope="module")
def url(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the URL of a healthy database."""
    return databases.url(tmp_path_factory.mktemp("data") / "data.db")


def doctor(url: str, redis_url: str | None = None, *, by_environment: bool = False) -> Result:
    command = ["doctor", "--database-url", url]
    if redis_url is not None and not by_environment:
        command += ["--redis-url", redis_url]
    env = {"REDIS_URL": redis_url if by_environment else None}
    done = CliRunner().invoke(main, command, env=env, catch_exceptions=False)
    assert PASSWORD not in done.output
    assert "Traceback" not in done.output
    return done


@pytest.mark.parametrize("by_environment", [False, True], ids=["option", "environment"])
def test_healthy_redis_has_no_finding(url: str, address: str, by_environment: bool) -> None:
    done = doctor(url, f"redis://:{PASSWORD}@{address}/0", by_environment=by_environment)
    assert done.exit_code == 0, done.output
    assert "nothing is wrong" in done.output


def assert_found(done: Result, where: str, why: str, remedy: str) -> None:
    assert done.exit_code == 1
    [what, advice] = done.stdout.splitlines()
    assert what.startswith(f"redis redis://{where}/0: ")
    assert why in what
    assert advice.startswith("    remedy: ")
    assert remedy in advice


def test_unreachable_redis_is_reported(url: str) -> None:
    where = f"127.0.0.1:{free_port()}"
    done = doctor(url, f"redis://somebody:{PASSWORD}@{where}/0")
    assert_found(done, where, "does not answer", "bring it back")


@pytest.mark.parametrize("user", ["", ":wrong@", "nobody:wrong@"], ids=["none", "wrong", "unknown"])
def test_refused_redis_credentials_are_reported(url: str, address: str, user: str) -> None:
    done = doctor(url, f"redis://{user}{address}/0")
    assert_found(done, address, "does not accept user and password", "REDIS_URL")
    assert "wrong@" not in done.output


def test_redis_cluster_is_reported(url: str, tmp_path: Path) -> None:
    with started(tmp_path, cluster_enabled="yes") as server:
        done = doctor(url, server.url)
    assert_found(done, f"127.0.0.1:{server.port}", "is a Cluster", "name another in REDIS_URL")


class Greeting(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


@contextmanager
def other_server() -> Iterator[int]:
    """Start a server that is not Redis and yield its port."""
    with socketserver.TCPServer(("127.0.0.1", free_port()), Greeting) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()


def test_server_that_is_not_redis_is_reported(url: str) -> None:
    with other_server() as port:
        done = doctor(url, f"redis://:{PASSWORD}@127.0.0.1:{port}/0")
    assert_found(done, f"127.0.0.1:{port}", "is no Redis", "name another in REDIS_URL")


@pytest.mark.parametrize(
    "given",
    [f"http://:{PASSWORD}@host", f"redis://:{PASSWORD}@host:port/0", f"redis://{PASSWORD}@"],
)
def test_invalid_redis_url_is_refused_without_its_password(url: str, given: str) -> None:
    done = doctor(url, given)
    assert done.exit_code == 1
    assert "Redis URL" in done.output


async def test_shared_database_needs_no_redis(url: str) -> None:
    served = migrations.open_database(url, shared=True)
    await served.start()
    try:
        done = await asyncio.to_thread(doctor, url)
    finally:
        await served.stop()
    assert done.exit_code == 0, done.output
    assert "nothing is wrong" in done.output
    assert "Redis" not in done.output


def test_examined_redis_stays_empty(url: str, tmp_path: Path) -> None:
    with started(tmp_path) as server:
        assert doctor(url, server.url).exit_code == 0
        assert server.do("KEYS", "*") == []
