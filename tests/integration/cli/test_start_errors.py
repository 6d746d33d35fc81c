"""What goes wrong at a start is one sentence that names the place, and leaves nothing behind."""

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.processes import START_SECONDS, environment, free_port, library, ran, stop

GRAPH = """
from langgraph.graph import START, MessagesState, StateGraph
graph = StateGraph(MessagesState).add_node("n", lambda state: {}).add_edge(START, "n").compile()
"""
HOST = """
from starlette.applications import Starlette
from starlette.routing import Mount
from threadhold import LangGraphPlatform
platform = LangGraphPlatform("langgraph.json", database_url="sqlite:///data/app.db")
app = Starlette(routes=[Mount("/", app=platform)], lifespan=platform.lifespan)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that works."""
    (tmp_path / "graph.py").write_text(GRAPH)
    configure(tmp_path)
    return tmp_path


def configure(folder: Path, **sections: object) -> None:
    config = {"dependencies": ["."], "graphs": {"a": "./graph.py:graph"}, **sections}
    (folder / "langgraph.json").write_text(json.dumps(config))


def refused(folder: Path, *options: str, **env: str) -> str:
    """What `threadhold serve` says that does not start."""
    port = [] if "--port" in options else ["--port", str(free_port())]
    done = ran(library("serve", *port, *options), folder, environment(**env))
    assert done.returncode in (1, 3)
    printed = done.stdout + done.stderr
    assert "Traceback" not in printed
    return printed


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = 1", "graph.py has no 'graph'"),
        ("x = 1\ndef f(:\n", "graph.py, line 2: invalid syntax"),
        ("\nimport not_there\n", "graph.py, line 2: ModuleNotFoundError: No module named"),
        ("raise ValueError('no key')", "graph.py, line 1: ValueError: no key"),
    ],
)
def test_a_graph_that_cannot_be_loaded(project: Path, code: str, said: str) -> None:
    (project / "graph.py").write_text(code)
    printed = refused(project)
    assert f"{project}/langgraph.json: graphs.a: {project}/{said}" in printed


@pytest.mark.parametrize(
    ("section", "key", "said"),
    [
        ("auth", "path", "Could not find auth 'missing' in module"),
        ("http", "app", "graph.py has no 'missing'"),
        ("store", "path", "missing"),
    ],
)
def test_another_object_that_is_not_there(project: Path, section: str, key: str, said: str) -> None:
    configure(project, **{section: {key: "./graph.py:missing"}})
    printed = refused(project)
    assert f"langgraph.json: {section}.{key}: " in printed
    assert said in printed


def test_a_module_that_is_not_there(project: Path) -> None:
    configure(project, graphs={"a": "not_there.graph:graph"})
    assert "graphs.a: cannot import not_there.graph: No module named" in refused(project)


def test_without_a_project_init_is_named_and_no_file_is_made(tmp_path: Path) -> None:
    printed = refused(tmp_path)
    assert f"{tmp_path}/langgraph.json: no such file" in printed
    assert "`threadhold init`" in printed
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["serve", "dev"])
def test_a_busy_port_is_found_before_any_file_is_made(project: Path, command: str) -> None:
    before = sorted(project.iterdir())
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = ran(library(command, "--port", str(port)), project, environment())
    printed = done.stdout + done.stderr
    assert done.returncode == 1
    assert f"Error: Cannot listen on 127.0.0.1:{port}: Address already in use" in printed
    assert "--port" in printed
    assert sorted(project.iterdir()) == before


@pytest.mark.parametrize("url", ["mysql://host/name", "data/app.db", "http://host"])
def test_a_wrong_database_url_is_answered_with_those_that_work(project: Path, url: str) -> None:
    printed = refused(project, DATABASE_URL=url)
    assert "sqlite:///path/to/file.db" in printed
    assert "postgresql://user:password@host/database" in printed


def test_several_processes_of_another_server_on_a_file_are_told_why(project: Path) -> None:
    (project / "app.py").write_text(HOST)
    uvicorn = [sys.executable, "-m", "uvicorn", "app:app", "--workers", "2"]
    log = project / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*uvicorn, "--port", str(free_port())],
            cwd=project,
            env=environment(),
            stdout=output,
            stderr=output,
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while "Application startup failed" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
    finally:
        stop(process)
    printed = log.read_text()
    assert "Only one process can use a SQLite file" in printed
    assert "Traceback" not in printed
