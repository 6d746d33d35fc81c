"""Dockerfile: print an image for a project (`threadhold dockerfile`)."""

import json
from pathlib import Path
from typing import Any

import click

from threadhold.cli.group import load_settings, pass_program
from threadhold.cli.options import config_option
from threadhold.config_file import ConfigFile, read_config
from threadhold.program import Program

DEFAULT_PYTHON = "3.13"
EXTRAS = "threadhold[postgres,redis]"
# The newest version that is supported. `pg_dump` also dumps older servers, but no newer ones.
POSTGRES = "18"

_TEMPLATE = """\
# Build it in the folder of {name}:
#   docker build --tag my-agent .
# Serve a file:     docker run --publish 127.0.0.1:8123:8123 --volume my-agent:/data my-agent
# Serve Postgres:   docker run --env DATABASE_URL=postgresql://... my-agent
# Execute runs:     docker run --env DATABASE_URL=postgresql://... my-agent worker
FROM python:{python}-slim
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONUNBUFFERED=1
# pg_dump and pg_restore, for `threadhold backup` and `restore`.
RUN apt-get update \\
    && apt-get install --yes --no-install-recommends postgresql-common \\
    && /usr/share/postgresql-common/pgdg/apt.postgresql.org.sh -y \\
    && apt-get install --yes --no-install-recommends postgresql-client-{postgres} \\
    && rm -rf /var/lib/apt/lists/*
ENV PATH=/usr/lib/postgresql/{postgres}/bin:$PATH
WORKDIR /app
RUN ["python", "-m", "pip", "install", "{extras}"]
{install}
# An unprivileged user, as a number, so that Kubernetes can check that it is not root.
RUN useradd --uid 10001 --no-create-home app && mkdir -p /data && chown app /data
USER 10001
ENV APP_ENV=production LANGGRAPH_JSON=/app/{name} DATABASE_URL=sqlite:////data/threadhold.db
VOLUME /data
EXPOSE 8123
# A worker answers no requests: disable this check for it.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["python", "-c", \
"import urllib.request; urllib.request.urlopen('http://127.0.0.1:8123{prefix}/ok', timeout=4)"]
# Lists, so that signals reach the server and not a shell.
ENTRYPOINT ["threadhold"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8123"]
"""


@click.command()
@config_option
@pass_program
def dockerfile(program: Program, langgraph_json: Path | None) -> None:
    """Print a Dockerfile for the project; redirect it to the file Dockerfile beside langgraph.json.

    The image serves the project, or executes its runs with the command `worker`.
    """
    settings = load_settings(program.settings, langgraph_json=langgraph_json)
    path = Path(settings.langgraph_json)
    click.echo(render(read_config(path), json.loads(path.read_text(encoding="utf-8"))), nl=False)


def render(project: ConfigFile, content: dict[str, Any]) -> str:
    """Return the Dockerfile of a project.

    Args:
        project: The project as it is served.
        content: Its file, with the keys of an image: `dependencies`, `python_version`,
            `dockerfile_lines`.
    """
    path = Path(project.source)
    return _TEMPLATE.format(
        name=path.name,
        python=content.get("python_version") or DEFAULT_PYTHON,
        postgres=POSTGRES,
        extras=EXTRAS,
        install="\n".join(_install(path.parent, content)),
        prefix=str(project.sections["http"].get("mount_prefix") or "").rstrip("/"),
    )


def _install(folder: Path, content: dict[str, Any]) -> list[str]:
    """Return the lines that install the project's dependencies."""
    named = [str(each) for each in content.get("dependencies") or ["."]]
    local = [each for each in named if each.startswith(".")]
    packages = [each for each in named if not each.startswith(".")]
    lines = [str(each) for each in content.get("dockerfile_lines") or []]
    if packages:
        lines.append(f"RUN {_command('install', *packages)}")
    # The packages come first: they change seldom, so their layer stays cached.
    requirements = [
        f"{each.rstrip('/')}/requirements.txt"
        for each in local
        if (folder / each / "requirements.txt").is_file()
    ]
    for each in requirements:
        lines += [f"COPY {each} {each}", f"RUN {_command('install', '-r', each)}"]
    lines.append("COPY . .")
    lines += [
        f"RUN {_command('install', '-e', each)}"
        for each in local
        if (folder / each / "pyproject.toml").is_file()
    ]
    return lines


def _command(*arguments: str) -> str:
    return json.dumps(["python", "-m", "pip", *arguments])
