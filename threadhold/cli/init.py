"""Init: write a small working project (`threadhold init`)."""

from pathlib import Path

import click

TEMPLATE = Path(__file__).parents[1] / "template"
# Packaging tools would leave these files out, or read them, under their real names.
RENAMED = {
    "gitignore": ".gitignore",
    "env.example": ".env.example",
}


@click.command()
@click.argument("name", default=".", type=click.Path(file_okay=False, path_type=Path))
def init(name: Path) -> None:
    """Write a small working project to the folder NAME, by default to this one.

    The project has a graph, langgraph.json, a host app, authentication, a test and a frontend
    snippet. Existing files are never replaced.
    """
    template = {
        name / path.relative_to(TEMPLATE).with_name(RENAMED.get(path.name, path.name)): path
        for path in sorted(TEMPLATE.rglob("*"))
        if path.is_file() and path.parent.name != "__pycache__"
    }
    if existing := [path for path in template if path.exists()]:
        raise click.ClickException(
            f"{existing[0]} exists, and `init` replaces no files: name a new folder, "
            "such as `threadhold init demo`"
        )
    for path, source in template.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.read_bytes())
        click.echo(f"  {path}")
    click.echo("\nServe it:\n")
    if name != Path("."):
        click.echo(f"  cd {name}")
    click.echo("  threadhold serve")
