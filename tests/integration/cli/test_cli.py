"""`threadhold serve` and `dev` as processes: what they print, refuse, log and answer."""

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from starlette.applications import Starlette

from tests.support import databases
from tests.support.processes import (
    GRAPHS,
    ROOT,
    Running,
    environment,
    free_port,
    ran,
    running,
    threadhold,
)
from threadhold.hosts import is_loopback
from threadhold.serving import server as serving
from threadhold.serving.connections import Guard
from threadhold.settings import Settings

GRAPH = """
from typing import TypedDict

from helper import NAME
from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    name: str


def say(state: State) -> State:
    return {{"name": NAME + {suffix!r}}}


graph = StateGraph(State).add_node(say).add_edge(START, "say").add_edge("say", END).compile()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


def make_project(folder: Path) -> Path:
    """Write a project whose graph imports a module beside it and reads a variable of `.env`."""
    folder.mkdir()
    (folder / "graph.py").write_text(GRAPH.format(suffix=""))
    (folder / "helper.py").write_text("import os\n\nNAME = os.environ['PROJECT_NAME']\n")
    (folder / ".env").write_text("PROJECT_NAME=other\n")
    config = {"graphs": {"say": "./graph.py:graph"}, "dependencies": ["."], "env": ".env"}
    (folder / "langgraph.json").write_text(json.dumps(config))
    return folder


def command(name: str, config: Path, folder: Path, port: int) -> list[str]:
    return threadhold(
        *(name, "--config", config, "--port", str(port)),
        *("--database-url", databases.url(folder / "data" / "served.db")),
    )


@pytest.fixture(scope="module")
def served(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Start a server of the project in another folder."""
    folder, port = tmp_path_factory.mktemp("served"), free_port()
    line = command("serve", make_project(folder / "project") / "langgraph.json", folder, port)
    with running(line, port, folder, environment()) as server:
        yield server


def ask(url: str) -> Any:
    answer = httpx.post(f"{url}/runs/wait", json={"assistant_id": "say", "input": {}}, timeout=60)
    answer.raise_for_status()
    return answer.json()["name"]


def logged_up_to(server: Running) -> int:
    """Send a request and wait for its line in the log. Return the number of lines.

    A line is logged after its answer, so the lines of all earlier requests precede this one.
    """
    mark = str(uuid4())
    httpx.get(f"{server.url}/threads/{mark}")
    deadline = time.monotonic() + 60
    while not any(mark in str(line.get("path")) for line in lines(server)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return len(lines(server))


def lines(server: Running) -> list[dict[str, Any]]:
    """Parse each line of the log as JSON."""
    return [json.loads(line) for line in server.log.read_text().splitlines()]


def test_graphs_modules_and_variables_of_another_project_are_served(served: Running) -> None:
    assert ask(served.url) == "other"


def test_health_answers_without_the_api(served: Running) -> None:
    answer = httpx.get(f"{served.url}/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_each_request_logs_at_most_one_line_of_json(served: Running) -> None:
    before = logged_up_to(served)
    for _ in range(5):
        ask(served.url)
        httpx.get(f"{served.url}/threads/not-an-id")
        httpx.post(f"{served.url}/threads/search", content=b"{")
    httpx.get(f"{served.url}/health")
    httpx.get(f"{served.url}/ok")
    httpx.get(f"{served.url}/a/forged%0Aline")
    logged_up_to(served)
    logged = lines(served)[before:]
    ended = [line for line in logged if line["event"] == "run ended"]
    assert [line["status"] for line in ended] == ["success"] * 5
    logged = [line for line in logged if line not in ended]
    assert len(logged) == 17
    assert {line["event"] for line in logged} == {"request"}
    waited = next(line for line in logged if line["path"] == "/runs/wait")
    assert waited["method"] == "POST"
    assert waited["status"] == 200
    assert waited["ms"] > 0
    assert waited["level"] == "info"
    assert waited["timestamp"].endswith("Z")
    assert logged[-2]["path"] == "(no route)"


def test_client_that_disconnects_during_a_request_logs_no_error(served: Running) -> None:
    before = logged_up_to(served)
    head = b"POST /threads HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", httpx.URL(served.url).port or 80)) as connection:
        connection.sendall(head + b'{"metadata"')
    deadline = time.monotonic() + 60
    while len(logged := lines(served)[before:]) < 1:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert [(line["event"], line["level"], line["status"]) for line in logged] == [
        ("request", "info", 0)
    ]


