"""The maps of the code are complete: folders, modules, tables, recipes, decisions, and the roadmap."""

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from threadhold.tenant_data import RUNTIME
from tools import maps, reference

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
AGENTS = (ROOT / "AGENTS.md").read_text()
ARCHITECTURE = (DOCS / "explanation/architecture.md").read_text()
MODULES = [
    module
    for top in maps.CODE
    for room in maps.rooms(top)
    for module in (*maps.modules(room), room / "__init__.py")
    if module.suffix == ".py" and module.exists()
]
# A line is a sentence that ends, so nothing of it is missing in a table.
SENTENCE = re.compile(r"[A-Z`].{15,}[.]")


def test_each_module_says_in_one_line_what_it_is() -> None:
    assert len(MODULES) > 400
    unclear = {
        str(module.relative_to(ROOT)): maps.summary(module)
        for module in MODULES
        if not SENTENCE.fullmatch(maps.summary(module))
    }
    assert unclear == {}


def test_architecture_shows_each_folder() -> None:
    shown = set(
        re.findall(r"^\| \[`\S+`\]\(\.\./reference/modules\.md#(\S+)\)", ARCHITECTURE, re.MULTILINE)
    )
    # Whatever has code in it, also if it does not say what it is.
    folders = {path.parent for top in maps.CODE for path in (ROOT / top).rglob("*.py")}
    names = {path.relative_to(ROOT).as_posix() for path in folders if path.name != "__pycache__"}
    names = {name for name in names if "/template/" not in name and "node_modules" not in name}
    assert len(names) > 40
    assert {name.replace("/", "") for name in names} <= shown


def test_folder_without_a_description_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maps, "ROOT", tmp_path)
    folder = tmp_path / "web" / "src" / "new"
    folder.mkdir(parents=True)
    (folder / "page.tsx").write_text("// A page.\n")
    with pytest.raises(LookupError, match="web/src/new/ does not say what it is"):
        maps.describe(folder)
    (tmp_path / "web" / "README.md").write_text("# Web\n\n| `src/new/` | A new page. |\n")
    assert maps.describe(folder) == "A new page."


def test_architecture_shows_each_table_of_the_runtime() -> None:
    # A test of `tenant_data` compares these rules with the tables of both databases.
    tables = {rule.table for rule in RUNTIME}
    section = ARCHITECTURE.partition("<!-- Generated: tables -->")[2]
    shown = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    assert shown == tables


def test_table_without_a_docstring_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maps, "ROOT", tmp_path)
    module = tmp_path / "schema.py"
    module.write_text('a = Table("a", metadata)\n"""A row."""\nb = Table("b", metadata)\n')
    found = maps._documented_tables(module)
    assert next(found) == ("a", "A row")
    with pytest.raises(LookupError, match="table b has no docstring"):
        next(found)


def test_folders_in_the_diagram_exist() -> None:
    diagram = ARCHITECTURE.partition("```mermaid\nflowchart TB")[2].partition("```")[0]
    runtime = diagram.partition('"langgraph_runtime_sql/"')[2].partition("end")[0]
    names = re.findall(r"\b([a-z_]+)/(?!>)", runtime.replace("<br/>", " "))
    assert len(names) > 8
    assert [name for name in names if not (ROOT / "langgraph_runtime_sql" / name).is_dir()] == []


# --- the walk of a thread's id


def walk() -> list[tuple[str, str, str]]:
    """Return number, file and function of each step."""
    return re.findall(r"^\| (\d+) \| `([\w/]+\.py)` \| `([\w.]+)` \|", ARCHITECTURE, re.MULTILINE)


def functions(file: str) -> set[str]:
    """Return the names of the functions of a file, those of classes with their class."""
    path = ROOT / file
    if not path.exists():
        # Of an installed package.
        spec = importlib.util.find_spec(file.removesuffix(".py").split("/")[0])
        assert spec is not None and spec.origin is not None, file
        path = Path(spec.origin).parents[1] / file
    return set(_functions(ast.parse(path.read_text()).body))


