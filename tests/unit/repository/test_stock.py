"""What Threadhold replaces of stock packages: it is all in one table, and the table fits."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from threadhold.stock import replacement, table
from threadhold.stock.replacement import ATTRIBUTE, Replacement, StockChanged, install_all

ROOT = Path(__file__).parents[3]
PACKAGES = ("threadhold", "langgraph_runtime_sql", "hooks", "my_agent", "server")
ROWS = (*table.BEFORE_IMPORT, *table.TABLE)
# Of all versions: the code is the same for each.
NAMES = {row.name for row in ROWS}


@pytest.fixture
def stock(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A stock module of which two parts are replaced."""

    class Kept:
        def set(self) -> None:
            self.value: int = 1

    module: Any = ModuleType("stock_of_test")
    module.Kept = Kept
    module.kept = lambda first, *, second=1: "stock"
    module.other = lambda: "stock"
    monkeypatch.setitem(sys.modules, "stock_of_test", module)
    found: ModuleType = module
    return found


def row(attribute: str, signature: str = "(first, *, second=1)") -> Replacement:
    return Replacement(
        "stock_of_test",
        attribute,
        "The reason of the row.",
        signature,
        replace=lambda stock: f"instead of {stock(1)}",
        by=("threadhold.of_test",),
        versions=("1.0", "1.1"),
        package="stock-of-test",
    )


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        (row("gone"), "no attribute 'gone'"),
        (row("other"), "()"),
        (row("routes_of[none]"), "no attribute 'routes_of'"),
        (row("Kept.gone"), "no attribute 'gone'"),
        (row("Kept.value.gone"), "no attribute 'gone'"),
    ],
    ids=["missing", "another signature", "missing routes", "missing attribute", "missing below"],
)
def test_part_that_is_not_the_known_one_stops_before_anything_is_replaced(
    stock: Any, wrong: Replacement, found: str
) -> None:
    kept = stock.kept
    with pytest.raises(StockChanged) as caught:
        install_all([row("kept"), wrong])
    text = str(caught.value)
    shown = (
        wrong.name,
        wrong.why,
        wrong.signature,
        "threadhold.of_test",
        "1.0, 1.1",
        "pip install",
    )
    assert all(each in text for each in (*shown, f"found:       {found}"))
    assert "stock_of_test.kept" not in text
    assert stock.kept is kept


def test_module_that_is_gone_stops_the_start() -> None:
    gone = Replacement("stock_of_test_gone", "name", "Why.", "()", replace=lambda stock: stock)
    with pytest.raises(StockChanged, match="no module stock_of_test_gone"):
        install_all([gone])


def test_attribute_that_a_method_sets_is_found(stock: Any) -> None:
    known = Replacement(
        "stock_of_test", "Kept.value", "Why.", ATTRIBUTE, by=("threadhold.of_test",)
    )
    install_all([known])
    assert not hasattr(stock.Kept, "value")


def test_known_parts_are_replaced_in_order(stock: Any) -> None:
    install_all([row("kept")])
    assert stock.kept == "instead of stock"


def test_each_row_says_why_and_which_modules_need_it() -> None:
    for each in ROWS:
        assert each.why.endswith("."), each.name
        for module in each.needed_by:
            assert source_of(module).exists(), each.name


def source_of(module: str) -> Path:
    return ROOT / (module.replace(".", "/") + ".py")


@pytest.mark.parametrize("version", replacement.API_VERSIONS)
def test_each_part_has_one_row_in_each_version(version: str) -> None:
    rows = [each for each in ROWS if each.package != "langgraph-api" or each.is_about(version)]
    assert len({each.name for each in rows}) == len(rows)


def test_each_row_was_tried() -> None:
    assert [each.name for each in ROWS if not each.tried] == []