@pytest.mark.usefixtures("each_database")
@pytest.mark.parametrize(("sent", "level"), [(signal.SIGTERM, "debug"), (signal.SIGINT, "info")])
def test_signal_stops_the_server_cleanly_and_debug_logs_the_api(
    project: Path, tmp_path: Path, sent: signal.Signals, level: str
) -> None:
    port = free_port()
    line = command("serve", project / "langgraph.json", tmp_path, port)
    with running(line, port, tmp_path, environment(LOG_LEVEL=level)) as server:
        ask(server.url)
        server.process.send_signal(sent)
        assert server.process.wait(60) in (0, -sent)
    assert "Traceback" not in server.log.read_text()
    loggers = {str(entry["logger"]).partition(".")[0] for entry in lines(server)}
    assert ("langgraph_api" in loggers) is (level == "debug")


@pytest.mark.only("sqlite")  # Servers share a Postgres database.
def test_second_server_on_a_file_is_refused_as_in_use(served: Running, project: Path) -> None:
    line = command("serve", project / "langgraph.json", served.log.parent, free_port())
    second = run(line, project)
    assert second.returncode != 0
    assert f"in use by process {served.process.pid}" in second.stdout
    assert "Traceback" not in second.stdout
    assert ask(served.url) == "other"


@pytest.mark.only("sqlite")  # Backups of Postgres are those of its own tools.
def test_backup_of_a_running_server_contains_acknowledged_writes(
    served: Running, tmp_path: Path
) -> None:
    body = {"metadata": {"mark": "acknowledged"}}
    assert httpx.post(f"{served.url}/threads", json=body).status_code == 200
    copy = tmp_path / "copy.db"
    url = databases.url(served.log.parent / "data" / "served.db")
    ended = run(threadhold("backup", copy, "--database-url", url), tmp_path)
    assert ended.returncode == 0, ended.stdout
    with closing(sqlite3.connect(copy)) as connection:
        marked = "SELECT count(*) FROM threads WHERE metadata LIKE '%acknowledged%'"
        assert connection.execute(marked).fetchone() == (1,)
    assert ask(served.url) == "other"


