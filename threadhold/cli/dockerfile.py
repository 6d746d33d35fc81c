"""Dockerfile: print an image for a project, and keep secrets out of it (`threadhold dockerfile`)."""

import json
import re
from pathlib import Path
from typing import Any

import click

from threadhold import __version__
from threadhold.cli.group import load_settings, pass_program
from threadhold.cli.options import config_option
from threadhold.config_file import ConfigFile, read_config
from threadhold.program import Program

DEFAULT_PYTHON = "3.13"
DEFAULT_NODE = "22"
# The newest version that is supported. `pg_dump` also dumps older servers, but no newer ones.
POSTGRES = "18"
USER = "10001"

# Docker looks for a file of this name in the folder that it is given.
IGNORED = ".dockerignore"
PRIVATE = (
    *("**/.env", "**/.env.*", ".git", "**/.venv", "**/node_modules", "**/__pycache__"),
    *("data", "**/*.db", "**/*.db-*", ".langgraph_api", "Dockerfile", IGNORED),
)
"""What never belongs into an image: secrets, data, and what is made again in it."""

_TEMPLATE = """\
# Build it in the folder of {name}:
#   docker build --tag my-agent .
# Serve a file:     docker run {run} --volume my-agent:/data my-agent
# Serve Postgres:   docker run {run} --env DATABASE_URL=postgresql://... my-agent
# Execute runs:     docker run {secrets}--env DATABASE_URL=postgresql://... my-agent worker
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
{install}
# An unprivileged user, as a number, so that Kubernetes can check that it is not root.
RUN useradd --uid {user} --no-create-home app && mkdir -p /data && chown app /data
USER {user}
ENV {environment}
VOLUME /data
EXPOSE 8123
# A worker answers no requests: disable this check for it.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["python", "-c", \
"import urllib.request; urllib.request.urlopen('http://127.0.0.1:8123{prefix}/ok', timeout=4)"]
# Lists, so that signals reach the server and not a shell.
ENTRYPOINT ["threadhold"]
CMD ["serve", "--host", "{host}", "--port", "8123"]
"""

_NODE = """\
# Node builds the components of `ui`, at each start.
COPY --from=node:{node}-slim /usr/local/bin/node /usr/local/bin/node
COPY --from=node:{node}-slim /usr/local/lib/node_modules /usr/local/lib/node_modules
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \\
    && ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx
# The user has no home of its own.
ENV HOME=/tmp"""


@click.command()
@config_option
@click.option(
    "--wheel",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Wheel of Threadhold in the project's folder, which the image installs.  "
    "[default: this version, from the package index]",
)
@pass_program
def dockerfile(program: Program, langgraph_json: Path | None, wheel: Path | None) -> None:
    """Print a Dockerfile for the project; redirect it to the file Dockerfile beside langgraph.json.

    The image serves the project, or executes its runs with the command `worker`. A .dockerignore
    beside it keeps .env, .git and data out of the image: it is written if there is none.
    """
    settings = load_settings(program.settings, langgraph_json=langgraph_json)
    path = Path(settings.langgraph_json).resolve()
    content = json.loads(path.read_text(encoding="utf-8"))
    click.echo(render(read_config(path), content, installed(path.parent, wheel)), nl=False)
    _keep_out(path.parent)


def installed(folder: Path, wheel: Path | None) -> str:
    """Return what the image installs: a wheel's path in the project, or a pinned version.

    Args:
        folder: The project's folder, which Docker reads.
        wheel: The wheel.

    Raises:
        click.ClickException: the wheel lies elsewhere, or no index has this version.
    """
    if wheel is not None:
        if not wheel.resolve().is_relative_to(folder):
            raise click.ClickException(
                f"--wheel {wheel}: Docker reads only {folder}; copy the wheel into it"
            )
        return wheel.resolve().relative_to(folder).as_posix()
    if not re.fullmatch(r"\d+(\.\d+)*", __version__):
        raise click.ClickException(
            f"{__version__} is no release, so no package index has it: name a wheel of it in the "
            "project's folder with --wheel. `make release` builds one in a checkout."
        )
    return f"=={__version__}"


