"""`threadhold init` writes a project that works without changes."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.support.processes import environment, free_port, library, ran, running

QUESTION = {"messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    done = ran(library("init", "demo"), tmp_path, environment())
    assert done.returncode == 0, done.stderr
    assert "threadhold serve" in done.stdout
    return tmp_path / "demo"


def ask(url: str, token: str = "") -> httpx.Response:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    body = {"assistant_id": "agent", "input": QUESTION}
    return httpx.post(f"{url}/runs/wait", json=body, headers=headers, timeout=60)


def test_new_project_has_all_files(demo: Path) -> None:
    for name in ("langgraph.json", "agent/graph.py", "app.py", ".gitignore"):
        assert (demo / name).is_file(), name
    for name in ("tests/test_agent.py", "frontend/Chat.tsx", "README.md"):
        assert (demo / name).is_file(), name
    assert not list(demo.rglob("__pycache__"))


def test_test_of_the_new_project_passes(demo: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=demo,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_new_project_is_served(demo: Path) -> None:
    port = free_port()
    with running(library("serve", "--port", str(port)), port, demo, environment()) as server:
        answer = ask(server.url).json()
    assert "message 1 of this thread" in answer["messages"][-1]["content"]
    assert (demo / "data" / "threadhold.db").is_file()


def test_host_app_of_the_new_project_is_served(demo: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "app:app", "--port", str(port)]
    with running(command, port, demo, environment()) as server:
        assert httpx.get(f"{server.url}/hello").json() == {"hello": "world"}
        assert ask(server.url).status_code == 200


def test_new_project_requires_the_token_in_production(demo: Path) -> None:
    port, env = free_port(), environment(APP_ENV="production", API_TOKEN="a-token")
    with running(library("serve", "--port", str(port)), port, demo, env) as server:
        assert [ask(server.url, token).status_code for token in ("", "other")] == [401, 401]
        assert ask(server.url, "a-token").status_code == 200


def test_new_project_without_a_token_does_not_start_in_production(demo: Path) -> None:
    command = library("serve", "--port", str(free_port()))
    done = ran(command, demo, environment(APP_ENV="production"))
    assert done.returncode == 3
    assert "auth.path" in done.stderr
    assert "Set API_TOKEN" in done.stderr
    assert "Traceback" not in done.stderr


def test_existing_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("mine")
    done = ran(library("init"), tmp_path, environment())
    assert done.returncode == 1
    assert "app.py exists, and `init` replaces no files" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["app.py"]
    assert (tmp_path / "app.py").read_text() == "mine"
