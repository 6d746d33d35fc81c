"""The documentation says what the code does: generated pages, links, anchors, commands, figures."""

import ast
import inspect
import json
import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest

from server.cli import main as app
from threadhold import LangGraphPlatform
from threadhold.cli import main as library
from threadhold.settings import variable
from tools import offline, reference

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
TRACKED = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=True,
).stdout.splitlines()
PAGES = sorted(
    {
        ROOT / name
        for name in TRACKED
        # The template is a project of its own.
        if name.endswith(".md") and (ROOT / name).exists() and "/template/" not in name
    }
)
DECISIONS = sorted((DOCS / "decisions").rglob("[0-9]*.md"), key=lambda path: path.name)
# Whole words of names that the tests of a page look for in the tree.
FOLDERS = "tests|server|hooks|my_agent|langgraph_runtime_sql|threadhold|bench|deploy|tools|Development_Plan"
PROGRAMS = {"threadhold": library, "python -m server": app}


def slug(heading: str) -> str:
    """The anchor of a heading, as code hosts and the site make it."""
    text = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return {slug(heading) for heading in re.findall(r"^#+ (.+)$", prose, re.MULTILINE)}


def links(page: Path) -> list[str]:
    """Where the page's links to files and headings lead."""
    found = re.findall(r"\]\(([^)\s]+)\)", page.read_text())
    return [target for target in found if "://" not in target]


