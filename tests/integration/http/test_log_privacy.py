"""Log lines show classes and stack frames of errors, and quote no text of a user."""

import asyncio
import io
import json
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import structlog
from websockets.asyncio.client import connect

from tests.support import databases
from tests.support.issuer import SECRET, bearer, token
from tests.support.processes import ROOT, Running
from tests.support.served import PATIENCE, Api, client, served
from threadhold.serving import logs

CANARY = "canary-51c0de"


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
async def test_no_line_of_a_server_quotes_what_a_user_typed(level: str, tmp_path: Path) -> None:
    with served(tmp_path, LOG_LEVEL=level) as server:
        async with client(server) as api:
            for error in ("RuntimeError", "ConnectionError", "ValueError", "CancelledError"):
                thread = await api.thread()
                failing = {"message": f"{CANARY} of {error}", "error": error}
                run = await api.run(thread, "failing", failing)
                await api.ended(thread, run)
                await api.http.post(
                    "/runs/stream", json={"assistant_id": "failing", "input": failing}
                )
            await streamed_by_a2a(api)
            thread = await api.thread()
            followed = {"channels": [f"custom:{CANARY}", "lifecycle"], "since": 0}
            await api.run(thread, "echo")
            async with api.stream("POST", f"/threads/{thread}/stream/events", followed) as events:
                await anext(events)
            refused = await api.http.post(
                f"/threads/{thread}/runs",
                json={"assistant_id": "echo", "multitask_strategy": CANARY},
            )
            assert refused.status_code == 422
            assert CANARY in refused.text
        said = await asyncio.to_thread(server.log.read_text)
    assert "Background run failed" in said
    assert "tests/graphs/failing.py" in said
    assert "RuntimeError" in said
    place = said.find(CANARY)
    assert place == -1, said[max(0, place - 600) : place + 100]


@pytest.mark.usefixtures("each_database")
@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
async def test_no_line_names_what_a_path_or_query_names(level: str, tmp_path: Path) -> None:
    settings = {"APP_ENV": "production", "JWT_SECRET": SECRET, "LOG_LEVEL": level}
    thread = str(uuid4())
    asked = [
        ("PUT", f"/api/documents/{CANARY}.md"),
        ("GET", f"/api/documents?name={CANARY}.md"),
        ("DELETE", f"/api/documents/{CANARY}.md"),
        # Without a route, or refused before one is found.
        ("PUT", f"/api/documents/{CANARY}/{CANARY}"),
        ("PATCH", f"/api/documents/{CANARY}"),
        ("GET", f"/{CANARY}"),
        ("GET", f"/threads/{CANARY}/state"),
        ("POST", f"/threads/{thread}/{CANARY}"),
        ("GET", f"/assistants/{CANARY}"),
        ("POST", f"/a2a/{CANARY}"),
        ("GET", f"/api/passages/{CANARY}"),
        ("GET", f"/assets/{CANARY}"),
        ("GET", f"/research/{CANARY}/progress"),
        ("GET", f"/store/items?key={CANARY}&namespace={CANARY}"),
        ("GET", f"/threads/{thread}"),
    ]
    with served(tmp_path, ROOT / "langgraph.json", **settings) as server:
        async with client(server, **bearer(token())) as api:
            for method, path in asked:
                content = b"# Plan\n\nText.\n" if method == "PUT" else None
                answer = await api.http.request(method, path, content=content)
                assert answer.status_code < 500, answer.text
            await asked_by_socket(server, await api.thread())
            wanted = {"agent": "icp_finder", "website": f"{CANARY}.example"}
            assert (await api.http.post("/threads/resolve", json=wanted)).is_success
            project = {"question": f"What is {CANARY}?", "project_id": CANARY}
            await api.http.post("/research", json=project)
            await api.http.post(f"/research/{CANARY}/cancel")
        async with client(server) as stranger:
            refused = await stranger.http.delete(f"/api/documents/{CANARY}.md")
            assert refused.status_code == 401
            await stranger.http.get(f"/threads/{thread}")
    said = await asyncio.to_thread(server.log.read_text)
    place = said.find(CANARY)
    assert place == -1, said[max(0, place - 300) : place + 300]
    requests = [line for line in map(json.loads, said.splitlines()) if line["event"] == "request"]
    shown = [
        (line["method"], line["path"], line.get("tenant"), line.get("user")) for line in requests
    ]
    assert ("PUT", "/api/documents/{name}", "acme", "ada") in shown
    assert ("DELETE", "/api/documents/{name}", None, None) in shown
    assert ("GET", "/threads/{thread_id}/state", "acme", "ada") in shown
    # Ids are no names.
    assert ("GET", f"/threads/{thread}", "acme", "ada") in shown
    assert ("GET", "(no route)", "acme", "ada") in shown


async def test_no_line_quotes_a_cron(tmp_path: Path) -> None:
    settings = {"LOG_LEVEL": "DEBUG", "CRON_SCHEDULER_SLEEP_TIME": "0"}
    with served(tmp_path, **settings) as server:
        async with client(server) as api:
            thread = await api.thread()
            cron = {"assistant_id": "echo", "schedule": "0 0 1 1 *", "input": {"value": CANARY}}
            await api.post(f"/threads/{thread}/runs/crons", cron)
            due = databases.date(time.time() - 1)
            databases.execute(tmp_path / "data.db", "UPDATE crons SET next_run_date = ?", due)
            async with asyncio.timeout(PATIENCE):
                while not await api.get(f"/threads/{thread}/runs"):
                    await asyncio.sleep(0.05)
        assert CANARY not in await asyncio.to_thread(server.log.read_text)