def _functions(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")


def test_walk_of_a_thread_id_has_ten_steps() -> None:
    assert [int(number) for number, _, _ in walk()] == list(range(1, 11))


@pytest.mark.parametrize(("file", "function"), [step[1:] for step in walk()])
def test_step_of_the_walk_exists(file: str, function: str) -> None:
    assert function in functions(file)


# --- the page for developers


def test_agents_page_is_short() -> None:
    assert len(AGENTS.split()) <= 900


def test_agents_page_links_to_each_recipe() -> None:
    recipes = {
        path.relative_to(ROOT).as_posix()
        for top in (*maps.CODE, "tests", "tools")
        for path in (ROOT / top).rglob("README.md")
        if "node_modules" not in path.parts and "/template/" not in path.as_posix()
        if re.search(r"^##? (?:Add|Write|Allow) ", path.read_text(), re.MULTILINE)
    }
    linked = set(re.findall(r"\]\(([\w/]+README\.md)\)", AGENTS))
    assert len(recipes) >= 12
    assert recipes <= linked


# --- decisions


def test_architecture_links_to_twelve_accepted_decisions() -> None:
    linked = re.findall(r"^\| \[.+\]\((\.\./decisions/\d[^)]+)\) \|", ARCHITECTURE, re.MULTILINE)
    assert len(set(linked)) == 12
    for target in linked:
        text = (DOCS / "explanation" / target).read_text()
        assert "**Status:** accepted" in text, target


@pytest.mark.parametrize("folder", ["decisions", "decisions/example"])
def test_index_lists_superseded_decisions_apart(folder: str) -> None:
    current, _, superseded = (DOCS / folder / "index.md").read_text().partition("## Superseded")
    assert len(re.findall(r"^\| \d+ \|", current, re.MULTILINE)) > 40
    assert re.search(
        r"^- \d+\. \[.+\]\(\S+\), superseded by \[\d+\]\(\S+\)$", superseded, re.MULTILINE
    )
    for name in re.findall(r"\((\d{4}-[^)]+)\)", current):
        assert "**Status:** accepted" in (DOCS / folder / name).read_text(), name


# --- the roadmap

# Words that say nothing about an item.
_FILLING = set(
    re.findall(r"\w+", "a an and any as at by for from in its next no of on or the to with")
)


def words(text: str) -> set[str]:
    """Return the words of a text that mean something, without an `s` at their end."""
    found = re.findall(r"[a-z]+", text.lower())
    return {word.removesuffix("s") for word in found if word not in _FILLING}


def added(changelog: str) -> list[str]:
    """Return the entries of all sections `Added`."""
    sections = re.findall(r"^### Added\n(.*?)(?=^##|\Z)", changelog, re.MULTILINE | re.DOTALL)
    return [line for section in sections for line in section.splitlines() if line.startswith("- ")]


def shipped(roadmap: str, changelog: str) -> list[str]:
    """Return the titles of items of which one entry has all words."""
    titles = re.findall(r"^\d+\. \*\*(.+?)\.?\*\*", roadmap, re.MULTILINE)
    assert titles, "no item"
    return [
        title for title in titles if any(words(title) <= words(each) for each in added(changelog))
    ]


def test_roadmap_names_nothing_that_the_changelog_has_added() -> None:
    roadmap = (ROOT / "Development_Plan/roadmap.md").read_text()
    assert shipped(roadmap, (ROOT / "CHANGELOG.md").read_text()) == []


def test_shipped_item_of_a_roadmap_is_found() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    old = "1. **Web** (planned). A client.\n2. **Ten million threads.** Bounds.\n"
    old += "3. **Checkpoints that store what changed** (planned). Long conversations.\n"
    assert shipped(old, changelog) == ["Web", "Checkpoints that store what changed"]


# --- generated sections


def test_page_without_its_markers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    monkeypatch.setattr(reference, "DOCS", docs)
    (tmp_path / "AGENTS.md").write_text(AGENTS)
    assert reference.render("../AGENTS.md") == AGENTS
    (tmp_path / "AGENTS.md").write_text(AGENTS.replace("<!-- End of folders -->", ""))
    with pytest.raises(ValueError, match="no section between"):
        reference.render("../AGENTS.md")
