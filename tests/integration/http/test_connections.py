"""Connections of clients that send nothing, send slowly, do not read, or are too many."""

import json
import resource
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support import databases
from tests.support.processes import GRAPHS, Running, environment, free_port, running, threadhold
from tests.support.served import served

PATIENCE = 60.0
FLOOD = 3000
HALF_HEAD = b"POST /threads/search HTTP/1.1\r\nHost: localhost\r\nContent-"
HALF_BODY = (
    b"POST /threads/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: 100\r\n\r\n{"
)


@contextmanager
def many_descriptors() -> Iterator[None]:
    """Allow this process as many sockets as a flood needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, FLOOD + 1000), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def opened(server: Running, sent: bytes = b"") -> socket.socket:
    parts = urlsplit(server.url)
    made = socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE)
    if sent:
        made.sendall(sent)
    return made


def rest(connection: socket.socket) -> bytes:
    """Return what the server sends until it closes the connection."""
    found = b""
    try:
        while piece := connection.recv(65_536):
            found += piece
    except ConnectionResetError:
        pass
    return found


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with 1,024 descriptors, which it cannot raise."""
    folder, port = tmp_path_factory.mktemp("limited"), free_port()
    command = threadhold("serve", "--config", GRAPHS / "langgraph.json", "--port", str(port))
    command += ["--database-url", databases.url(folder / "data.db")]
    shell = ["sh", "-c", 'ulimit -n 1024 && exec "$@"', "sh", *map(str, command)]
    with running(shell, port, folder, environment()) as server:
        yield server


@pytest.mark.parametrize("sent", [b"", HALF_HEAD, HALF_BODY], ids=["idle", "head", "body"])
def test_flood_of_unfinished_requests_does_not_end_the_service(
    limited: Running, sent: bytes
) -> None:
    with many_descriptors(), ExitStack() as stack:
        for _ in range(FLOOD):
            stack.enter_context(opened(limited, sent))
        # While all of them are open, and far sooner than any of their time limits.
        with httpx.Client(base_url=limited.url, timeout=14) as client:
            assert client.get("/ok").status_code == 200
            assert client.post("/threads", json={}).status_code == 200
    assert httpx.get(f"{limited.url}/health", timeout=PATIENCE).status_code == 200
    assert "Too many open files" not in limited.log.read_text()


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with short time limits."""
    limits = {"HEAD_TIMEOUT_SECONDS": "1", "BODY_TIMEOUT_SECONDS": "1"}
    with served(
        tmp_path_factory.mktemp("quick"), GRAPHS / "langgraph.json", None, **limits
    ) as server:
        yield server


def dripping(connection: socket.socket, piece: bytes) -> bytes:
    """Send a piece every tenth of a second until the server closes. Return its answer."""
    connection.settimeout(0.1)
    found, end = b"", time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            connection.sendall(piece)
            if not (received := connection.recv(65_536)):
                return found
            found += received
        except TimeoutError:
            continue
        except (ConnectionResetError, BrokenPipeError):
            return found
    raise TimeoutError("the server did not close the connection")


def test_silent_connection_is_closed(quick: Running) -> None:
    with opened(quick) as connection:
        assert rest(connection) == b""


def test_slowly_sent_head_is_refused(quick: Running) -> None:
    with opened(quick, HALF_HEAD) as connection:
        assert dripping(connection, b"x").startswith(b"HTTP/1.1 408 ")
    # Between two requests, empty lines are no head.
    with opened(quick, b"GET /ok HTTP/1.1\r\nHost: localhost\r\n\r\n") as connection:
        assert dripping(connection, b"\r\n").startswith(b"HTTP/1.1 200 ")


def test_head_without_end_is_refused(quick: Running) -> None:
    with opened(quick, HALF_HEAD + b"x" * 100_000) as connection:
        assert rest(connection).startswith(b"HTTP/1.1 431 ")


def test_slowly_sent_body_is_refused(quick: Running) -> None:
    with opened(quick, HALF_BODY.replace(b"100", b"100000")) as connection:
        head, _, body = dripping(connection, b" ").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in head.lower()
    assert json.loads(body) == {"detail": "The body of the request did not arrive in time"}


def test_unread_rest_of_a_body_does_not_keep_the_connection(quick: Running) -> None:
    """A route that reads no body has answered, and the client drips."""
    with opened(
        quick, HALF_BODY.replace(b"100", b"100000").replace(b"/threads/search", b"/ok")
    ) as (connection):
        assert dripping(connection, b" ").startswith(b"HTTP/1.1 ")


def test_connection_serves_many_requests(quick: Running) -> None:
    """The time limit of a head begins with the head: a pause between requests is longer."""
    with httpx.Client(base_url=quick.url, timeout=PATIENCE) as client:
        for pause in (0, 1.5, 0):
            time.sleep(pause)
            assert client.post("/threads/search", json={}).status_code == 200
            stream = client.get("/ok").extensions["network_stream"]
            ports = stream.get_extra_info("socket").getsockname()
            assert (
                ports
                == client.get("/ok")
                .extensions["network_stream"]
                .get_extra_info("socket")
                .getsockname()
            )


def test_busy_connections_leave_a_reserve_for_health_checks(tmp_path: Path) -> None:
    with served(tmp_path, MAX_CONNECTIONS="3") as server, ExitStack() as stack:

        def until(path: str, wanted: Callable[[httpx.Response], bool]) -> httpx.Response:
            end = time.monotonic() + PATIENCE
            while not wanted(found := httpx.get(server.url + path, timeout=PATIENCE)):
                assert time.monotonic() < end, found.text
            return found

        body = {"assistant_id": "sleeper", "input": {"seconds": 60}}
        for _ in range(3):
            client = stack.enter_context(httpx.Client(timeout=PATIENCE))
            request = client.stream("POST", f"{server.url}/runs/stream", json=body)
            assert stack.enter_context(request).status_code == 200
        refused = until("/info", lambda answer: answer.status_code != 200)
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "1"
        for path in ("/ok", "/health", "/metrics"):
            assert httpx.get(server.url + path, timeout=PATIENCE).status_code == 200, path
        metrics = httpx.get(f"{server.url}/metrics", timeout=PATIENCE).text
        assert 'threadhold_connections_closed_total{reason="limit"}' in metrics
        stack.close()
        until("/info", lambda answer: answer.status_code == 200)
