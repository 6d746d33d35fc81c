"""Allowed imports, and what importing the library must not do.

`lint-imports` follows chains of imports. This file states the direct rules for packages that
import-linter does not know yet, and the rules that only running code can show.
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
# Each package and the packages of this project that it may import. The graphs import neither
# runtime nor policy, so that they run on any LangGraph server.
ALLOWED: dict[str, set[str]] = {
    "langgraph_runtime_sql": set(),
    "threadhold": {"langgraph_runtime_sql"},
    "hooks": {"threadhold", "langgraph_runtime_sql"},
    "my_agent": set(),
    "server": {"threadhold", "langgraph_runtime_sql", "hooks", "my_agent"},
}


def normal(name: str) -> str:
    """Normalise the name of a distribution as package indexes do."""
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(package: str) -> Iterator[tuple[Path, str]]:
    """Yield every (file, dotted module) that a package imports, also inside functions."""
    for path in sorted((ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(), str(path))):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield path.relative_to(ROOT), alias.name
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                yield path.relative_to(ROOT), node.module


def run_python(code: str) -> str:
    """Run code in a fresh interpreter from the project root and return what it prints."""
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


def test_hooks_import_only_the_hook_protocol() -> None:
    found = [
        f"{path}: {module}"
        for path, module in imported("hooks")
        if module.split(".")[0] == "langgraph_runtime_sql"
        and module != "langgraph_runtime_sql.hooks"
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
def test_every_imported_library_is_a_declared_dependency(package: str) -> None:
    """An indirect dependency may disappear with the package that brings it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {normal(Requirement(text).name) for text in project["dependencies"]}
    distributions = packages_distributions()
    undeclared = {
        module.split(".")[0]
        for _, module in imported(package)
        if (top := module.split(".")[0]) not in {*PACKAGES, *sys.stdlib_module_names}
        and not declared & {normal(name) for name in distributions.get(top, [])}
    }
    assert undeclared == set()


def test_import_linter_knows_every_package() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    assert sorted(config["root_packages"]) == sorted(EXISTING)


def test_importing_the_library_does_not_import_langgraph_api() -> None:
    """langgraph_api reads its whole configuration from the environment at import, so it must
    not be imported before `LangGraphPlatform` has set that environment."""
    code = (
        "import os, sys; before = dict(os.environ)\n"
        "import langgraph_runtime_sql, threadhold.platform, langgraph_runtime_sql.hooks\n"
        "assert os.environ == before, set(os.environ.items()) ^ set(before.items())\n"
        "print([name for name in sys.modules"
        " if name.split('.')[0] in ('langgraph_api', 'langgraph_runtime')])"
    )
    assert run_python(code) == "[]"


def test_sqlite_server_imports_no_unneeded_library(tmp_path: Path) -> None:
    """Each of these libraries costs startup time and memory."""
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
