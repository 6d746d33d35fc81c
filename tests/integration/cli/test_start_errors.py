"""A failed start prints one sentence with the place of the error, and creates no files."""

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.processes import ROOT, START_SECONDS, environment, free_port, library, ran, stop

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
    """Write a valid project and return its folder."""
    (tmp_path / "graph.py").write_text(GRAPH)
    configure(tmp_path)
    return tmp_path


def configure(folder: Path, **sections: object) -> None:
    config = {"dependencies": ["."], "graphs": {"a": "./graph.py:graph"}, **sections}
    (folder / "langgraph.json").write_text(json.dumps(config))


def refused(folder: Path, *options: str, **env: str) -> str:
    """Check that `threadhold serve` does not start, and return its output."""
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
def test_graph_that_fails_to_load_is_named(project: Path, code: str, said: str) -> None:
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
def test_missing_object_of_another_section_is_named(
    project: Path, section: str, key: str, said: str
) -> None:
    configure(project, **{section: {key: "./graph.py:missing"}})
    printed = refused(project)
    assert f"langgraph.json: {section}.{key}: " in printed
    assert said in printed


def test_missing_module_is_named(project: Path) -> None:
    configure(project, graphs={"a": "not_there.graph:graph"})
    assert "graphs.a: cannot import not_there.graph: No module named" in refused(project)


def test_missing_project_suggests_init_and_creates_no_file(tmp_path: Path) -> None:
    printed = refused(tmp_path)
    assert f"{tmp_path}/langgraph.json: no such file" in printed
    assert "`threadhold init`" in printed
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["serve", "dev"])
def test_busy_port_is_refused_before_a_file_is_created(project: Path, command: str) -> None:
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
def test_wrong_database_url_is_refused_with_the_valid_forms(project: Path, url: str) -> None:
    printed = refused(project, DATABASE_URL=url)
    assert "sqlite:///path/to/file.db" in printed
    assert "postgresql://user:password@host/database" in printed


def test_several_uvicorn_workers_on_a_file_are_refused_with_the_reason(project: Path) -> None:
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


# Without the platform, graphs may import `threadhold.tables` anywhere.
@pytest.mark.parametrize(
    "what", ["from threadhold import LangGraphPlatform", "import langgraph_runtime_sql"]
)
def test_windows_is_told_in_one_sentence(what: str) -> None:
    code = f"import sys; sys.platform = 'win32'; {what}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    told = "Threadhold runs on Linux and macOS. On Windows, use WSL 2 or a container."
    assert done.stderr.splitlines()[-1] == f"ImportError: {told}"


def test_command_on_windows_has_no_traceback() -> None:
    code = "import sys; sys.platform = 'win32'; from runpy import run_path; "
    code += f"run_path({str(ROOT / 'threadhold' / '__main__.py')!r})['main']()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert (
        done.stderr == "Threadhold runs on Linux and macOS. On Windows, use WSL 2 or a container.\n"
    )
