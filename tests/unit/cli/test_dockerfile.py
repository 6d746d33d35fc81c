"""`threadhold dockerfile` prints an image that takes the project at hand."""

import json
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from threadhold.cli import main


def printed(folder: Path, **content: object) -> list[str]:
    (folder / "graph.py").write_text("graph = None\n")
    project = {"graphs": {"agent": "./graph.py:graph"}, **content}
    (folder / "langgraph.json").write_text(json.dumps(project))
    result = CliRunner().invoke(main, ["dockerfile", "--config", str(folder / "langgraph.json")])
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


def test_image_installs_requirements_before_it_copies_the_project(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("langchain-openai\n")
    lines = printed(tmp_path, dependencies=[".", "httpx"], python_version="3.12")
    assert "FROM python:3.12-slim" in lines
    assert 'RUN ["python", "-m", "pip", "install", "httpx"]' in lines
    installed = 'RUN ["python", "-m", "pip", "install", "-r", "./requirements.txt"]'
    assert lines.index(installed) < lines.index("COPY . .")
    assert 'ENTRYPOINT ["threadhold"]' in lines


def test_package_of_the_project_is_installed(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'agent'\nversion = '1'\n")
    lines = printed(tmp_path, dependencies=["."])
    assert 'RUN ["python", "-m", "pip", "install", "-e", "."]' in lines


def test_health_check_follows_the_mount_prefix(tmp_path: Path) -> None:
    text = "\n".join(printed(tmp_path, http={"mount_prefix": "/agents"}))
    assert "127.0.0.1:8123/agents/ok" in text
    assert "127.0.0.1:8123/ok" in "\n".join(printed(tmp_path))


def test_import_on_windows_says_what_to_use() -> None:
    code = "import sys; sys.platform = 'win32'; import langgraph_runtime_sql"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "WSL 2" in done.stderr
