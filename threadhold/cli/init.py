"""`threadhold init`: writes a small project that works."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

# What packaging tools would leave out or take for their own under its real name.
RENAMED = {
    "gitignore": ".gitignore",
    "dockerignore": ".dockerignore",
    "env.example": ".env.example",
}


@click.command()
@click.argument("name", default=".", type=click.Path(file_okay=False, path_type=Path))
def init(name: Path) -> None:
    """Write a small working project to the folder NAME, by default to this one.

    A graph with its langgraph.json, a host app, authentication, a test, a snippet for a frontend
    and a Dockerfile. Files that exist are never replaced.
    """
    template = dict(_files(files("threadhold") / "template"))
    if taken := [path for path in template if (name / path).exists()]:
        raise click.ClickException(
            f"{name / taken[0]} exists, and `init` replaces nothing: name a new folder, "
            "such as `threadhold init demo`"
        )
    for path, content in template.items():
        (name / path).parent.mkdir(parents=True, exist_ok=True)
        (name / path).write_text(content, encoding="utf-8")
        click.echo(f"  {name / path}")
    click.echo("\nServe it:\n")
    if name != Path("."):
        click.echo(f"  cd {name}")
    click.echo("  threadhold serve")


def _files(folder: Traversable, at: str = "") -> list[tuple[str, str]]:
    """The path of each file of the project, and its content."""
    found: list[tuple[str, str]] = []
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.name == "__pycache__":
            continue
        if each.is_dir():
            found += _files(each, f"{at}{each.name}/")
        else:
            name = RENAMED.get(each.name, each.name)
            found.append((f"{at}{name}", each.read_text(encoding="utf-8")))
    return found
