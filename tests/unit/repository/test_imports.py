"""Allowed imports, and what importing the library must not do.

`lint-imports` follows chains of imports. This file states the direct rules for packages that
import-linter does not know yet, and the rules that only running code can show.
"""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[3]
PACKAGES = ("threadhold", "langgraph_runtime_sql", "hooks", "my_agent", "server")
EXISTING = [name for name in PACKAGES if (ROOT / name).is_dir()]
# Each package and the packages of this project that it may import.
ALLOWED: dict[str, set[str]] = {
    "langgraph_runtime_sql": set(),
    "threadhold": {"langgraph_runtime_sql"},
    "hooks": {"my_agent", "threadhold"},
    "my_agent": {"threadhold"},
    "server": {"threadhold", "hooks", "my_agent"},
}
LIBRARY = ("threadhold", "langgraph_runtime_sql")
# What the app, as any host, imports of the library.
PUBLIC = {
    "threadhold",
    "threadhold.addresses",
    "threadhold.admin",
    "threadhold.auth",
    "threadhold.cli",
    "threadhold.config_file",
    "threadhold.effects",
    "threadhold.encryption",
    "threadhold.errors",
    "threadhold.gate",
    "threadhold.hooks",
    "threadhold.host",
    "threadhold.hosts",
    "threadhold.move",
    "threadhold.operations",
    "threadhold.sessions",
    "threadhold.settings",
    "threadhold.tables",
    "threadhold.tenant_data",
    "threadhold.users",
}
# What graphs import of it, which loads nothing of the platform: they run on any LangGraph server.
FOR_GRAPHS = {"threadhold.addresses", "threadhold.tables"}


def normal(name: str) -> str:
    """Normalise the name of a distribution as package indexes do."""
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(package: str) -> Iterator[tuple[Path, str]]:
    """Yield every (file, dotted module) that a package imports, also inside functions."""
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


