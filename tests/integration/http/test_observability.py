"""What operators see: metrics, one line for each run, request ids, and traces."""

import json
import logging
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from langgraph_runtime_sql import gauges
from tests.support import databases
from tests.support.http_server import QuietHandler, answering
from tests.support.processes import Running, environment, free_port, library, running
from threadhold.serving import logs

PATIENCE = 60.0
SECRET = "what the user said"

GRAPHS = '''
import time
from pathlib import Path
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import StateGraph
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    text: str
    wait: str
    fail: bool


usage = {"input_tokens": 7, "output_tokens": 5, "total_tokens": 12}


@tool
def look_up(text: str) -> str:
    """Look something up."""
    return text


async def agent(state: State) -> State:
    if state.get("fail"):
        raise RuntimeError("as asked")
    model = GenericFakeChatModel(messages=iter([AIMessage("hi", usage_metadata=usage)]))
    await model.ainvoke(state.get("text", ""))
    await look_up.ainvoke({"text": state.get("text", "")})
    return {}


async def waiting(state: State) -> State:
    import asyncio
    while state.get("wait") and not Path(state["wait"]).exists():
        await asyncio.sleep(0.02)
    return {}


builder = StateGraph(State).add_node(agent).add_node(waiting)
graph = builder.add_edge("__start__", "agent").add_edge("agent", "waiting").compile()
'''


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "graph.py").write_text(GRAPHS)
    path = tmp_path / "langgraph.json"
    path.write_text(json.dumps({"graphs": {"helper": "./graph.py:graph"}}))
    return path


@contextmanager
def serving(config: Path, *more: str, **env: str) -> Iterator[Running]:
    port = free_port()
    command = library("serve", "--config", config, "--port", str(port), *more)
    env = {"DATABASE_URL": databases.url(config.parent / "x.db"), **env}
    with running(command, port, config.parent, environment(**env)) as server:
        yield server


def ran(http: httpx.Client, headers: dict[str, str] | None = None, **input: Any) -> httpx.Response:
    body = {"assistant_id": "helper", "input": {"text": SECRET, **input}}
    return http.post("/runs/wait", json=body, headers=headers).raise_for_status()


def value(text: str, name: str, **labels: str) -> float:
    """Return the sum of a metric's values with these labels."""
    found = 0.0
    for line in text.splitlines():
        if match := re.fullmatch(rf"{name}(?:\{{(.*)\}})? (\S+)", line):
            known = dict(re.findall(r'(\w+)="([^"]*)"', match.group(1) or ""))
            if labels.items() <= known.items():
                found += float(match.group(2))
    return found


def lines(server: Running, event: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in server.log.read_text().splitlines() if line[:1] == "{"]
    return [each for each in found if each["event"] == event]


@pytest.mark.usefixtures("each_database")
def test_gauges_of_workers_are_those_of_the_moment(config: Path, tmp_path: Path) -> None:
    """langgraph_api looks at them every few seconds only; alerts would see an idle process."""
    gate = tmp_path / "gate"
    body = {"assistant_id": "helper", "input": {"text": "hi", "wait": str(gate)}}
    with (
        serving(config, STATS_INTERVAL_SECS="600") as server,
        httpx.Client(base_url=server.url, timeout=60) as http,
    ):

        def look() -> tuple[float, float, float]:
            text = http.get("/metrics").raise_for_status().text
            named = (f"lg_api_workers_{name}" for name in ("max", "active", "available"))
            most, active, available = (value(text, name) for name in named)
            assert value(text, "threadhold_slots_active") == active
            return most, active, available

        assert look() == (120, 0, 120)
        thread = http.post("/threads", json={}).json()["thread_id"]
        path = f"/threads/{thread}/runs"
        run = http.post(path, json=body).raise_for_status().json()["run_id"]
        while http.get(f"{path}/{run}").json()["status"] != "running":
            time.sleep(0.02)
        assert look() == (120, 1, 119)
        gate.touch()
        http.get(f"{path}/{run}/join").raise_for_status()
        deadline = time.monotonic() + PATIENCE
        # The slot is free a moment after the answer.
        while look() != (120, 0, 120):
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.mark.usefixtures("each_database")
def test_metrics_and_lines_of_runs(config: Path) -> None:
    with serving(config) as server, httpx.Client(base_url=server.url, timeout=60) as http:
        first = http.get("/metrics").text
        # From the first second on.
        assert value(first, "threadhold_slots") == 120
        assert value(first, "lg_api_workers_max") == 120
        answer = ran(http, {"x-request-id": "req-1"})
        assert answer.headers["x-request-id"] == "req-1"
        forged = ran(http, {"x-request-id": "two words"}).headers["x-request-id"]
        assert forged != "two words"
        assert re.fullmatch("[0-9a-f-]{36}", http.get("/ok").headers["x-request-id"])
        assert "__error__" in ran(http, fail=True).json()

        text = http.get("/metrics").text
        own = {"graph": "helper", "tenant_class": "none"}
        assert value(text, "threadhold_runs_queued_total", **own) == 3
        assert value(text, "threadhold_runs_started_total", **own) == 3
        assert value(text, "threadhold_runs_ended_total", status="success", **own) == 2
        assert value(text, "threadhold_runs_ended_total", status="error", **own) == 1
        assert value(text, "threadhold_runs_failed_total", **own) == 1
        assert value(text, "threadhold_runs_retried_total") == 0
        assert value(text, "threadhold_run_wait_seconds_count", **own) == 3
        assert value(text, "threadhold_run_duration_seconds_count", **own) == 3
        assert value(text, "threadhold_tokens_total", kind="input") == 14
        assert value(text, "threadhold_tokens_total", kind="output") == 10
        assert value(text, "threadhold_database_seconds_count", kind="write") > 0
        assert value(text, "threadhold_database_bytes") > 0
        assert "threadhold_queue_depth 0.0" in text

        ok, _, failed = lines(server, "run ended")
        wanted = {"graph": "helper", "status": "success", "attempts": 1, "request_id": "req-1"}
        assert wanted.items() <= ok.items()
        assert (ok["input_tokens"], ok["output_tokens"]) == (7, 5)
        assert failed["status"] == "error"
        log = server.log.read_text()
        assert log.count("Traceback") == 1
        assert SECRET not in log