def code(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands(text: str, program: str) -> list[list[str]]:
    """The words of each command of a program that a page shows."""
    shown = re.findall(
        rf"(?:^ {{4}}|\$\(|&& |^|`)(?:[A-Z_]+=\S+ )*{program} ([^\n`]*)", text, re.MULTILINE
    )
    return [shlex.split(line.partition("  ")[0].rstrip("\\)"), comments=True) for line in shown]


def test_generated_pages_are_current() -> None:
    assert reference.find_stale() == [], "run `python -m tools.reference`"


def test_check_fails_for_a_stale_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The pages outside of `docs` stay below the temporary folder.
    tmp_path = tmp_path / "docs"
    for name in (*reference.PAGES, *reference.SECTIONS):
        page = tmp_path / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text((DOCS / name).read_text())
    monkeypatch.setattr(reference, "DOCS", tmp_path)
    assert reference.find_stale() == []
    page = tmp_path / "reference" / "settings.md"
    page.write_text(page.read_text().replace("`DATABASE_URL`", "`DATABASE`"))
    assert reference.find_stale() == ["reference/settings.md"]


def test_settings_page_has_every_setting() -> None:
    page = (DOCS / "reference" / "settings.md").read_text()
    documented = re.findall(r"^\| `([A-Z_]+)` \|", page, re.MULTILINE)
    for _, _, spec in reference.SETTINGS:
        settings = reference.load(spec)
        prefix = reference.prefix_of(settings).upper()
        wanted = {f"{prefix}{variable(settings, name)}" for name in settings.model_fields}
        assert wanted <= set(documented)


def test_platform_page_says_what_each_option_means() -> None:
    page = (DOCS / "reference" / "platform.md").read_text()
    documented = re.findall(r"^\| `([a-z_]+)` \|.*\| [A-Z`].*\|$", page, re.MULTILINE)
    assert documented == list(inspect.signature(LangGraphPlatform).parameters)


def test_site_that_loads_from_another_host_is_found(tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    page.write_text(
        '<link rel="canonical" href="https://example.com/"><a href="https://example.com">x</a>'
        '<script src="assets/own.js"></script>'
    )
    assert offline.find_external(tmp_path) == []
    page.write_text('<link rel=stylesheet href="https://fonts.example/css">')
    assert offline.find_external(tmp_path) == ["index.html: https://fonts.example/css"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page(page: Path) -> None:
    text = page.read_text()
    broken = []
    for target in links(page):
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == [], "links that lead nowhere"
    targets = set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))
    shown = re.findall(r"(?:`|^ {4}|\n {4})make ([a-z]+)", text)
    assert set(shown) <= targets, "make targets that do not exist"
    files = re.findall(rf"(?:`|ARGS=\"?|tests/\S+ )((?:{FOLDERS})/[\w./-]+)", text)
    missing = [name for name in files if not (ROOT / name.rstrip(".")).exists()]
    # What its reader makes: from a file that is there, and by `make web`.
    assert set(missing) <= {"deploy/.env", "threadhold/web"}
    for block in code(text, "python"):
        ast.parse(block)
    for block in code(text, "json"):
        json.loads(block if block.startswith("{") else f"{{{block}}}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_that_a_page_shows_exist(page: Path) -> None:
    for program, group in PROGRAMS.items():
        for name, *words in commands(page.read_text(), program):
            if name not in group.commands:
                assert name in {"COMMAND", "token|ingest", "--version", "--help"}, (
                    f"{program} {name}"
                )
                continue
            command = group.commands[name]
            if isinstance(command, click.Group) and words:
                command = command.commands[words[0]]
            known = {option for each in command.params for option in each.opts}
            assert {word for word in words if word.startswith("--")} <= known | {"--help"}


def test_commands_are_found_in_a_page() -> None:
    page = "    A=b threadhold serve --workers 4\n\nand `threadhold doctor --fix` and\n"
    page += '    TOKEN=$(threadhold token --user "a b")\n'
    assert commands(page, "threadhold") == [
        ["serve", "--workers", "4"],
        ["doctor", "--fix"],
        ["token", "--user", "a b"],
    ]


def test_variables_that_a_page_shows_exist() -> None:
    """A setting in a page is in the reference, so that renaming one is noticed."""
    known = set(
        re.findall(
            r"^\| `([A-Z_]+)` \|", (DOCS / "reference/settings.md").read_text(), re.MULTILINE
        )
    )
    prefixes = {name.split("_")[0] for name in known} - {"BG", "LANGGRAPH"}
    for page in PAGES:
        if page.name == "CHANGELOG.md":
            continue
        named = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)[`=]", page.read_text()))
        # Each setting may be in a file.
        plain = {name if name in known else name.removesuffix("_FILE") for name in named}
        unknown = {name for name in plain if name.split("_")[0] in prefixes} - known
        # Of `langgraph-api`, and of the build of the package.
        others = {"DATABASE_URI", "THREADHOLD_WITHOUT_WEB"}
        assert unknown <= others, f"{page.relative_to(ROOT)}: {unknown}"


def test_readme_is_short() -> None:
    assert len(README.splitlines()) <= 150


def test_figures_of_readme_are_those_of_the_bench() -> None:
    bench = (ROOT / "bench" / "README.md").read_text()
    cells = {cell.strip() for cell in re.split(r"[|\n]", bench)}
    measured = {
        re.sub(r" (?:events/s|runs/s|x)$", "", re.sub(r" \(.*\)$", "", cell)) for cell in cells
    }
    rows = re.findall(
        r"^\| ([^|]+) \| ([\d][^|]*) \| ([\d][^|]*) \| ([\d/.]+) \|$", README, re.MULTILINE
    )
    assert len(rows) == 7
    assert {figure.strip() for row in rows for figure in row[1:]} <= measured


def test_each_guarantee_of_readme_names_a_command_that_runs_tests() -> None:
    guarantees = re.findall(r"^\| .+\. \| `make ([^`]+)` \|$", README, re.MULTILINE)
    assert len(guarantees) == 5
    assert all(command == "history" or "ARGS=" in command for command in guarantees)


def test_every_page_is_in_the_navigation() -> None:
    named = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    # The index of decisions lists the records.
    pages = set(DOCS.rglob("*.md")) - set(DECISIONS)
    assert {str(page.relative_to(DOCS)) for page in pages} <= named
    assert [name for name in named if not (DOCS / name).exists()] == []


def test_decisions_are_numbered_once_and_have_one_form() -> None:
    numbers = [int(path.name[:4]) for path in DECISIONS]
    assert numbers == sorted(set(numbers))
    for path in DECISIONS:
        text = path.read_text()
        assert re.search(rf"^# {int(path.name[:4])}\. \S", text), path.name
        assert re.search(
            r"^\*\*Status:\*\* (accepted|superseded by \[\d+\]\(\S+\))$", text, re.MULTILINE
        )
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == [
            "Context",
            "Decision",
            "Consequences",
        ]
        assert 10 <= len(text.splitlines()) <= 40, path.name


def test_every_development_page_is_in_the_index() -> None:
    folder = ROOT / "Development_Plan"
    index = (folder / "README.md").read_text()
    assert [path.name for path in folder.glob("*.md") if path.name not in index] == ["README.md"]


def test_agents_page_describes_every_folder() -> None:
    folders = {name.split("/")[0] for name in TRACKED if "/" in name and name[0] != "."}
    guide = (ROOT / "AGENTS.md").read_text()
    assert [folder for folder in sorted(folders) if f"`{folder}/`" not in guide] == []
