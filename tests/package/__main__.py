"""Builds the wheel, installs it unlocked in a clean environment, and serves with it.

    python -m tests.package [--python python3.12] [--core-only] [--wheel FILE]

Ends with 1 if a step fails or the installation is larger than its bounds.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import httpx
import psycopg

from my_agent.chat import tables as _chat  # noqa: F401
from my_agent.companies import tables as _companies  # noqa: F401
from my_agent.icp_finder.records import tables as _icp_finder  # noqa: F401
from my_agent.tables import metadata
from my_agent.tables import tables as graph_tables
from tests.package.environment import Environment, asked, free_port
from tests.support import databases, redis
from tests.support.layouts import make_project, names
from tools import release

# What SQLite serving brings; most of it is langgraph-api's own.
MOST_PACKAGES = 95
MOST_MEGABYTES = 250.0
T = TypeVar("T")
QUESTION = {"messages": [{"role": "user", "content": "Hi"}]}


def main() -> None:
    """Run every step."""
    arguments = argparse.ArgumentParser(prog="python -m tests.package")
    arguments.add_argument("--python", default=sys.executable, help="makes the environment")
    arguments.add_argument("--core-only", action="store_true", help="without the extras")
    arguments.add_argument("--wheel", type=Path, help="instead of building one")
    asked_for = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="threadhold-package-") as place:
        folder = Path(place)
        wheel = asked_for.wheel or step("build the wheel", lambda: build(folder / "dist"))
        clean = step("make an environment", lambda: Environment(folder / "venv", asked_for.python))
        step("install the wheel", lambda: clean.install(str(wheel)))
        measure(clean)
        step("write, test and serve a project", lambda: serve_new_project(clean, folder))
        step("name a missing extra", lambda: name_missing_extra(clean, folder))
        step("name the place of ingest", lambda: name_app_commands(clean, folder))
        project = make_project(folder / "layouts")
        step("serve a project with our names", lambda: serve_layouts(clean, project))
        if not asked_for.core_only:
            step(
                "install [postgres,redis]",
                lambda: clean.install(f"threadhold[postgres,redis] @ {wheel.as_uri()}"),
            )
            step("serve it with two processes", lambda: serve_together(clean, project, folder))


def build(folder: Path) -> Path:
    """Build the wheel from a source distribution, and return its path."""
    sdist, wheel = release.build(folder)
    release.check_contents(sdist, wheel)
    return wheel


def step(name: str, work: Callable[[], T]) -> T:
    """Do a step, and say what it is and how long it took."""
    began = time.monotonic()
    print(f"{name} ...", end=" ", flush=True)
    done = work()
    print(f"{time.monotonic() - began:.1f} s", flush=True)
    return done


def check(fine: bool, otherwise: str) -> None:
    """End with a message unless something holds."""
    if not fine:
        raise SystemExit(f"FAILED: {otherwise}")


def measure(clean: Environment) -> None:
    """Print how much is installed, and hold it to the bounds."""
    packages, megabytes = len(clean.packages()), clean.megabytes()
    print(f"  {packages} packages (at most {MOST_PACKAGES})")
    print(f"  {megabytes:.0f} MB (at most {MOST_MEGABYTES:.0f})")
    check(packages <= MOST_PACKAGES and megabytes <= MOST_MEGABYTES, "it has become too large")


def serve_new_project(clean: Environment, folder: Path) -> None:
    """From an empty folder: `threadhold init demo`, its test, and a run through HTTP."""
    empty = folder / "empty"
    empty.mkdir()
    # Another server may have the usual port.
    nothing = clean.run("threadhold", "serve", "--port", str(free_port()), folder=empty)
    check(nothing.returncode == 1 and "threadhold init" in nothing.stdout, nothing.stdout)
    check(not list(empty.iterdir()), "serving nothing has left files")
    made = clean.run("threadhold", "init", "demo", folder=empty)
    check(made.returncode == 0, made.stdout)
    tested = clean.run("python", "tests/test_agent.py", folder=empty / "demo")
    check(tested.returncode == 0, tested.stdout)
    with clean.serving("threadhold", "serve", folder=empty / "demo") as url:
        answer = asked(url, QUESTION)
        page = httpx.get(url, headers={"accept": "text/html"}).text
    check('id="root"' in page, page[:500])
    check("message 1 of this thread" in str(answer), str(answer))


def name_missing_extra(clean: Environment, folder: Path) -> None:
    """Postgres without its client is one sentence."""
    refused = clean.run(
        *("threadhold", "migrate", "--database-url", "postgresql://127.0.0.1/x"), folder=folder
    )
    said = "pip install 'threadhold[postgres]'" in refused.stdout
    check(said and "Traceback" not in refused.stdout, refused.stdout)


def name_app_commands(clean: Environment, folder: Path) -> None:
    """Commands of the example application, which is not in the wheel, are one sentence, too."""
    refused = clean.run("threadhold", "ingest", "documents", folder=folder)
    said = "python -m server ingest" in refused.stdout and "Traceback" not in refused.stdout
    check(said and refused.returncode == 2, refused.stdout)


def serve_layouts(clean: Environment, project: Path) -> None:
    """By the command, from the project's folder and from another one, and in a host of its own."""
    config = str(project / "langgraph.json")
    url = f"sqlite:///{project}/data/served.db"
    elsewhere = project.parent / "elsewhere"
    elsewhere.mkdir()
    with clean.serving("threadhold", "serve", folder=project, DATABASE_URL=url) as served:
        check_names(served)
    with clean.serving(
        *("threadhold", "serve", "--config", config), folder=elsewhere, DATABASE_URL=url
    ) as served:
        check_names(served)
    with clean.serving(
        *("python", "-m", "threadhold", "serve"), folder=project, DATABASE_URL=url
    ) as served:
        check_names(served)
    with clean.serving("uvicorn", "server.app:app", folder=project, DATABASE_URL=url) as served:
        check_names(served)


def serve_together(clean: Environment, project: Path, folder: Path) -> None:
    """By two processes, the command's and a host's own: no table but the runtime's is made."""
    (folder / "redis").mkdir()
    try:
        dsn, _ = databases.start(databases.folder())
        with redis.started(folder / "redis") as valkey:
            env = {"DATABASE_URL": dsn, "REDIS_URL": valkey.url}
            for command in (
                ("threadhold", "serve", "--workers", "2"),
                ("uvicorn", "server.app:app", "--workers", "2"),
            ):
                with clean.serving(*command, folder=project, **env) as served:
                    check_names(served)
        with psycopg.connect(dsn) as raw:
            listed = (
                "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
            )
            tables = {name for (name,) in raw.execute(listed)}
    finally:
        databases.stop()
    check("threads" in tables, f"no runtime's tables: {tables}")
    products = tables & {graph_tables.versions, *metadata.tables}
    check(not products, f"tables of our app: {products}")


def check_names(url: str) -> None:
    """The graph has imported the project's own packages."""
    answer = asked(url, {})
    check(answer == {"names": names()}, str(answer))


if __name__ == "__main__":
    main()