def test_rows_of_other_versions_are_left_out(stock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacement, "_version", lambda package: "1.1rc1")
    known, other = row("kept"), row("other")
    install_all([replace(known, releases=">=1.1.dev0"), replace(other, releases="<1.1.dev0")])
    assert stock.kept == "instead of stock"
    assert stock.other() == "stock"
    with pytest.raises(StockChanged, match=r"tried with:  stock-of-test 1\.1\n"):
        install_all([replace(other, releases=">=1.1.dev0")])


def test_signature_leaves_types_and_objects_out() -> None:
    def known(a: int, *b: str, c: Any = ROOT, d: str = "x", **e: Any) -> None: ...

    assert replacement.signature(known) == "(a, *b, c=..., d='x', **e)"
    assert replacement.signature(None) == "NoneType"


def assigned(source: Path) -> Iterator[str]:
    """Yield `module.attribute` of each assignment to an attribute of a `langgraph_api` module."""
    for nodes, known in _scopes(source):
        for node in nodes:
            yield from filter(None, (_path(each, known) for each in _changed(node)))


def internal(source: Path) -> Iterator[str]:
    """Yield `module.name` of each name of `langgraph_api` that begins with `_`."""
    for nodes, known in _scopes(source):
        read = (_path(node, known) for node in nodes if isinstance(node, ast.Attribute))
        for path in {*known.values(), *filter(None, read)}:
            if any(_is_internal(each) for each in path.split(".")):
                yield path


