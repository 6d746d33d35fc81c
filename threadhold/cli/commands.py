"""Commands of every program: serve, worker, dev, migrate, doctor and the imported ones."""

import os
from pathlib import Path
from urllib.parse import quote

import click

from threadhold.cli.audit import audit
from threadhold.cli.effects import effects
from threadhold.cli.group import load_settings, pass_program
from threadhold.cli.imports import import_
from threadhold.cli.keys import use_keys
from threadhold.cli.options import (
    config_option,
    database_option,
    host_option,
    port_option,
    redis_option,
    settings_options,
)
from threadhold.cli.progress import ProgressLine
from threadhold.cli.storage import storage
from threadhold.cli.tenant import tenant
from threadhold.cli.webhooks import webhooks
from threadhold.config_file import read_config
from threadhold.program import Program
from threadhold.settings import Settings, flags, variable

STUDIO = "https://smith.langchain.com/studio/"


@click.command()
@settings_options()
@host_option
@port_option
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=click.IntRange(1),
    help="Number of processes on the port; more than one needs Postgres.",
)
@click.option("--inherited", hidden=True)
@pass_program
def serve(
    program: Program,
    settings: Settings,
    host: str,
    port: int,
    workers: int,
    inherited: str | None,
) -> None:
    """Serve a project's graphs."""
    from threadhold.serving import server, supervisor

    if inherited is not None:
        server.serve(program, settings, host, port, inherited=supervisor.inherit(inherited))
    elif workers == 1:
        server.serve(program, settings, host, port)
    else:
        arguments = ["serve", "--host", host, "--port", str(port)]
        # In the environment, because other users can read command lines.
        given = {variable(Settings, name): getattr(settings, name) for name in flags(Settings)}
        os.environ |= {each: str(value) for each, value in given.items() if value is not None}
        raise SystemExit(server.serve_together(program, settings, host, port, workers, arguments))


@click.command()
@settings_options()
@click.option(
    "--heartbeat",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to touch every 5 seconds; a probe checks its age.",
)
@click.option("--metrics-port", type=click.IntRange(1, 65535), help="Port of /metrics and /ok.")
@click.option(
    "--metrics-host", default="127.0.0.1", show_default=True, help="Address of that port."
)
@pass_program
def worker(
    program: Program,
    settings: Settings,
    heartbeat: Path | None,
    metrics_port: int | None,
    metrics_host: str,
) -> None:
    """Execute runs of the servers on the same database, without serving requests."""
    from threadhold.serving.worker import work

    metrics = None if metrics_port is None else (metrics_host, metrics_port)
    work(program, settings, heartbeat, metrics)


@click.command()
@settings_options(config_option, database_option)
@host_option
@port_option
@pass_program
def dev(program: Program, settings: Settings, host: str, port: int) -> None:
    """Serve, restart when a file changes, and let LangGraph Studio in."""
    from threadhold.serving import banner, listen, server

    settings = settings.model_copy(update={"grace_seconds": 1.0})
    project = read_config(settings.langgraph_json)
    # Fail here if the port is taken; the serving process binds it again.
    for each in listen.bind(host, port):
        each.close()
    base = banner.base_url(project, host, port)
    click.echo(f"API     {base}")
    if settings.docs_page:
        click.echo(f"Docs    {base}/docs")
    click.echo(f"Studio  {STUDIO}?baseUrl={quote(base, safe=':/')}")
    import watchfiles

    watchfiles.run_process(
        *project.import_paths,
        target=server.develop,
        args=(program, settings, host, port),
        watch_filter=watchfiles.PythonFilter(extra_extensions=(".json", ".toml", ".env")),
    )