@pytest.mark.usefixtures("each_database")
def test_a_scrape_shows_webhooks_and_the_event_log(config: Path) -> None:
    statuses = iter([200, 500, 410])

    class Receiver(QuietHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            status = next(statuses)
            self.send_response(status)
            if status == 500:
                # Its retry is not part of this test.
                self.send_header("retry-after", "3600")
            self.end_headers()

    allowed = {"url": {"disable_loopback": False, "require_https": False}}
    config.write_text(json.dumps({**json.loads(config.read_text()), "webhooks": allowed}))
    with (
        answering(Receiver) as receiver,
        serving(config, ALLOW_PRIVATE_WEBHOOKS="true") as server,
        httpx.Client(base_url=server.url, timeout=60) as http,
    ):
        for _ in range(3):
            body = {
                "assistant_id": "helper",
                "input": {"text": SECRET},
                "webhook": f"{receiver}/hook",
            }
            # Its events are in the log at once.
            body |= {"stream_mode": ["values"], "stream_resumable": True}
            thread = http.post("/threads", json={}).raise_for_status().json()["thread_id"]
            answer = http.post(f"/threads/{thread}/runs/stream", json=body)
            assert answer.is_success, answer.text
        wanted = {"delivered": 1.0, "retried": 1.0, "dead": 1.0}
        deadline, seen, text = time.monotonic() + PATIENCE, {}, ""
        while seen != wanted or value(text, "threadhold_webhooks_dead") != 1:
            assert time.monotonic() < deadline, text
            time.sleep(0.1)
            text = http.get("/metrics").text
            seen = {name: value(text, "threadhold_webhooks_total", outcome=name) for name in wanted}
        assert value(text, "threadhold_webhooks_pending") == 1
        assert value(text, "threadhold_event_log_bytes") > 0


async def test_a_large_event_log_is_added_up_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gauges, "SLICE_ROWS", 2)
    sizes = [10, 20, 30, 40, 50]

    class Found:
        def read(self, work: Any) -> Any:
            async def found() -> Any:
                return work(self)

            return found()

        def fetchone(self, statement: Any, given: dict[str, int]) -> dict[str, int]:
            after = given["after"]
            rows = sizes[after : after + 2]
            return {"count": len(rows), "last": after + len(rows), "size": sum(rows)}

    log: Any = gauges._LogSize()
    assert [await log.look(Found()) for _ in range(3)] == [30, 100, 150]
    del sizes[1:]
    assert await log.look(Found()) == 10
    sizes += [1, 1, 1]
    # Until the rows have been added up again, the size is the former one.
    assert [await log.look(Found()) for _ in range(3)] == [10, 10, 13]


