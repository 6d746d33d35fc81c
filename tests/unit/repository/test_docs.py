"""The documentation says what the code does: names, defaults, commands, links."""

import ast
import inspect
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from pydantic import BaseModel

from langgraph_runtime_sql import hooks
from my_agent.chat.settings import ChatSettings
from my_agent.icp_finder.settings import IcpSettings
from my_agent.models import ModelSettings
from my_agent.tutor.settings import TutorSettings
from server.cli import main as app
from server.settings import Settings
from threadhold import LangGraphPlatform
from threadhold.cli import main as library

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text()
PAGES = sorted(
    path
    for path in ROOT.rglob("*.md")
    if not any(
        # The template is a project of its own.
        part.startswith(".") or part in ("data", "template")
        for part in path.relative_to(ROOT).parts[:-1]
    )
)


def section(title: str) -> str:
    """The text of README under a heading, up to the next of the same rank."""
    found = re.search(
        rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", README, re.MULTILINE | re.DOTALL
    )
    assert found, f"README has no section {title!r}"
    return found[1]


def table(text: str) -> dict[str, list[str]]:
    """Rows of the Markdown tables in a text, by the code in their first cell."""
    rows = re.findall(r"^\| `([^`]+)` \|(.*)\|$", text, re.MULTILINE)
    return {name: [cell.strip() for cell in rest.split("|")] for name, rest in rows}


def shown(value: Any) -> str:
    """A default as the tables of README show it."""
    if value is None or value == "" or value == ():
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`{','.join(value)}`"
    return f"`{getattr(value, 'value', value)}`"


def rows(settings: type[BaseModel], prefix: str) -> dict[str, list[str]]:
    """The table that a settings class asks for: variable to default and meaning."""
    return {
        f"{prefix}{name}".upper(): [shown(field.default), field.description or ""]
        for name, field in settings.model_fields.items()
    }


@pytest.mark.parametrize(
    ("title", "settings", "prefix"),
    [
        ("Settings", Settings, Settings.model_config.get("env_prefix", "")),
        ("Models", ModelSettings, ModelSettings.PREFIX),
        ("ICP finder", IcpSettings, IcpSettings.PREFIX),
        ("Documents", ChatSettings, ChatSettings.PREFIX),
        ("Tutor", TutorSettings, TutorSettings.PREFIX),
    ],
)
def test_settings_table_is_the_settings_class(
    title: str, settings: type[BaseModel], prefix: str
) -> None:
    variables = {name: row for name, row in table(section(title)).items() if name.isupper()}
    assert variables == rows(settings, prefix)


def parameters(function: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in ("self", "tx")]


def test_hooks_table_names_every_hook_with_its_arguments() -> None:
    documented = set(table(section("Hooks")))
    declared = {
        f"{name}({', '.join(['tx', *parameters(getattr(hooks.Hooks, name))])})"
        for name in hooks.NAMES
    }
    assert documented == declared


def test_mounting_table_names_every_option_of_the_platform() -> None:
    assert set(table(section("Mount it"))) == set(parameters(LangGraphPlatform.__init__))


def documented_commands() -> Iterator[tuple[str, click.Command, list[str]]]:
    """Each command of the table: its name, itself, and the words that follow."""
    for shown_command in table(section("Commands")):
        group = app if shown_command.startswith("python -m server ") else library
        name, *words = (
            shown_command.removeprefix("python -m server ").removeprefix("threadhold ").split()
        )
        yield name, group.commands[name], words


def test_commands_table_names_every_command() -> None:
    documented = {name for name, _, _ in documented_commands()}
    assert documented == library.commands.keys() | app.commands.keys()
    # What the app has beside them is its own.
    assert app.commands.keys() - library.commands.keys() == {"token", "ingest"}


def test_options_shown_of_a_command_exist() -> None:
    for _, command, words in documented_commands():
        known = {option for param in command.params for option in param.opts}
        assert {word.strip("[]") for word in words if word.strip("[]").startswith("--")} <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page(page: Path) -> None:
    text = page.read_text()
    broken = [
        target
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert broken == [], "links that lead nowhere"
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = re.findall(r"(?:`|^ {4}|\n {4})make ([a-z]+)", text)
    assert set(commands) <= targets, "make targets that do not exist"
    files = re.findall(
        r"`((?:tests|server|hooks|my_agent|langgraph_runtime_sql|threadhold|bench)/[\w./]+)`", text
    )
    assert [name for name in files if not (ROOT / name).exists()] == []
    for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        ast.parse(block)


def test_every_development_page_is_in_the_index() -> None:
    folder = ROOT / "Development_Plan"
    index = (folder / "README.md").read_text()
    assert [path.name for path in folder.glob("*.md") if path.name not in index] == ["README.md"]


def test_agents_page_describes_every_folder() -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    folders = {name.split("/")[0] for name in tracked if "/" in name and name[0] != "."}
    guide = (ROOT / "AGENTS.md").read_text()
    assert [folder for folder in sorted(folders) if f"`{folder}/`" not in guide] == []