@click.command()
@database_option
@click.option("--from", "source", help="Move all data from this sqlite:/// URL; needs --to.")
@click.option("--to", "target", help="Move it to this postgresql:// URL, an empty database.")
@config_option
@pass_program
def migrate(
    program: Program,
    database_url: str | None,
    source: str | None,
    target: str | None,
    langgraph_json: Path | None,
) -> None:
    """Update the database's schema, without starting a server.

    With --from and --to, move all data from a SQLite file to Postgres. Stop all servers first.
    The file is not changed. After an interruption, the same command continues.
    """
    if source is not None or target is not None:
        if source is None or target is None or database_url is not None:
            raise click.UsageError("A move needs both --from and --to, and no --database-url.")
        from threadhold.cli.move import move

        given = {"langgraph_json": langgraph_json, "database_url": target}
        move(program, load_settings(program.settings, **given), source)
        return
    from langgraph_runtime_sql.database.url import shown
    from langgraph_runtime_sql.migrations.reporting import reporting

    settings = load_settings(program.settings, database_url=database_url)
    with ProgressLine() as line, reporting(line.show):
        program.migrate(settings.database_url)
    click.echo(f"{shown(settings.database_url)} is up to date")


@click.command()
@settings_options(database_option)
@click.argument("destination", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace an existing file.")
def backup(settings: Settings, destination: Path, force: bool) -> None:
    """Write a consistent copy of the database to DESTINATION; servers may run.

    On Postgres it is a dump by pg_dump, which must be installed.
    """
    from threadhold.admin.backup import back_up, keys_beside

    with ProgressLine() as line:
        size = back_up(settings.database_url, destination, force=force, report=line.show)
    click.echo(f"{destination}: {size:,} bytes, integrity verified")
    if (keys := keys_beside(destination)).exists():
        click.echo(f"{keys}: its encryption keys. Keep only the newest, apart from the backups")


@click.command()
@settings_options(database_option)
@click.argument("source", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace a SQLite file, which is kept beside it.")
@pass_program
def restore(program: Program, settings: Settings, source: Path, force: bool) -> None:
    """Put the backup SOURCE in the place of the database; stop all servers first.

    A Postgres database must exist and be empty.
    """
    from langgraph_runtime_sql.database.url import shown
    from threadhold.admin.backup import keys_beside
    from threadhold.admin.backup import restore as put_back

    with ProgressLine() as line:
        replaced = put_back(settings.database_url, source, force=force, report=line.show)
    if replaced is not None:
        click.echo(f"{replaced}: the database before")
    click.echo(f"{shown(settings.database_url)}: restored from {source}")
    if (keys := keys_beside(source)).exists():
        click.echo(f"Its encryption keys: `{program.name} keys import {keys}`")
    click.echo(f"Then check it: `{program.name} doctor`")


@click.command()
@settings_options(database_option, redis_option)
@click.option("--fix", is_flag=True, help="Repair the problems found; stop all servers first.")
@pass_program
def doctor(program: Program, settings: Settings, fix: bool) -> None:
    """List inconsistencies of the database with their remedies, and repair them with --fix.

    Servers may run, except with --fix. Exits with 1 if problems remain.
    """
    from langgraph_runtime_sql.database.url import shown
    from threadhold.admin.doctor import examine, repair

    url = settings.database_url
    use_keys(settings)
    with ProgressLine() as line:
        found = repair(url, line.show) if fix else []
        remaining = examine(url, line.show)
    if settings.redis_url is not None:
        from threadhold.admin import doctor_redis

        remaining += doctor_redis.examine(settings.redis_url, settings.redis_prefix)
    # Each once; there may be as many as threads.
    unrepaired = set(remaining)
    for finding in dict.fromkeys([*found, *remaining]):
        click.echo(f"{finding.what} {finding.id}: {finding.why}")
        click.echo(f"    {'remedy' if finding in unrepaired else 'repaired'}: {finding.remedy}")
    if not found and not remaining:
        click.echo(f"{shown(url)}: nothing is wrong")
    if remaining:
        if not fix and any(finding.repair for finding in remaining):
            click.echo(f"Stop all servers, then repair with `{program.name} doctor --fix`.")
        raise SystemExit(1)


ALL = (
    serve,
    worker,
    dev,
    migrate,
    import_,
    backup,
    restore,
    doctor,
    storage,
    audit,
    tenant,
    webhooks,
    effects,
)
