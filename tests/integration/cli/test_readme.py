"""Run the examples of README, the tutorials and the guide to hooks, on another port."""

import json
import re
import sys
from pathlib import Path

import httpx
import pytest

from tests.support import databases, processes
from tests.support.processes import free_port, running

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text()
MOUNT = (ROOT / "docs" / "tutorials" / "mount.md").read_text()
PROJECT = (ROOT / "docs" / "tutorials" / "serve-your-project.md").read_text()
QUICKSTART = (ROOT / "docs" / "quickstart.md").read_text()
HOOKS = (ROOT / "docs" / "how-to" / "hooks.md").read_text()
METRICS = (ROOT / "docs" / "reference" / "metrics.md").read_text()
PRINTED_PORT = "8123"
# If a module of `threadhold` does not exist yet, import its names from the runtime.
TODAY = {
    "threadhold/__init__.py": ("from threadhold import", "from langgraph_runtime_sql.embed import"),
    "threadhold/hooks.py": ("from threadhold.hooks", "from langgraph_runtime_sql.hooks"),
}


def block(containing: str, page: str = README) -> str:
    """Return the only Python block of a page that contains this text."""
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    [found] = [text for text in blocks if containing in text]
    for file, (import_, today) in TODAY.items():
        if not (ROOT / file).exists():
            found = found.replace(import_, today)
    return str(found)


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def environment() -> dict[str, str]:
    """Return an environment without databases and models; the offline model answers."""
    return processes.environment()


def run(code: str, port: int, folder: Path) -> str:
    """Run code in a new Python process against the server on `port`, and return its output."""
    command = [sys.executable, "-c", code.replace(PRINTED_PORT, str(port))]
    done = processes.ran(command, folder, processes.environment())
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.usefixtures("each_database")
def test_first_steps_survive_kill_9(tmp_path: Path, port: int, environment: dict[str, str]) -> None:
    if databases.kind() == "postgresql":
        environment["DATABASE_URL"] = databases.url(tmp_path / "data" / "threadhold.db")
    serve = [sys.executable, "-m", "server", "serve", "--port", str(port)]
    serve += ["--config", str(ROOT / "langgraph.json")]

    with running(serve, port, tmp_path, environment) as server:
        answer = run(block("runs.stream"), port, tmp_path)
        server.process.kill()
        server.process.wait()
    assert "no language model is configured" in answer

    with running(serve, port, tmp_path, environment):
        conversation = run(block("threads.search"), port, tmp_path).splitlines()
    assert conversation == [
        "human said: Will you remember this?",
        f"ai said: {answer}",
    ]


@pytest.mark.parametrize(("framework", "prefix"), [("Starlette(", ""), ("FastAPI(", "/langgraph")])
def test_readme_host_serves_the_mounted_platform(
    framework: str, prefix: str, tmp_path: Path, port: int, environment: dict[str, str]
) -> None:
    (tmp_path / "langgraph.json").symlink_to(ROOT / "langgraph.json")
    (tmp_path / "app.py").write_text(block(framework))
    serve = [sys.executable, "-m", "uvicorn", "app:app", "--port", str(port)]

    with running(serve, port, tmp_path, environment, ready=f"{prefix}/ok"):
        base = f"http://127.0.0.1:{port}"
        assert httpx.get(f"{base}/hello").text.strip('"') == "Hello"
        found = httpx.post(f"{base}{prefix}/assistants/search", json={}).json()
    assert "chat" in {assistant["graph_id"] for assistant in found}
    assert (tmp_path / "data" / "app.db").exists()


@pytest.mark.parametrize(
    ("example", "prefix"),
    [
        ("app = Starlette(", ""),
        ('app.db")\napp = FastAPI(lifespan=platform.lifespan)', "/langgraph"),
        ("async def lifespan(app)", "/langgraph"),
    ],
    ids=["starlette", "fastapi", "own-lifespan"],
)
def test_mount_tutorial_serves_the_platform(
    example: str, prefix: str, tmp_path: Path, port: int, environment: dict[str, str]
) -> None:
    (tmp_path / "langgraph.json").symlink_to(ROOT / "langgraph.json")
    (tmp_path / "app.py").write_text(block(example, MOUNT))
    serve = [sys.executable, "-m", "uvicorn", "app:app", "--port", str(port)]
    with running(serve, port, tmp_path, environment, ready=f"{prefix}/ok"):
        asked = httpx.get(f"http://127.0.0.1:{port}{prefix}/ok?check_db=1").json()
    assert asked["services"]["database"] == "healthy"