def run(line: list[str], folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end. Return its output and errors together."""
    done = ran(line, folder, environment(**env))
    done.stdout += done.stderr
    return done


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "cannot be read as JSON"),
        ('{"graphs": {"a": "./missing.py:graph"}}', "graphs.a: no such file"),
        ('{"graphs": {"a": "./graph.py:graph"}, "sql": {"hook": "x:y"}}', "sql.hook: unknown key"),
    ],
)
def test_invalid_project_is_refused_with_one_sentence(
    project: Path, content: str, said: str
) -> None:
    path = project / "langgraph.json"
    path.write_text(content)
    ended = run(command("serve", path, project, free_port()), project)
    assert ended.returncode == 1
    assert f"Error: {path}: {said}" in ended.stdout
    assert "Traceback" not in ended.stdout


def test_invalid_graph_setting_is_refused_with_one_sentence(tmp_path: Path) -> None:
    line = command("serve", ROOT / "langgraph.json", tmp_path, free_port())
    ended = run(line, tmp_path, CHAT_PASSAGES="many", CHAT_QUESTION_MAX_LENGTH="0")
    assert ended.returncode == 1
    assert "Error: CHAT_QUESTION_MAX_LENGTH: Input should be greater than 0" in ended.stdout
    assert "CHAT_PASSAGES: Input should be a valid integer" in ended.stdout
    assert "Traceback" not in ended.stdout


def test_invalid_setting_is_refused_with_one_sentence(project: Path) -> None:
    line = command("serve", project / "langgraph.json", project, free_port())
    ended = run(line, project, MAX_BODY_BYTES="plenty")
    assert ended.returncode == 1
    assert "Error: MAX_BODY_BYTES: " in ended.stdout
    assert "Traceback" not in ended.stdout


@pytest.mark.parametrize("env", ["staging", "production"])
def test_authentication_is_required_outside_local_development(project: Path, env: str) -> None:
    line = command("serve", project / "langgraph.json", project, free_port())
    ended = run(line, project, APP_ENV=env)
    assert ended.returncode == 1
    assert f"Error: APP_ENV={env} needs authentication" in ended.stdout


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.2", False),
        ("example.org", False),
    ],
)
def test_loopback_addresses_are_recognized(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


@pytest.mark.parametrize("config", ["langgraph.json", "langgraph.auth.json"])
def test_local_development_refuses_to_listen_on_all_addresses(project: Path, config: str) -> None:
    line = command("serve", GRAPHS / config, project, free_port())
    ended = run([*line, "--host", "0.0.0.0"], project)
    assert ended.returncode == 1
    assert "Error: 0.0.0.0 can be reached from other machines" in ended.stdout


def test_dev_restarts_on_a_change_and_allows_studio(project: Path, tmp_path: Path) -> None:
    port = free_port()
    line = command("dev", project / "langgraph.json", tmp_path, port)
    with running(line, port, tmp_path, environment()) as server:
        printed = server.log.read_text()
        assert f"https://smith.langchain.com/studio/?baseUrl={server.url}" in printed
        preflight = httpx.options(
            f"{server.url}/threads",
            headers={
                "origin": "https://smith.langchain.com",
                "access-control-request-method": "POST",
                "access-control-request-headers": "content-type,x-auth-scheme",
                "access-control-request-private-network": "true",
            },
        )
        assert preflight.status_code == 200
        allowed = preflight.headers
        assert allowed["access-control-allow-origin"] == "https://smith.langchain.com"
        assert allowed["access-control-allow-private-network"] == "true"
        assert ask(server.url) == "other"
        (project / "graph.py").write_text(GRAPH.format(suffix=" and changed"))
        assert eventually(server, "other and changed")
        whole = (project / "langgraph.json").read_text()
        (project / "langgraph.json").write_text("{")
        deadline = time.monotonic() + 60
        while "cannot be read as JSON" not in server.log.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert "Traceback" not in server.log.read_text()
        (project / "langgraph.json").write_text(whole)
        assert eventually(server, "other and changed")


def eventually(server: Running, name: str) -> bool:
    """Wait until the server answers `name`; it does not answer while it restarts."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if ask(server.url) == name:
                return True
        except httpx.HTTPError:
            pass
        time.sleep(0.2)
    return False


def test_keep_alive_is_longer_than_that_of_load_balancers() -> None:
    """Otherwise the server may close a connection at the moment of a request."""
    made = serving.config(Starlette(), Settings(), "127.0.0.1", 0, Guard(1, (), 1, 1))
    assert made.timeout_keep_alive > 60


SERVED_AT = """
import json
from server.app import create_app
from server.settings import Settings

app = create_app(Settings())
print(json.dumps([getattr(route, "path", None) for route in app.routes]))
"""


def test_project_is_served_at_its_mount_prefix(project: Path) -> None:
    path = project / "langgraph.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "http": {"mount_prefix": "/api"}}))
    command = [sys.executable, "-c", SERVED_AT]
    said = subprocess.check_output(command, cwd=project, env=environment(), timeout=120)
    assert json.loads(said.splitlines()[-1]) == ["/health", "/", "/assets/{name}", "/ok", "/api"]


def test_probes_at_the_root_are_those_of_the_prefix(project: Path, tmp_path: Path) -> None:
    """The manifests ask for them, whatever the prefix is."""
    path = project / "langgraph.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "http": {"mount_prefix": "/api"}}))
    manifest = (ROOT / "deploy" / "kubernetes" / "api.yaml").read_text()
    probes = re.findall(r'httpGet: \{ path: "?(/[^",]+)', manifest)
    assert set(probes) == {"/ok", "/ok?check_db=1"}
    port = free_port()
    asked = command("serve", path, tmp_path, port)
    with running(asked, port, tmp_path, environment()) as server:
        for probe in probes:
            root = httpx.get(server.url + probe)
            assert root.status_code == 200
            assert root.json() == httpx.get(f"{server.url}/api{probe}").json()
        checked = httpx.get(f"{server.url}/ok?check_db=1").json()["services"]["database"]
        assert checked == "healthy"
        assert httpx.get(f"{server.url}/info").status_code == 404


def test_help_lists_each_command_and_no_hidden_option(tmp_path: Path) -> None:
    listed = run(threadhold("--help"), tmp_path).stdout
    for name in ("serve", "dev", "migrate", "backup"):
        assert re.search(rf"^  {name} ", listed, re.MULTILINE)
    options = run(threadhold("serve", "--help"), tmp_path).stdout
    assert "--workers" in options
    assert "--redis-url" in options
    assert "--inherited" not in options


def test_inherited_worker_reports_when_it_serves(project: Path) -> None:
    """The supervisor restarts a process only if it has served, and the process ends with it."""
    (alive, held), (hears, says) = os.pipe(), os.pipe()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        gives = (listening.fileno(), alive, says)
        port = listening.getsockname()[1]
        asked = command("serve", project / "langgraph.json", project, port)
        process = subprocess.Popen(
            [*asked, "--inherited", ",".join(map(str, gives))],
            cwd=project,
            env=environment(),
            pass_fds=gives,
        )
        for descriptor in (alive, says):
            os.close(descriptor)
        try:
            # A process that ends without serving closes the pipe, so the read does not block.
            assert os.read(hears, 1) == b"1"
            assert httpx.get(f"http://127.0.0.1:{port}/ok", timeout=60).is_success
        finally:
            os.close(held)
            os.close(hears)
            # uvicorn raises the signal once more, after everything has been closed.
            assert process.wait(60) == -signal.SIGTERM


@pytest.mark.parametrize("command", [("serve", "--workers", "2"), ("worker",)])
def test_several_processes_are_refused_on_a_sqlite_file(
    project: Path, command: tuple[str, ...]
) -> None:
    ended = run(threadhold(*command), project)
    assert ended.returncode == 1
    assert "only one process owns a SQLite file" in ended.stdout
    assert "postgresql://" in ended.stdout
    assert "Traceback" not in ended.stdout
