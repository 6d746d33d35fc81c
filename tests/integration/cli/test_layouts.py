"""Projects with our folder names are served with their own packages, also from a checkout.

`make wheel` checks the same with the wheel and with several processes.
"""

import sys
from pathlib import Path

import httpx
import pytest

from my_agent.chat import tables as _chat  # noqa: F401
from my_agent.companies import tables as _companies  # noqa: F401
from my_agent.icp_finder.records import tables as _icp_finder  # noqa: F401
from my_agent.tables import metadata
from my_agent.tables import tables as graph_tables
from tests.support import databases
from tests.support.layouts import make_project, names
from tests.support.processes import ROOT, environment, free_port, running

COMMANDS = {
    # Like the script `threadhold`: the import path has only the folders of the environment.
    "script": ("-P", "-m", "threadhold", "serve"),
    # The option of Python prevents a start by the fork server.
    "module": ("-u", "-m", "threadhold", "serve"),
    "host": ("-m", "uvicorn", "server.app:app"),
}


@pytest.fixture
def library_only(tmp_path: Path) -> Path:
    """Return a folder for PYTHONPATH with the two packages of the wheel alone."""
    folder = tmp_path / "library"
    folder.mkdir()
    for name in ("threadhold", "langgraph_runtime_sql"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def answer(url: str) -> object:
    body = {"assistant_id": "agent", "input": {}}
    return httpx.post(f"{url}/runs/wait", json=body, timeout=60).json()


@pytest.mark.parametrize("how", COMMANDS)
def test_project_with_our_folder_names_is_served(
    how: str, tmp_path: Path, library_only: Path
) -> None:
    project, port = make_project(tmp_path / "project"), free_port()
    env = environment(
        PYTHONPATH=str(library_only), DATABASE_URL=f"sqlite:///{tmp_path}/data/served.db"
    )
    command = [sys.executable, *COMMANDS[how], "--port", str(port)]
    with running(command, port, project, env) as server:
        assert answer(server.url) == {"names": names()}


@pytest.mark.parametrize("how", ["script", "module"])
def test_server_in_a_checkout_imports_the_packages_of_the_project(
    how: str, tmp_path: Path, library_only: Path
) -> None:
    project, port = make_project(tmp_path / "project"), free_port()
    env = environment(PYTHONPATH=str(library_only))
    place = ["--database-url", f"sqlite:///{tmp_path}/data/served.db"]
    config = ["--config", str(project / "langgraph.json")]
    command = [sys.executable, *COMMANDS[how], "--port", str(port), *place, *config]
    # The server runs in the root of this repository, and the log is in another folder.
    with running(command, port, tmp_path, env, cwd=ROOT) as server:
        assert answer(server.url) == {"names": names()}


@pytest.mark.usefixtures("each_database")
@pytest.mark.only("postgresql")  # Only one process may use a SQLite file.
def test_several_processes_serve_the_project_without_tables_of_our_app(
    tmp_path: Path, library_only: Path, redis_url: str
) -> None:
    """The project's own `server` package ends at once, so the supervisor must not run it."""
    project, port, place = make_project(tmp_path / "project"), free_port(), tmp_path / "data.db"
    env = environment(
        PYTHONPATH=str(library_only), DATABASE_URL=databases.empty(place), REDIS_URL=redis_url
    )
    command = [sys.executable, *COMMANDS["module"], "--port", str(port), "--workers", "2"]
    with running(command, port, project, env) as server:
        assert answer(server.url) == {"names": names()}
    made = set(databases.tables(place))
    assert "runs" in made
    assert made & {graph_tables.versions, *metadata.tables} == set()
