"""Maps of the code: tables of its folders, modules and database tables, read from the sources.

A module says in the first line of its docstring what it is. A folder says it in the docstring of its
`__init__.py`, in the first sentence of its `README.md`, or in a row of the table in the `README.md` of a
folder above it.
"""

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Where the folders of the code are. Each package of the import contracts is one.
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
_PACKAGES: list[str] = _PROJECT["tool"]["importlinter"]["root_packages"]
_LIBRARY = ("threadhold", "langgraph_runtime_sql")
CODE = (*_LIBRARY, *(name for name in _PACKAGES if name not in _LIBRARY), "web")
# A folder whose first page is for users says nothing about itself.
DESCRIBED = {"docs": "The documentation; `make docs` builds it as a site."}
_SOURCES = {".py", ".ts", ".tsx", ".mjs"}
# Built or installed, not written here.
_MADE = {"__pycache__", "node_modules"}

# The tables that `database/schema.py` does not define: what a row is, and who creates the table.
OTHER_TABLES = {
    "store": ("An item of the store", "langgraph"),
    "store_vectors": ("The vector of a text of an item", "langgraph"),
    "alembic_version": ("The newest migration script that has run", "Alembic"),
    "store_migrations": ("A migration of langgraph's store that has run", "langgraph"),
    "vector_migrations": ("A migration of the store's vectors that has run", "langgraph"),
    "sqlite_sequence": ("The last number of a table with `AUTOINCREMENT`", "SQLite"),
}


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Format a Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return (
        "\n".join(
            f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
        )
        + "\n"
    )


def summary(module: Path) -> str:
    """Return what a module says that it is: the first line of its docstring or comment."""
    text = module.read_text()
    if module.suffix == ".py":
        return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    found = re.match(r"// (.+)", text)
    return found[1] if found else ""


def describe(folder: Path) -> str:
    """Return what a folder says that it is.

    Raises:
        LookupError: it says nothing.
    """
    name = folder.relative_to(ROOT).as_posix()
    if name in DESCRIBED:
        return DESCRIBED[name]
    if (folder / "__init__.py").exists():
        return summary(folder / "__init__.py")
    # The template is a project of its own, whose page describes that.
    above = [each for each in folder.parents if ROOT in each.parents]
    for each in above:
        if found := _row(each / "README.md", folder.relative_to(each).as_posix()):
            return found
    if found := _first_sentence(folder / "README.md"):
        return found
    raise LookupError(f"{name}/ does not say what it is: describe it in its README.md")


def _row(page: Path, name: str) -> str | None:
    text = page.read_text() if page.exists() else ""
    found = re.search(rf"^\| `{re.escape(name)}/` \| (.+) \|$", text, re.MULTILINE)
    return found[1] if found else None


def _first_sentence(page: Path) -> str | None:
    text = page.read_text() if page.exists() else ""
    found = re.match(r"# .+\n\n([^|\s](?:.|\n(?!\n))*?)[.:]\s", text)
    return " ".join(found[1].split()) + "." if found else None


def modules(folder: Path) -> list[Path]:
    """Return the sources that are directly in a folder, without its `__init__.py`."""
    found = (each for each in folder.iterdir() if each.suffix in _SOURCES)
    return sorted(each for each in found if each.name != "__init__.py")


def rooms(top: str) -> Iterator[Path]:
    """Yield a folder and each one below it that has sources, in order."""
    return _rooms(ROOT / top)


def _rooms(folder: Path) -> Iterator[Path]:
    below = sorted(each for each in folder.iterdir() if each.is_dir() and each.name not in _MADE)
    inner = [room for each in below for room in _rooms(each)]
    if inner or modules(folder) or (folder / "__init__.py").exists():
        yield folder
    # The template's own folders are its users'.
    if folder.name != "template":
        yield from inner


def _heading(room: Path) -> str:
    return f"{room.relative_to(ROOT).as_posix()}/"


def rooms_section() -> str:
    """Make the tables of all folders of the code."""
    parts = []
    for top in CODE:
        rows = []
        for room in rooms(top):
            name = room.relative_to(ROOT / top).as_posix()
            shown = f"{top}/" if name == "." else f"{name}/"
            anchor = re.sub(r"[^\w-]", "", _heading(room).lower())
            rows.append((f"[`{shown}`](../reference/modules.md#{anchor})", describe(room)))
        parts += [f"### `{top}/`\n", table(("Folder", "What it is"), rows)]
    return "\n".join(parts)


def modules_page() -> str:
    """Make the page of all modules."""
    parts = [
        "# Modules\n",
        (
            "Each folder and module of the code, with the first line of its docstring. "
            "[Architecture](../explanation/architecture.md) says how they work together.\n"
        ),
    ]
    for top in CODE:
        for room in rooms(top):
            parts += [f"## {_heading(room)}\n", describe(room) + "\n"]
            rows = [(f"`{each.name}`", summary(each)) for each in modules(room)]
            if rows and room.name != "template":
                parts.append(table(("Module", "What it is"), rows))
    return "\n".join(parts)


def folders_section() -> str:
    """Make the table of the folders at the top of the repository."""
    rows = []
    for folder in sorted(each for each in ROOT.iterdir() if each.is_dir()):
        if folder.name.startswith("."):
            continue
        try:
            rows.append((f"`{folder.name}/`", describe(folder)))
        except LookupError:
            # Not the project's, such as an environment or a database.
            continue
    return table(("Folder", "What it is"), rows)


def tables_section() -> str:
    """Make the diagram and the tables of the database's tables."""
    from langgraph_runtime_sql.database.schema import metadata

    rows = dict(_documented_tables(ROOT / "langgraph_runtime_sql/database/schema.py"))
    relations, own = [], []
    for each in metadata.tables.values():
        owners = [key.column.table.name for key in each.foreign_keys]
        relations += [f"    {owner} ||--o{{ {each.name} : has" for owner in owners]
        keys = ", ".join(f"`{column.name}`" for column in each.primary_key)
        own.append((f"`{each.name}`", rows[each.name], keys, ", ".join(owners)))
    others = [(f"`{name}`", *about) for name, about in OTHER_TABLES.items()]
    graphs = [
        (f"`{_short(module)}`", ", ".join(f"`{name}`" for name in names), summary(module))
        for module in sorted(ROOT.glob("my_agent/*/tables.py"))
        if (names := _named_tables(module))
    ]
    return "\n".join(
        [
            "```mermaid\nerDiagram\n" + "\n".join(relations) + "\n```\n",
            table(("Table", "A row is", "Key", "Deleted with"), own),
            "Libraries and other modules create these:\n",
            table(("Table", "A row is", "Created by"), others),
            "The example's graphs have these:\n",
            table(("Defined in", "Tables", "What they hold"), graphs),
        ]
    )


def _short(module: Path) -> str:
    return module.relative_to(ROOT).as_posix()


def _documented_tables(module: Path) -> Iterator[tuple[str, str]]:
    """Yield the name of each table that a module defines, and the docstring after it."""
    body = ast.parse(module.read_text()).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        names = list(_tables_in(node)) if isinstance(node, ast.Assign) else []
        if names:
            if not isinstance(after, ast.Expr) or not isinstance(after.value, ast.Constant):
                raise LookupError(f"{_short(module)}: table {names[0]} has no docstring after it")
            yield names[0], " ".join(str(after.value.value).split()).removesuffix(".")


def _named_tables(module: Path) -> list[str]:
    return list(_tables_in(ast.parse(module.read_text())))


def _tables_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            first = node.args[0]
            if node.func.id in {"Table", "Derived"} and isinstance(first, ast.Constant):
                yield str(first.value)
