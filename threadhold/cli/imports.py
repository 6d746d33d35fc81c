"""Import: bring the data of another LangGraph server here (`threadhold import`)."""

import json
from pathlib import Path
from typing import Any

import click

from threadhold.cli.group import load_settings, pass_program
from threadhold.cli.keys import use_keys
from threadhold.cli.options import config_option, database_option
from threadhold.cli.progress import ProgressLine
from threadhold.config_file import read_config
from threadhold.program import Program


def _document(_: click.Context, __: click.Parameter, value: str | None) -> dict[str, Any]:
    try:
        found = json.loads(value or "{}")
    except ValueError as error:
        raise click.BadParameter(f"no JSON: {error}") from error
    if not isinstance(found, dict):
        raise click.BadParameter('no JSON object, such as {"owner": "ana"}')
    return found


@click.command("import")
@config_option
@database_option
@click.argument("source")
@click.option("--graph", "graph_id", help="The graph of threads whose source does not name it.")
@click.option(
    "--metadata",
    callback=_document,
    metavar="JSON",
    help='Entries that everything imported gets, such as {"owner": "ana"}.',
)
@click.option("--tenant", help="The tenant that gets everything.  [default: whom metadata name]")
@click.option("--enable-crons", is_flag=True, help="Let imported crons fire; otherwise they rest.")
@click.option("--dry-run", is_flag=True, help="Count what would be imported, and write nothing.")
@pass_program
def import_(
    program: Program,
    langgraph_json: Path | None,
    database_url: str | None,
    source: str,
    **asked: Any,
) -> None:
    """Import threads, states, store items, assistants and crons from SOURCE.

    SOURCE is the folder .langgraph_api of `langgraph dev`, a SQLite file or postgresql:// URL with the
    tables of langgraph's savers, or the http(s):// URL of a LangGraph server; LANGSMITH_API_KEY
    authenticates there. It is only read. What is here already stays, and the same command goes on
    after an interruption. Runs are not imported.
    """
    from threadhold.admin.beside import opened_beside_server
    from threadhold.imports import Plan, run
    from threadhold.imports.address import opened
    from threadhold.imports.target import Target
    from threadhold.platform import LangGraphPlatform

    settings = load_settings(
        program.settings, langgraph_json=langgraph_json, database_url=database_url
    )
    project = read_config(settings.langgraph_json)
    # Sets the project's environment, of which threads get their time to live.
    LangGraphPlatform(settings.langgraph_json, database_url=settings.database_url)
    use_keys(settings, project.tenant_key)
    plan = Plan(tenant_key=project.tenant_key, is_dry_run=asked.pop("dry_run"), **asked)
    with (
        opened(source) as found,
        opened_beside_server(settings.database_url, project.tenant_key) as database,
        ProgressLine() as line,
    ):
        report = run(found, Target(database), plan, line.show)
    for text in report.lines("to import" if plan.is_dry_run else "imported"):
        click.echo(text)
    if not plan.is_dry_run and report.imported["crons"] and not plan.enable_crons:
        click.echo(
            "The crons rest, so that they do not fire twice: enable them when the source stops."
        )