def _is_internal(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _scopes(source: Path) -> Iterator[tuple[list[ast.AST], dict[str, str]]]:
    """Yield the nodes of each function, and those outside, with the paths of names of `langgraph_api`.

    A name is followed from its import through assignments and loops of the same function.
    """
    tree = ast.parse(source.read_text())
    functions = [each for each in ast.walk(tree) if isinstance(each, FUNCTIONS)]
    for nodes in (list(_outside(tree)), *(list(ast.walk(each)) for each in functions)):
        known: dict[str, str] = {}
        for node in nodes:
            known |= dict(_imported(node))
        for _ in range(3):
            for node in nodes:
                known |= {name: path for name, path in _aliases(node, known) if path}
        yield nodes, known


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _outside(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what is outside of functions."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, FUNCTIONS):
            yield node
            yield from _outside(node)


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("langgraph_api"):
        for each in node.names:
            yield each.asname or each.name, f"{node.module}.{each.name}"
    elif isinstance(node, ast.Import):
        for each in node.names:
            if each.name.startswith("langgraph_api"):
                whole = each.name if each.asname else "langgraph_api"
                yield each.asname or whole, whole


def _aliases(node: ast.AST, known: dict[str, str]) -> Iterator[tuple[str, str | None]]:
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name):
                yield target.id, _path(node.value, known)
    elif isinstance(node, ast.For) and isinstance(node.target, ast.Name):
        yield node.target.id, _path(node.iter, known)


def _path(node: ast.AST, known: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute):
        inside = _path(node.value, known)
        return inside and f"{inside}.{node.attr}"
    if isinstance(node, ast.Call):
        text = ast.unparse(node)
        if "import_module(" in text or "sys.modules" in text:
            names = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
            return next((n for n in map(str, names) if n.startswith("langgraph_api")), None)
    if (
        isinstance(node, ast.Subscript)
        and ast.unparse(node.value) == "sys.modules"
        and isinstance(node.slice, ast.Constant)
    ):
        name = str(node.slice.value)
        return name if name.startswith("langgraph_api") else None
    return None


def _changed(node: ast.AST) -> Iterator[ast.AST]:
    targets: list[ast.AST] = []
    if isinstance(node, ast.Assign | ast.Delete):
        targets = list(node.targets)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("setattr", "delattr"):
        name = node.args[1]
        targets = [
            ast.Attribute(node.args[0], str(name.value) if isinstance(name, ast.Constant) else "?")
        ]
    while targets:
        target = targets.pop()
        if isinstance(target, ast.Tuple | ast.List):
            targets += target.elts
        elif isinstance(target, ast.Attribute):
            yield target


def test_every_assignment_to_an_attribute_of_the_api_is_in_the_table() -> None:
    sources = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    found = {name: path for path in sources for name in assigned(path)}
    assert found.keys() <= NAMES, {name: str(path) for name, path in found.items()}
    # The rows that other modules apply: the search does find assignments.
    assert "langgraph_api.api.ui._UI_SCHEMAS_CACHE" in found


def test_every_internal_name_of_the_api_is_in_the_table() -> None:
    sources = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    found = {name: path for path in sources for name in internal(path)}
    # A module that is internal has rows of its own names.
    missing = {
        name: str(path)
        for name, path in found.items()
        if not any(row == name or row.startswith(f"{name}.") for row in NAMES)
    }
    assert not missing
    assert "langgraph_api._checkpointer.start_checkpointer" in found


# What these modules add to objects of `langgraph_api`, and a method of each named tuple.
OUR_ATTRIBUTES = {"_applied_seq", "_begins_at", "_begins_later", "_handed_over", "_replace"}


@pytest.mark.parametrize(
    "module", ["event_routes", "event_session", "event_streaming", "request_checks", "stream_codec"]
)
def test_every_internal_attribute_of_objects_of_the_api_is_in_the_table(module: str) -> None:
    tree = ast.parse(source_of(f"threadhold.stock.{module}").read_text())
    found = {each.attr for each in ast.walk(tree) if isinstance(each, ast.Attribute)}
    known = {name.rpartition(".")[2] for name in NAMES}
    assert {each for each in found if _is_internal(each)} <= known | OUR_ATTRIBUTES


CHANGES = """
import importlib, inspect, sys, tempfile
from threadhold import LangGraphPlatform
from threadhold.stock import replacement, table

platform = LangGraphPlatform(
    "langgraph.json", database_url=f"sqlite:///{tempfile.mkdtemp()}/a.db"
)
# Imported first, so that what follows is only what the platform changes.
importlib.import_module("langgraph_api.server")
for row in replacement.about_installed(table.TABLE):
    importlib.import_module(row.module)


def parts():
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != "langgraph_api":
            continue
        for key, value in list(vars(module).items()):
            yield f"{name}.{key}", value
            if inspect.isclass(value) and value.__module__ == name:
                for inner, each in list(vars(value).items()):
                    yield f"{name}.{key}.{inner}", each


before = dict(parts())
platform.app
for name, value in parts():
    if name in before and before[name] is not value and not name.endswith("__"):
        print(name)
"""


def test_loading_the_platform_changes_only_what_the_table_names() -> None:
    """Also what no search of the sources sees, such as an attribute with a computed name."""
    done = in_fresh_process(CHANGES)
    assert done.returncode == 0, done.stderr
    changed = set(done.stdout.split())
    assert changed
    assert changed <= NAMES


LOADS = """
import tempfile
from threadhold import LangGraphPlatform
from threadhold.errors import StockChanged

platform = LangGraphPlatform(
    "langgraph.json",
    database_url=f"sqlite:///{tempfile.mkdtemp()}/a.db",
    authenticate=lambda request: "somebody",
)
from langgraph_api.auth import custom

del custom._load_auth_obj
try:
    platform.app
except StockChanged as error:
    print(error)
"""


def test_part_that_the_import_of_the_server_needs_stops_with_its_row() -> None:
    done = in_fresh_process(LOADS)
    assert done.returncode == 0, done.stderr
    assert "langgraph_api.auth.custom._load_auth_obj is not the part" in done.stdout
    assert "threadhold.host_objects" in done.stdout


def in_fresh_process(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_table_was_tried_with_the_installed_versions() -> None:
    for each in replacement.about_installed(ROWS):
        installed = replacement.metadata.version(each.package)
        assert installed in each.tried, (each.name, installed)
