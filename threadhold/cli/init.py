"""Init: write a small working project (`threadhold init`)."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

# Packaging tools would leave these files out, or read them, under their real names.
RENAMED = {
    "gitignore": ".gitignore",
    "dockerignore": ".dockerignore",
    "env.example": ".env.example",
}


@click.command()
@click.argument("name", default=".", type=click.Path(file_okay=False, path_type=Path))
def init(name: Path) -> None:
    """Write a small working project to the folder NAME, by default to this one.

    The project has a graph, langgraph.json, a host app, authentication, a test, a frontend
    snippet and a Dockerfile. Existing files are never replaced.
    """
    template = dict(_files(files("threadhold") / "template"))
    if existing := [path for path in template if (name / path).exists()]:
        raise click.ClickException(
            f"{name / existing[0]} exists, and `init` replaces no files: name a new folder, "
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
    """Return path and content of each file of the template."""
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
