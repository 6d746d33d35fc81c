"""`threadhold dockerfile` prints an image that takes the project at hand."""

import json
import subprocess
import sys
from inspect import signature
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from threadhold.cli import main

WHEEL = "threadhold-1.2.3-py3-none-any.whl"


def written(folder: Path, **content: object) -> None:
    (folder / "graph.py").write_text("graph = None\n")
    (folder / WHEEL).touch()
    project = {"graphs": {"agent": "./graph.py:graph"}, **content}
    (folder / "langgraph.json").write_text(json.dumps(project))


def asked(folder: Path, *options: str) -> Result:
    # Before click 8.2, a runner mixes both outputs unless it is told not to.
    apart = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}
    return CliRunner(**apart).invoke(
        main, ["dockerfile", "--config", str(folder / "langgraph.json"), *options]
    )


def printed(folder: Path, **content: object) -> list[str]:
    written(folder, **content)
    result = asked(folder, "--wheel", str(folder / WHEEL))
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def extras(lines: list[str]) -> str:
    [line] = [line for line in lines if f"/tmp/{WHEEL}[" in line]
    return line.partition("[postgres,redis")[2].partition("]")[0]


def test_image_installs_requirements_before_it_copies_the_project(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("langchain-openai\n")
    lines = printed(tmp_path, dependencies=[".", "httpx"], python_version="3.12")
    assert "FROM python:3.12-slim" in lines
    assert f"COPY {WHEEL} /tmp/{WHEEL}" in lines
    assert 'RUN ["python", "-m", "pip", "install", "httpx"]' in lines
    installed = 'RUN ["python", "-m", "pip", "install", "-r", "./requirements.txt"]'
    assert lines.index(installed) < lines.index("COPY . .")
    assert 'ENTRYPOINT ["threadhold"]' in lines


def test_package_of_the_project_is_installed(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'agent'\nversion = '1'\n")
    lines = printed(tmp_path, dependencies=["."])
    assert 'RUN ["python", "-m", "pip", "install", "-e", "."]' in lines


def test_extras_are_those_that_the_project_uses(tmp_path: Path) -> None:
    assert extras(printed(tmp_path)) == ""
    assert extras(printed(tmp_path, store={"index": {"dims": 3, "embed": "x:y"}})) == ",vectors"
    named = {"path": "threadhold.auth:auth"}
    assert extras(printed(tmp_path, auth=named)) == ",jwt"
    (tmp_path / "auth.py").write_text("from threadhold.auth import tenant_auth\n")
    assert extras(printed(tmp_path, auth={"path": "./auth.py:auth"})) == ",jwt"
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
    assert extras(printed(tmp_path, env=endpoint)) == ",otel"


def test_node_is_there_if_the_project_has_components(tmp_path: Path) -> None:
    assert "node" not in "\n".join(printed(tmp_path))
    (tmp_path / "package.json").write_text("{}")
    lines = printed(tmp_path, ui={"agent": "./ui.tsx"}, node_version="20")
    assert "COPY --from=node:20-slim /usr/local/bin/node /usr/local/bin/node" in lines
    assert lines.index("COPY package.json ./") < lines.index('RUN ["npm", "install"]')
    assert lines.index('RUN ["npm", "install"]') < lines.index("COPY . .")
    (tmp_path / "package-lock.json").write_text("{}")
    assert 'RUN ["npm", "ci"]' in printed(tmp_path, ui={"agent": "./ui.tsx"})


def test_environment_and_run_line_fit_the_authentication(tmp_path: Path) -> None:
    # The server takes no other machine without authentication, so it listens on loopback.
    open_lines = "\n".join(printed(tmp_path))
    assert "APP_ENV=local_dev" in open_lines
    assert '"--host", "127.0.0.1"' in open_lines
    assert "docker run --network host --volume" in open_lines
    (tmp_path / "auth.py").write_text("auth = None\n")
    lines = "\n".join(printed(tmp_path, auth={"path": "./auth.py:auth"}, env=".env"))
    assert "APP_ENV=production" in lines
    assert '"--host", "0.0.0.0"' in lines
    assert "docker run --publish 127.0.0.1:8123:8123 --env-file .env --volume" in lines
    ours = "\n".join(printed(tmp_path, auth={"path": "threadhold.auth:auth"}))
    assert "--env JWT_SECRET --env JWT_AUDIENCE --env JWT_ISSUER" in ours


def test_health_check_follows_the_mount_prefix(tmp_path: Path) -> None:
    text = "\n".join(printed(tmp_path, http={"mount_prefix": "/agents"}))
    assert "127.0.0.1:8123/agents/ok" in text
    assert "127.0.0.1:8123/ok" in "\n".join(printed(tmp_path))


def test_version_is_pinned_and_a_development_version_needs_its_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)
    # The package has the command under the name of the module.
    module = sys.modules["threadhold.cli.dockerfile"]
    monkeypatch.setattr(module, "__version__", "1.2.3")
    pinned = 'RUN ["python", "-m", "pip", "install", "threadhold[postgres,redis]==1.2.3"]'
    assert pinned in asked(tmp_path).stdout.splitlines()
    monkeypatch.setattr(module, "__version__", "1.2.4.dev5+gabc")
    refused = asked(tmp_path)
    assert refused.exit_code == 1
    assert "name a wheel of it in the project's folder with --wheel" in refused.stderr
    elsewhere = tmp_path.parent / WHEEL
    elsewhere.touch()
    refused = asked(tmp_path, "--wheel", str(elsewhere))
    assert f"Docker reads only {tmp_path}" in refused.stderr


def test_secrets_and_data_stay_out_of_the_image(tmp_path: Path) -> None:
    written(tmp_path)
    wheel = ("--wheel", str(tmp_path / WHEEL))
    assert "stay out of the image" in asked(tmp_path, *wheel).stderr
    ignored = (tmp_path / ".dockerignore").read_text().splitlines()
    assert {"**/.env", ".git", "data", "**/.venv"} <= set(ignored)
    assert asked(tmp_path, *wheel).stderr == ""
    # A file of the project's own stays as it is.
    (tmp_path / ".dockerignore").write_text(".git\n")
    assert "add **/.env, **/.env.*, data" in asked(tmp_path, *wheel).stderr
    assert (tmp_path / ".dockerignore").read_text() == ".git\n"
    (tmp_path / ".dockerignore").write_text("*\n!graph.py\n")
    assert asked(tmp_path, *wheel).stderr == ""


def test_import_on_windows_says_what_to_use() -> None:
    # Its own `shutil` needs Windows, since Python 3.13.
    code = "import shutil, sys; sys.platform = 'win32'; import langgraph_runtime_sql"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "WSL 2" in done.stderr
