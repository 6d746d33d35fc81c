"""A full disk is one state: health, answers and log name it, and everything goes on when there is room."""

import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.chaos.victim import lines
from tests.support import databases
from tests.support.processes import GRAPHS, Running, environment, free_port, running, threadhold
from tests.support.small_disk import SmallDisk, small_disk

pytestmark = pytest.mark.usefixtures("each_database")

PATIENCE = 60.0
# Random bytes, because the database would compress others.
BALLAST = {"ballast": os.urandom(500_000).hex()}


@pytest.fixture
def disk() -> Iterator[SmallDisk]:
    with small_disk() as made:
        yield made


@pytest.fixture
def server(disk: SmallDisk, tmp_path: Path) -> Iterator[Running]:
    port = free_port()
    command = threadhold("serve", "--config", GRAPHS / "langgraph.json", "--port", str(port))
    command += ["--database-url", databases.url(disk.database)]
    with running(command, port, tmp_path, environment(LOG_LEVEL="INFO")) as started:
        yield started


@pytest.fixture
def http(server: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
        yield client


def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def refusal(http: httpx.Client) -> httpx.Response:
    """Write until a write is refused, and return the refusal."""
    for _ in range(200):
        answer = http.post("/threads", json={"metadata": BALLAST})
        if not answer.is_success:
            return answer
    raise AssertionError("the disk has more room than it should")


def outages(server: Running) -> list[dict[str, Any]]:
    """Return the lines of the log above `info`, except those of requests."""
    found = [json.loads(line) for line in server.log.read_text().splitlines()]
    return [
        each
        for each in found
        if each["level"] not in ("info", "debug") and each["event"] != "request"
    ]


def test_full_disk_is_one_state_and_runs_go_on_when_there_is_room(
    disk: SmallDisk, server: Running, http: httpx.Client, tmp_path: Path
) -> None:
    kept = http.post("/threads", json={}).json()["thread_id"]
    thread = http.post("/threads", json={}).json()["thread_id"]
    record, gate = tmp_path / "steps", tmp_path / "gate"
    asked = {"count": 6, "ballast": 500_000, "record": str(record), "gate": str(gate)}
    body = {"assistant_id": "steps", "input": asked}
    gate.write_text("2")
    run = http.post(f"/threads/{thread}/runs", json=body).json()["run_id"]
    until(lambda: len(lines(record)) == 3)

    disk.fill(server.process.pid)
    refused = refusal(http)
    assert refused.status_code == 503, refused.text
    assert refused.json()["database"] == "disk full"
    assert "The disk of the database is full" in refused.json()["detail"]
    assert int(refused.headers["retry-after"]) > 0
    health = http.get("/health")
    assert (health.status_code, health.json()["reason"]) == (503, "disk full")
    assert 'threadhold_database_state{state="disk full"} 1.0' in http.get("/metrics").text
    assert http.get("/ok", params={"check_db": 1}).status_code == 503
    assert http.get(f"/threads/{kept}").is_success
    # The run cannot store its step, and begins no other.
    gate.write_text("6")
    health = http.get("/health")
    assert (health.status_code, health.json()["reason"]) == (503, "disk full")

    disk.free(server.process.pid)
    until(lambda: http.get("/health").is_success)
    place = f"/threads/{thread}/runs/{run}"
    until(lambda: http.get(place).json()["status"] not in ("pending", "running"))
    assert http.get(place).json()["status"] == "success"
    assert lines(record) == [f"{run} {number}" for number in range(6)]
    assert http.post("/threads", json={"metadata": BALLAST}).is_success
    found = outages(server)
    assert [each.get("action") for each in found] == ["database_outage", "database_outage_over"]
    assert {each["state"] for each in found} == {"disk full"}


def ended(http: httpx.Client, method: str, path: str, body: Any) -> str:
    """Return the text of an answer, whose connection may break."""
    text = ""
    with suppress(httpx.RemoteProtocolError), http.stream(method, path, json=body) as answer:
        assert answer.is_success
        for part in answer.iter_text():
            text += part
    return text


# On Postgres, `test_connections` has the same of another cause.
@pytest.mark.only("sqlite")
def test_waits_end_with_an_error_and_streams_with_resume_and_the_run_goes_on(
    disk: SmallDisk, server: Running, http: httpx.Client, tmp_path: Path
) -> None:
    gate, asked = tmp_path / "gate", {"count": 2, "ballast": 500_000}
    gate.write_text("0")
    body = {"assistant_id": "steps", "input": {**asked, "gate": str(gate)}}
    thread, other = (http.post("/threads", json={}).json()["thread_id"] for _ in range(2))
    events = {"channels": ["values"]}
    answers = {
        "wait": ("POST", f"/threads/{thread}/runs/wait", body),
        "stream": ("POST", f"/threads/{other}/runs/stream", body),
        "thread": ("GET", f"/threads/{thread}/stream", None),
        "v2": ("POST", f"/threads/{thread}/stream/events", events),
    }
    with ThreadPoolExecutor(len(answers)) as pool:
        asking = {
            name: pool.submit(ended, http, method, path, sent)
            for name, (method, path, sent) in answers.items()
        }
        until(lambda: all(http.get(f"/threads/{each}/runs").json() for each in (thread, other)))
        runs = [http.get(f"/threads/{each}/runs").json()[0]["run_id"] for each in (thread, other)]
        disk.fill(server.process.pid)
        assert refusal(http).status_code == 503
        gate.write_text("2")
        texts = {name: each.result(PATIENCE) for name, each in asking.items()}
    error = json.loads(texts.pop("wait"))["__error__"]
    assert (error["error"], error["run_id"]) == ("DatabaseOutage", runs[0])
    assert "The disk of the database is full" in error["message"]
    for text in texts.values():
        *before, last = text.strip().replace("\r", "").split("\n\n")
        assert last.startswith("event: resume") and "The disk of the database is full" in last
        assert not [each for each in before if each.startswith("event: error")]
    assert runs[1] in texts["stream"]

    disk.free(server.process.pid)
    for each, run in zip((thread, other), runs, strict=True):
        assert http.get(f"/threads/{each}/runs/{run}/join").json()["done"] == [0, 1]