async def streamed_by_a2a(api: Api) -> None:
    """Send the canary by A2A, and read the stream of the answer."""
    [echo] = await api.post("/assistants/search", {"graph_id": "echo"})
    part = {"kind": "text", "text": CANARY}
    message = {"role": "user", "messageId": "m1", "parts": [part]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": {"message": message}}
    accept = {"accept": "text/event-stream"}
    answer = await api.http.post(f"/a2a/{echo['assistant_id']}", json=call, headers=accept)
    assert CANARY in answer.text


async def asked_by_socket(server: Running, thread: str) -> None:
    """Send the canary by WebSocket in the query, a header and a frame, and await the answer."""
    url = f"ws{server.url[4:]}/threads/{thread}/stream/events?note={CANARY}"
    headers = {**bearer(token()), "x-note": CANARY}
    asked = {"id": 1, "method": "run.start", "params": {"assistant_id": CANARY, "input": {}}}
    async with connect(url, additional_headers=headers, open_timeout=PATIENCE) as socket:
        await socket.send(json.dumps(asked))
        assert await asyncio.wait_for(socket.recv(), PATIENCE)


async def test_a_setting_shows_the_messages(tmp_path: Path) -> None:
    with served(tmp_path, LOG_ERROR_MESSAGES="true") as server:
        async with client(server) as api:
            thread = await api.thread()
            await api.ended(thread, await api.run(thread, "failing", {"message": CANARY}))
        assert CANARY in await asyncio.to_thread(server.log.read_text)


Log = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def lines() -> Iterator[Log]:
    """Log as the server does; the function returns the lines."""
    root, access = logging.getLogger(), logging.getLogger("threadhold.access")
    old = (root.handlers, root.level, access.handlers, access.propagate)
    levels = {name: logging.getLogger(name).level for name in (*logs.QUIET, *logs.REQUESTS)}
    configured = structlog.get_config()
    written = io.StringIO()
    logs.configure("INFO", written)
    yield lambda: [json.loads(line) for line in written.getvalue().splitlines()]
    (root.handlers, level, access.handlers, access.propagate) = old
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)
    structlog.configure(**configured)


def test_no_line_names_an_assistant(lines: Log) -> None:
    """`tools/list` of MCP logs an assistant whose schemas cannot be read."""
    logger = structlog.stdlib.get_logger("langgraph_api.api.mcp._handlers")
    logger.warning("Skipped", assistant_id="a1", assistant_name=CANARY, error=CANARY)
    [line] = lines()
    assert line["assistant_id"] == "a1"
    assert CANARY not in json.dumps(line)


def fail() -> None:
    """Raise a group with a cause, notes and nested groups, which all quote the canary."""
    try:
        try:
            raise KeyError(f"{CANARY} context")
        except KeyError:
            raise OSError(f"{CANARY} cause")  # noqa: B904 - the implicit context
    except OSError as cause:
        inner = ValueError(f"{CANARY} inner")
        inner.add_note(f"{CANARY} note")
        nested = ExceptionGroup(f"{CANARY} nested", [inner])
        raise ExceptionGroup(f"{CANARY} group", [nested, TypeError(CANARY)]) from cause


def test_causes_and_groups_show_classes_and_frames(lines: Log) -> None:
    try:
        fail()
    except ExceptionGroup as error:
        logging.getLogger("graph").exception("Failed: %s", error)  # noqa: TRY401 - users do
        logging.getLogger("graph").warning(f"Failed: {error.__cause__}")
        logging.getLogger("graph").warning("Failed: %(error)r", {"error": error})
        structlog.stdlib.get_logger("graph").warning("Failed: %s", error, error=str(error))
        structlog.stdlib.get_logger("threadhold.x").exception("Failed")
    said = lines()
    assert len(said) == 5
    assert CANARY not in str(said)
    for line in (said[0], said[4]):
        shown = line["exception"]
        kinds = ("KeyError", "OSError", "ExceptionGroup", "ValueError", "TypeError")
        assert all(kind in shown for kind in kinds), shown
        assert "in fail" in shown
        assert shown.index("KeyError\n") < shown.index("OSError\n") < shown.rindex("TypeError")
        assert "direct cause" in shown
        assert "During handling" in shown
    assert [line["event"] for line in said[:4]] == [
        "Failed: ExceptionGroup",
        "Failed: OSError",
        "Failed: 'ExceptionGroup'",
        "Failed: ExceptionGroup",
    ]


def test_errors_outside_of_their_handler_are_hidden(lines: Log) -> None:
    error = RuntimeError(f"{CANARY} late")
    stock = structlog.stdlib.get_logger("langgraph_api.worker")
    stock.warning(f"Background run failed, will retry. Exception: {type(error)}({error})")
    stock.warning("Stream failed", error=str(error), thread_id="t")
    stock.warning("Stream failed", anything=error)
    first, second, third = lines()
    assert first["event"].endswith("Exception: <class 'RuntimeError'>")
    assert (second["error"], second["thread_id"]) == ("(hidden)", "t")
    assert third["anything"] == "RuntimeError"
    assert CANARY not in str([first, second, third])
