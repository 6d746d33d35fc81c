"""Who may import whom, and what the library leaves alone until a platform is made.

`lint-imports` follows chains of imports; this file states the direct rules for packages that
import-linter is not told about yet, and what only running code can show.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[3]
PACKAGES = ("threadhold", "langgraph_runtime_sql", "hooks", "my_agent", "server")
EXISTING = [name for name in PACKAGES if (ROOT / name).is_dir()]
# Package to the ones of ours that it may import. The graphs know neither runtime nor policy, so
# that they run on any LangGraph server.
ALLOWED: dict[str, set[str]] = {
    "langgraph_runtime_sql": set(),
    "threadhold": {"langgraph_runtime_sql"},
    "hooks": {"threadhold"},
    "my_agent": set(),
    "server": {"threadhold", "hooks", "my_agent"},
}
LIBRARY = ("threadhold", "langgraph_runtime_sql")
# What the app, as any host, imports of the library.
PUBLIC = {
    "threadhold",
    "threadhold.admin",
    "threadhold.cli",
    "threadhold.config_file",
    "threadhold.errors",
    "threadhold.hooks",
    "threadhold.host",
    "threadhold.hosts",
    "threadhold.move",
    "threadhold.settings",
}


def normal(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(package: str) -> Iterator[tuple[Path, str]]:
    """Every (file, dotted module) that a package imports, imports inside functions too."""
    for path in sorted((ROOT / package).rglob("*.py")):
        # A project that `threadhold init` writes imports itself.
        if path.is_relative_to(ROOT / "threadhold" / "template"):
            continue
        for node in ast.walk(ast.parse(path.read_text(), str(path))):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield path.relative_to(ROOT), alias.name
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                yield path.relative_to(ROOT), node.module


def requirements(package: str) -> list[str]:
    """What a package may import: the library its own dependencies and extras, the app its group, too."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = config["project"]["optional-dependencies"].values()
    found = [*config["project"]["dependencies"], *(text for each in extras for text in each)]
    return found if package in LIBRARY else [*found, *config["dependency-groups"]["app"]]


def run_python(code: str) -> str:
    """What a fresh interpreter prints for this code, run from the root of the project."""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.parametrize("package", EXISTING)
def test_package_imports_only_what_it_may(package: str) -> None:
    forbidden = set(PACKAGES) - ALLOWED[package] - {package} | {"tests", "bench"}
    found = [
        f"{path}: {module}"
        for path, module in imported(package)
        if module.split(".")[0] in forbidden
    ]
    assert found == []


@pytest.mark.parametrize("package", ["hooks", "server"])
def test_the_app_imports_public_modules_of_the_library_only(package: str) -> None:
    found = [
        f"{path}: {module}"
        for path, module in imported(package)
        if module.split(".")[0] in LIBRARY and module not in PUBLIC
    ]
    assert found == []


def test_graphs_do_not_import_the_server_that_runs_them() -> None:
    found = [
        f"{path}: {module}"
        for path, module in imported("my_agent")
        if module.split(".")[0] in {"langgraph_api", "langgraph_runtime"}
    ]
    assert found == []


def test_nothing_imports_the_stock_development_runtime() -> None:
    found = [
        f"{path}: {module}"
        for package in EXISTING
        for path, module in imported(package)
        if module.split(".")[0] in {"langgraph_runtime_inmem", "langgraph_cli"}
    ]
    assert found == []


@pytest.mark.parametrize("package", EXISTING)
def test_every_library_is_a_declared_dependency(package: str) -> None:
    """What comes along with something else may go with it too."""
    declared = {normal(Requirement(text).name) for text in requirements(package)}
    distributions = packages_distributions()
    undeclared = {
        module.split(".")[0]
        for _, module in imported(package)
        if (top := module.split(".")[0]) not in {*PACKAGES, *sys.stdlib_module_names}
        and not declared & {normal(name) for name in distributions.get(top, [])}
    }
    assert undeclared == set()


def test_import_linter_knows_every_package_that_exists() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    assert sorted(config["root_packages"]) == sorted(EXISTING)


def test_importing_the_library_leaves_langgraph_api_and_the_environment_alone() -> None:
    """langgraph_api reads its whole configuration from the environment at import, so it must not
    be imported before `LangGraphPlatform` has set that environment."""
    code = (
        "import os, sys; before = dict(os.environ)\n"
        "import langgraph_runtime_sql, threadhold.platform, langgraph_runtime_sql.hooks\n"
        "assert os.environ == before, set(os.environ.items()) ^ set(before.items())\n"
        "print([name for name in sys.modules"
        " if name.split('.')[0] in ('langgraph_api', 'langgraph_runtime')])"
    )
    assert run_python(code) == "[]"


def test_a_file_is_served_without_what_it_does_not_need(tmp_path: Path) -> None:
    """Each of these takes a part of the start, and of memory ever after."""
    heavy = (
        "aiosqlite",
        "alembic",
        "cryptography",
        "langgraph.store.sqlite",
        "numpy",
        "openai",
        "psycopg",
        "redis",
        "sqlalchemy.dialects.postgresql",
        "trafilatura",
    )
    code = (
        "import asyncio, sys\n"
        "from server.app import create_app\n"
        "from server.settings import Settings\n"
        f"settings = Settings(langgraph_json={str(ROOT / 'bench/graphs/langgraph.json')!r},"
        f" database_url='sqlite:///{tmp_path}/x.db')\n"
        "app = create_app(settings)\n"
        "async def start():\n"
        "    async with app.router.lifespan_context(app):\n"
        "        pass\n"
        "asyncio.run(start())\n"
        f"print([name for name in {heavy} if name in sys.modules], 'langgraph_api.server' in sys.modules)"
    )
    assert run_python(code) == "[] True"


def test_importing_the_graphs_needs_no_server() -> None:
    code = (
        "import sys, my_agent.chat.graph\n"
        "print([name for name in sys.modules"
        " if name.split('.')[0] in ('langgraph_api', 'langgraph_runtime_sql', 'starlette')])"
    )
    assert run_python(code) == "[]"
