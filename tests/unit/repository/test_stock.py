"""What Threadhold replaces of stock packages: it is all in one table, and the table fits."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from threadhold.stock import replacement, table
from threadhold.stock.replacement import Replacement, StockChanged, install_all

ROOT = Path(__file__).parents[3]
PACKAGES = ("contexts", "threadhold", "langgraph_runtime_sql", "hooks", "my_agent", "server")
ROWS = (*table.BEFORE_IMPORT, *table.TABLE)
NAMES = {row.name for row in ROWS}


@pytest.fixture
def stock(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A stock module of which two parts are replaced."""
    module: Any = ModuleType("stock_of_test")
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
        by="threadhold.of_test",
        versions=("1.0", "1.1"),
        package="stock-of-test",
    )


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        (row("gone"), "no attribute 'gone'"),
        (row("other"), "()"),
        (row("routes_of[none]"), "no attribute 'routes_of'"),
    ],
    ids=["missing", "another signature", "missing routes"],
)
def test_part_that_is_not_the_known_one_stops_before_anything_is_replaced(
    stock: Any, wrong: Replacement, found: str
) -> None:
    kept = stock.kept
    with pytest.raises(StockChanged) as caught:
        install_all([row("kept"), wrong])
    text = str(caught.value)
    shown = (wrong.name, wrong.why, wrong.signature, "threadhold.of_test", "1.0, 1.1", "pip install")
    assert all(each in text for each in (*shown, f"found:       {found}"))
    assert "stock_of_test.kept" not in text
    assert stock.kept is kept


def test_module_that_is_gone_stops_the_start() -> None:
    gone = Replacement("stock_of_test_gone", "name", "Why.", "()", replace=lambda stock: stock)
    with pytest.raises(StockChanged, match="no module stock_of_test_gone"):
        install_all([gone])


def test_known_parts_are_replaced_in_order(stock: Any) -> None:
    install_all([row("kept")])
    assert stock.kept == "instead of stock"


def test_each_row_says_why_and_what_replaces_it() -> None:
    for each in ROWS:
        assert each.why.endswith("."), each.name
        source = ROOT / (each.replaced_by.replace(".", "/") + ".py")
        assert source.exists(), each.name


def test_signature_leaves_types_and_objects_out() -> None:
    def known(a: int, *b: str, c: Any = object(), d: str = "x", **e: Any) -> None: ...

    assert replacement.signature(known) == "(a, *b, c=..., d='x', **e)"
    assert replacement.signature(None) == "NoneType"


def assigned(source: Path) -> Iterator[str]:
    """Yield `module.attribute` of each assignment to an attribute of a `langgraph_api` module.

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
        for node in nodes:
            yield from filter(None, (_path(each, known) for each in _changed(node)))


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
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "sys.modules":
        if isinstance(node.slice, ast.Constant):
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


CHANGES = """
import importlib, inspect, sys, tempfile
from threadhold import LangGraphPlatform
from threadhold.stock import table

platform = LangGraphPlatform(
    "langgraph.json", database_url=f"sqlite:///{tempfile.mkdtemp()}/a.db"
)
# Imported first, so that what follows is only what the platform changes.
importlib.import_module("langgraph_api.server")
for row in table.TABLE:
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
    done = subprocess.run(
        [sys.executable, "-c", CHANGES], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    changed = set(done.stdout.split())
    assert changed
    assert changed <= NAMES


def test_the_table_was_tried_with_the_installed_versions() -> None:
    for each in ROWS:
        installed = replacement.metadata.version(each.package)
        assert installed in each.versions, (each.name, installed)