def test_project_tutorial_serves_the_project(
    tmp_path: Path, port: int, environment: dict[str, str]
) -> None:
    (tmp_path / "graph.py").write_text(block("StateGraph(", PROJECT))
    [config] = re.findall(r"^```json\n(.*?)^```", PROJECT, re.MULTILINE | re.DOTALL)
    (tmp_path / "langgraph.json").write_text(config)
    serve = [sys.executable, "-m", "server", "serve", "--port", str(port)]
    run = {"assistant_id": "hello", "input": {"messages": [{"role": "user", "content": "Hi"}]}}
    with running(serve, port, tmp_path, environment):
        state = httpx.post(f"http://127.0.0.1:{port}/runs/wait", json=run, timeout=60).json()
    assert state["messages"][-1]["content"] == "You said: Hi"


def test_quickstart_keeps_a_conversation(
    tmp_path: Path, port: int, environment: dict[str, str]
) -> None:
    serve = [sys.executable, "-m", "server", "serve", "--port", str(port)]
    serve += ["--config", str(ROOT / "langgraph.json")]
    with running(serve, port, tmp_path, environment):
        said = run(block("runs.wait", QUICKSTART), port, tmp_path)
    assert "no language model is configured" in said


def test_hook_refuses_a_run(tmp_path: Path, port: int, environment: dict[str, str]) -> None:
    config = json.loads((ROOT / "langgraph.json").read_text())
    config["graphs"] = {"chat": str(ROOT / "my_agent/chat/graph.py:graph")}
    [named] = re.findall(r'^```json\n("sql": .*)\n```', HOOKS, re.MULTILINE)
    (tmp_path / "langgraph.json").write_text(json.dumps({**config, **json.loads(f"{{{named}}}")}))
    (tmp_path / "policy.py").write_text(block("class Policy", HOOKS))
    serve = [sys.executable, "-m", "server", "serve", "--port", str(port)]

    with running(serve, port, tmp_path, environment):
        base = f"http://127.0.0.1:{port}"
        question = {"messages": [{"role": "user", "content": "Hello"}]}
        run = {"assistant_id": "chat", "input": question}
        thread = httpx.post(f"{base}/threads", json={"metadata": {"closed": True}}).json()
        refused = httpx.post(f"{base}/threads/{thread['thread_id']}/runs/wait", json=run)
        runs = httpx.get(f"{base}/threads/{thread['thread_id']}/runs").json()
    assert (refused.status_code, runs) == (409, [])
    assert refused.json() == {"error": "thread_closed", "hint": "create_new"}


def test_metrics_page_names_every_metric_that_is_served(
    tmp_path: Path, port: int, environment: dict[str, str]
) -> None:
    serve = [sys.executable, "-m", "server", "serve", "--port", str(port)]
    serve += ["--config", str(ROOT / "langgraph.json")]
    with running(serve, port, tmp_path, environment):
        base = f"http://127.0.0.1:{port}"
        run = {"assistant_id": "chat", "input": {"messages": [{"role": "user", "content": "Hi"}]}}
        httpx.post(f"{base}/runs/wait", json=run, timeout=60).raise_for_status()
        served = httpx.get(f"{base}/metrics").text
    names = set(re.findall(r"^# TYPE (\S+) ", served, re.MULTILINE))
    named = {name for name in names if not name.startswith(("process_", "python_"))}
    assert {"lg_api_http_requests_total", "lg_api_workers_active"} <= named
    # One sentence says it of all of them.
    named = {name for name in named if not name.endswith("_created")}
    assert {name for name in named if f"`{name}`" not in METRICS} == set()