def test_dev_allows_pages_of_this_machine_and_names_the_setting_for_others(config: Path) -> None:
    port = free_port()
    command = library("dev", "--config", config, "--port", str(port))
    env = environment(DATABASE_URL=databases.url(config.parent / "x.db"))
    with (
        running(command, port, config.parent, env) as server,
        httpx.Client(base_url=server.url, timeout=60) as http,
    ):
        seen = {}
        for origin in ("http://localhost:5173", "https://evil.example", "https://evil.example"):
            answer = http.post("/threads", json={}, headers={"origin": origin})
            seen[origin] = answer.status_code, answer.headers.get("access-control-allow-origin")
        local = "http://localhost:5173"
        assert seen == {local: (200, local), "https://evil.example": (403, None)}
        told = [each for each in server.log.read_text().splitlines() if "Refused the web" in each]
    assert len(told) == 1
    assert "https://evil.example" in told[0] and "CORS_ALLOW_ORIGINS" in told[0]


def test_lines_are_coloured_on_a_terminal_and_json_elsewhere() -> None:
    fields = {"graph": "helper", "status": "error", "seconds": 1.5}
    record = logging.makeLogRecord(
        {"name": "threadhold.runs", "levelname": "INFO", "run": fields, "created": 0.0}
    )
    plain, colored = (
        logs.RunLine(terminal=terminal, error_messages=False).format(record)
        for terminal in (False, True)
    )
    assert json.loads(plain).items() >= {**fields, "event": "run ended"}.items()
    text = re.sub("\x1b\\[[0-9]+m", "", colored)
    assert text == (
        "1970-01-01T00:00:00.000000Z [info     ] run ended graph=helper status=error seconds=1.5"
    )
    # A run that failed is red.
    assert logs.RED in colored


class Collector:
    """An OTLP collector on loopback.

    Attributes:
        url: Its endpoint.
        spans: What it has received, by name.
    """

    def __init__(self, url: str, spans: list[Span]) -> None:
        self.url, self.spans = url, spans

    def named(self, name: str, count: int = 1) -> list[Span]:
        """Wait for spans of this name."""
        deadline = time.monotonic() + PATIENCE
        while len(found := [each for each in self.spans if each.name == name]) < count:
            assert time.monotonic() < deadline, [each.name for each in self.spans]
            time.sleep(0.02)
        return found


@pytest.fixture
def collector() -> Iterator[Collector]:
    spans: list[Span] = []

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    spans.extend(scope.spans)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield Collector(f"http://127.0.0.1:{server.server_port}", spans)
        server.shutdown()
        thread.join()


def traced(collector: Collector, **more: str) -> dict[str, str]:
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
        "OTEL_BSP_SCHEDULE_DELAY": "50",
        **more,
    }


def attributes(span: Span) -> dict[str, Any]:
    found = {}
    for each in span.attributes:
        kind = each.value.WhichOneof("value")
        found[each.key] = getattr(each.value, str(kind))
    return found


TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.usefixtures("each_database")
def test_a_run_is_one_trace_in_whatever_process(config: Path, collector: Collector) -> None:
    """From the client's own span to the model's; the second attempt is made after a restart."""
    go = config.parent / "go"
    headers = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
    env = traced(collector, SHUTDOWN_GRACE_SECONDS="0")
    with serving(config, **env) as server, httpx.Client(base_url=server.url, timeout=60) as http:
        thread = http.post("/threads", json={}).json()["thread_id"]
        body = {"assistant_id": "helper", "input": {"text": SECRET, "wait": str(go)}}
        run = http.post(f"/threads/{thread}/runs", json=body, headers=headers).json()["run_id"]
        collector.named("execute_tool look_up")
        # The node has ended, too, so the second attempt does not repeat it.
        collector.named("node agent")
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(PATIENCE)
    go.touch()
    with serving(config, **env) as server, httpx.Client(base_url=server.url, timeout=60) as http:
        http.get(f"/threads/{thread}/runs/{run}/join").raise_for_status()
        attempts = collector.named("invoke_agent helper", 2)
    mine = [each for each in collector.spans if each.trace_id.hex() == TRACE]
    by_id = {each.span_id: each for each in mine}

    def chain(span: Span) -> list[str]:
        parent = by_id.get(span.parent_span_id)
        return [span.name, *([] if parent is None else chain(parent))]

    request = "POST /threads/{thread_id}/runs"
    [chat], [tool] = (
        collector.named("chat generic-fake-chat-model"),
        collector.named("execute_tool look_up"),
    )
    for span in (chat, tool):
        assert chain(span) == [span.name, "node agent", "invoke_agent helper", request]
    assert [chain(each) for each in collector.named("queue wait", 2)] == [
        ["queue wait", request]
    ] * 2
    assert {each.trace_id.hex() for each in attempts} == {TRACE}
    told = attributes(chat)
    assert told["gen_ai.operation.name"] == "chat"
    assert (told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"]) == (7, 5)
    last = attributes(max(attempts, key=lambda each: each.end_time_unix_nano))
    assert last["threadhold.run.status"] == "success"
    assert last["gen_ai.conversation.id"] == thread
    assert last["threadhold.run.id"] == run
    # Content is off by default.
    assert not any(SECRET in str(each) for each in mine)


@pytest.mark.usefixtures("each_database")
def test_the_attempt_after_a_kill_is_in_the_same_trace(config: Path, collector: Collector) -> None:
    """Another process continues the run. The killed one has sent what had ended before."""
    go = config.parent / "go"
    headers = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
    env = traced(collector)
    with serving(config, **env) as server, httpx.Client(base_url=server.url, timeout=60) as http:
        thread = http.post("/threads", json={}).json()["thread_id"]
        body = {"assistant_id": "helper", "input": {"text": SECRET, "wait": str(go)}}
        run = http.post(f"/threads/{thread}/runs", json=body, headers=headers).json()["run_id"]
        collector.named("node agent")
        [request] = collector.named("POST /threads/{thread_id}/runs")
        server.process.kill()
        server.process.wait(PATIENCE)
    go.touch()
    with serving(config, **env) as server, httpx.Client(base_url=server.url, timeout=60) as http:
        http.get(f"/threads/{thread}/runs/{run}/join").raise_for_status()
        [attempt] = collector.named("invoke_agent helper")
        text = http.get("/metrics").text
        [line] = lines(server, "run ended")
    assert value(text, "threadhold_runs_retried_total", graph="helper") == 1
    assert (line["run_id"], line["status"], line["attempts"]) == (run, "success", 2)
    told = attributes(attempt)
    assert (told["threadhold.run.attempt"], told["threadhold.run.id"]) == (2, run)
    assert attempt.parent_span_id == request.span_id
    for name, count in (("queue wait", 2), ("node agent", 1), ("node waiting", 1)):
        assert {each.trace_id.hex() for each in collector.named(name, count)} == {TRACE}


def test_traces_show_content_only_if_asked(config: Path, collector: Collector) -> None:
    env = traced(collector, OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true")
    with serving(config, **env) as server, httpx.Client(base_url=server.url, timeout=60) as http:
        ran(http)
        ran(http, fail=True)
        [chat] = collector.named("chat generic-fake-chat-model")
        failed = max(
            collector.named("invoke_agent helper", 2), key=lambda each: each.end_time_unix_nano
        )
    assert SECRET in attributes(chat)["gen_ai.input.messages"]
    assert attributes(failed)["error.type"] == "RuntimeError"


@pytest.mark.usefixtures("each_database")
@pytest.mark.only("postgresql")  # A SQLite file has one process.
def test_one_scrape_shows_all_processes_and_a_worker_has_a_port(config: Path) -> None:
    with (
        serving(config, "--workers", "2", N_JOBS_PER_WORKER="3") as server,
        httpx.Client(base_url=server.url, timeout=60) as http,
    ):
        for _ in range(4):
            ran(http)
        deadline, seen, text = time.monotonic() + PATIENCE, None, ""
        while seen != (3, 3, 4):
            # The second process may still start. A busy one may be left out of a scrape.
            assert time.monotonic() < deadline, text
            text = http.get("/metrics").text
            slots = [value(text, "threadhold_slots", process=process) for process in ("0", "1")]
            seen = (*slots, value(text, "threadhold_runs_ended_total", graph="helper"))
        assert text.count("# TYPE threadhold_slots ") == 1
        port = free_port()
        command = library("worker", "--config", config, "--metrics-port", str(port))
        env = environment(DATABASE_URL=databases.url(config.parent / "x.db"), N_JOBS_PER_WORKER="5")
        with running(command, port, config.parent, env) as worker:
            text = httpx.get(f"{worker.url}/metrics").text
            assert value(text, "threadhold_slots") == 5
        env["METRICS_TOKEN"] = token = "s3cret-of-the-scraper"
        with running(command, port, config.parent, env) as worker:
            assert httpx.get(f"{worker.url}/metrics").status_code == 401
            bearer = {"authorization": f"Bearer {token}"}
            assert httpx.get(f"{worker.url}/metrics", headers=bearer).status_code == 200
        del env["METRICS_TOKEN"]
        ended = subprocess.run(
            [*command, "--metrics-host", "0.0.0.0"],
            cwd=config.parent,
            env=env,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert ended.returncode == 1
        assert "Set METRICS_TOKEN" in ended.stderr