@pytest.mark.parametrize(
    ("package", "public"), [("hooks", PUBLIC), ("server", PUBLIC), ("my_agent", FOR_GRAPHS)]
)
def test_the_app_imports_public_modules_of_the_library_only(package: str, public: set[str]) -> None:
    found = [
        f"{path}: {module}"
        for path, module in imported(package)
        if module.split(".")[0] in LIBRARY and module not in public
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
    declared = {normal(Requirement(text).name) for text in requirements(package)}
    distributions = packages_distributions()
    undeclared = {
        module.split(".")[0]
        for _, module in imported(package)
        if (top := module.split(".")[0]) not in {*PACKAGES, *sys.stdlib_module_names}
        and not declared & {normal(name) for name in distributions.get(top, [])}
    }
    assert undeclared == set()


class Graph:
    """The modules of some packages, and which of each other they import.

    Attributes:
        at_top: By module, its own imports when it is imported.
        in_functions: By module, those that its functions make.
        for_types: By module, those for type checkers only, which nothing runs.
        libraries: By module, the top names of everything it imports at its top.
    """

    def __init__(self, *packages: str) -> None:
        files = [path for name in packages for path in (ROOT / name).rglob("*.py")]
        self.modules = {self._name(path): path for path in files}
        self.at_top: dict[str, set[str]] = {name: set() for name in self.modules}
        self.in_functions: dict[str, set[str]] = {name: set() for name in self.modules}
        self.for_types: dict[str, set[str]] = {name: set() for name in self.modules}
        self.libraries: dict[str, set[str]] = {name: set() for name in self.modules}
        for name, path in self.modules.items():
            self._visit(name, ast.parse(path.read_text(), str(path)), self.at_top)

    @staticmethod
    def _name(path: Path) -> str:
        return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")

    def _visit(self, module: str, node: ast.AST, found: dict[str, set[str]]) -> None:
        for child in ast.iter_child_nodes(node):
            for target in self._targets(child):
                if target in self.modules:
                    found[module].add(target)
                elif found is self.at_top:
                    self.libraries[module].add(target.split(".")[0])
            within = found
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                within = self.for_types
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                within = self.in_functions
            self._visit(module, child, within)

    def _targets(self, node: ast.AST) -> list[str]:
        if isinstance(node, ast.Import):
            return [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            named = [f"{node.module}.{alias.name}" for alias in node.names]
            return [each if each in self.modules else node.module for each in named]
        return []

    def all_libraries(self, module: str) -> set[str]:
        """The libraries that importing a module brings along."""
        seen, waiting = {module}, [module]
        while waiting:
            new = self.at_top[waiting.pop()] - seen
            seen |= new
            waiting += new
        return set().union(*(self.libraries[each] for each in seen))


LAYERED = Graph("langgraph_runtime_sql", "threadhold", "hooks")
EVERYTHING = Graph(*EXISTING)
# A server on a SQLite file, in one process, runs without these.
OPTIONAL = {"psycopg", "redis", "jwt"}


def test_no_imports_go_round_in_circles() -> None:
    """Not even by way of an import inside a function, or for types, which only hides one."""
    each = (EVERYTHING.at_top, EVERYTHING.in_functions, EVERYTHING.for_types)
    imports = {
        module: set().union(*(found[module] for found in each)) for module in EVERYTHING.modules
    }
    assert len(imports) > 100
    TopologicalSorter(imports).prepare()


# A command imports only what it runs, so that `--help` and `--version` stay fast.
COMMANDS = {
    f"threadhold.cli.{name}"
    for name in (
        *("audit", "commands", "crons", "effects", "identity", "imports", "keys", "own", "tenant"),
        "webhooks",
    )
} | {
    # Rules of commands, which the server does not need.
    "threadhold.program"
}


@pytest.mark.parametrize(
    "module",
    sorted(name for name, each in LAYERED.in_functions.items() if each and name not in COMMANDS),
)
def test_a_function_imports_only_what_needs_an_optional_driver(module: str) -> None:
    at_top = LAYERED.at_top[module]
    unneeded = {
        target
        for target in LAYERED.in_functions[module] - at_top
        if not LAYERED.all_libraries(target) & OPTIONAL
    }
    assert unneeded == set()


def test_import_linter_knows_every_package() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    assert sorted(config["root_packages"]) == sorted(EXISTING)


def test_every_module_of_the_bench_can_be_imported() -> None:
    """Type checks leave the bench out, and its rows take too long to run here."""
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "bench").rglob("*.py")
        if path.stem not in ("__main__", "floor") and "graphs" not in path.parts
    ]
    code = f"import importlib; [importlib.import_module(name) for name in {names}]; print('all')"
    assert len(names) > 30
    assert run_python(code) == "all"


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


GRAPHS = {
    each["path"].removeprefix("./").partition(".py:")[0].replace("/", ".")
    for each in json.loads((ROOT / "langgraph.json").read_text())["graphs"].values()
}


@pytest.mark.parametrize("module", sorted(FOR_GRAPHS | GRAPHS))
def test_what_graphs_import_loads_no_platform_and_sets_no_environment(module: str) -> None:
    code = (
        f"import os, sys; before = dict(os.environ); import {module}\n"
        "assert os.environ == before, set(os.environ.items()) ^ set(before.items())\n"
        "print([name for name in sys.modules if name.split('.')[0] in"
        " ('langgraph_api', 'langgraph_runtime', 'langgraph_runtime_sql', 'starlette')"
        " or name == 'threadhold.platform'])"
    )
    assert run_python(code) == "[]"


def test_transactions_of_graphs_load_no_platform_and_set_no_environment(tmp_path: Path) -> None:
    code = (
        "import os, sys; before = dict(os.environ)\n"
        "from my_agent.tables import tables\n"
        f"tables.use('sqlite:///{tmp_path}/data.db')\n"
        "tables.write(lambda connection: None, 'acme')\n"
        "assert os.environ == before, set(os.environ.items()) ^ set(before.items())\n"
        "print([name for name in sys.modules if name.split('.')[0] in"
        " ('langgraph_api', 'langgraph_runtime', 'langgraph_runtime_sql')"
        " or name == 'threadhold.platform'])"
    )
    assert run_python(code) == "[]"