def render(project: ConfigFile, content: dict[str, Any], source: str) -> str:
    """Return the Dockerfile of a project.

    Args:
        project: The project as it is served.
        content: Its file, with the keys of an image: `dependencies`, `python_version`,
            `node_version`, `dockerfile_lines`.
        source: The result of `installed`.
    """
    path = Path(project.source)
    has_auth = bool(project.sections["auth"])
    # Without authentication, the server accepts no other machine.
    published = "--publish 127.0.0.1:8123:8123" if has_auth else "--network host"
    secrets = _secrets(project, content)
    return _TEMPLATE.format(
        name=path.name,
        run=f"{published} {secrets}".rstrip(),
        secrets=secrets,
        python=content.get("python_version") or DEFAULT_PYTHON,
        postgres=POSTGRES,
        user=USER,
        install="\n".join(_install(path.parent, content, source, extras(project))),
        environment=f"APP_ENV={'production' if has_auth else 'local_dev'} "
        f"LANGGRAPH_JSON=/app/{path.name} DATABASE_URL=sqlite:////data/threadhold.db",
        host="0.0.0.0" if has_auth else "127.0.0.1",
        prefix=str(project.sections["http"].get("mount_prefix") or "").rstrip("/"),
    )


def extras(project: ConfigFile) -> list[str]:
    """Return the extras that an image of a project needs, for each database that it may be given."""
    found = ["postgres", "redis"]
    if project.sections["store"].get("index"):
        found.append("vectors")
    if _has_our_auth(project):
        found.append("jwt")
    if any(name.startswith("OTEL_EXPORTER_OTLP_") for name in project.env):
        found.append("otel")
    return found


def _has_our_auth(project: ConfigFile) -> bool:
    """Return whether a project names `threadhold.auth`, or the file that it names uses it."""
    path = str(project.sections["auth"].get("path") or "").rpartition(":")[0]
    file = Path(project.source).parent / path if path.endswith(".py") else None
    text = file.read_text(encoding="utf-8") if file is not None and file.is_file() else path
    return "threadhold.auth" in text


def _secrets(project: ConfigFile, content: dict[str, Any]) -> str:
    """Return the options of `docker run` that give the project what is not in the image."""
    if isinstance(content.get("env"), str) and content["env"]:
        return f"--env-file {content['env']} "
    if _has_our_auth(project):
        return "--env JWT_SECRET --env JWT_AUDIENCE --env JWT_ISSUER "
    return ""


def _install(folder: Path, content: dict[str, Any], source: str, wanted: list[str]) -> list[str]:
    """Return the lines that install Threadhold and the project's dependencies."""
    named = [str(each) for each in content.get("dependencies") or ["."]]
    local = [each for each in named if each.startswith(".")]
    packages = [each for each in named if not each.startswith(".")]
    lines = [_NODE.format(node=content.get("node_version") or DEFAULT_NODE)] * ("ui" in content)
    bracket = f"[{','.join(wanted)}]"
    if source.endswith(".whl"):
        inside = f"/tmp/{Path(source).name}"
        lines += [f"COPY {source} {inside}", f"RUN {_command('install', inside + bracket)}"]
    else:
        lines.append(f"RUN {_command('install', f'threadhold{bracket}{source}')}")
    lines += [str(each) for each in content.get("dockerfile_lines") or []]
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
    lines += _packages_of_node(folder) if "ui" in content else []
    lines.append("COPY . .")
    lines += [
        f"RUN {_command('install', '-e', each)}"
        for each in local
        if (folder / each / "pyproject.toml").is_file()
    ]
    if "ui" in content:
        lines.append(f"RUN mkdir -p .langgraph_api && chown {USER} .langgraph_api")
    return lines


def _packages_of_node(folder: Path) -> list[str]:
    """Return the lines that install what the project's `package.json` names."""
    if not (folder / "package.json").is_file():
        return []
    locked = (folder / "package-lock.json").is_file()
    names = "package.json package-lock.json" if locked else "package.json"
    return [f"COPY {names} ./", f'RUN ["npm", "{"ci" if locked else "install"}"]']


def _command(*arguments: str) -> str:
    return json.dumps(["python", "-m", "pip", *arguments])


def _keep_out(folder: Path) -> None:
    """Write a `.dockerignore`, or say which lines the existing one lacks."""
    path = folder / IGNORED
    if not path.exists():
        path.write_text("\n".join(PRIVATE) + "\n", encoding="utf-8")
        click.echo(f"{path}: written; .env, .git and data stay out of the image", err=True)
        return
    lines = {line.strip().removeprefix("**/") for line in path.read_text("utf-8").splitlines()}
    if "*" in lines:
        return  # It names what enters the image instead.
    lacking = [each for each in PRIVATE[:3] if each.removeprefix("**/") not in lines]
    if "data" not in lines and "data/" not in lines:
        lacking.append("data")
    if lacking:
        click.echo(f"{path}: add {', '.join(lacking)}, which should not be in an image", err=True)
