"""The commands of every program: serve, work, migrate, back up and examine."""

import os
from pathlib import Path
from urllib.parse import quote

import click

from threadhold.cli.group import load_settings, pass_program
from threadhold.cli.options import (
    config_option,
    database_option,
    host_option,
    port_option,
    redis_option,
)
from threadhold.config_file import read_config
from threadhold.program import Program

STUDIO = "https://smith.langchain.com/studio/"


@click.command()
@config_option
@database_option
@redis_option
@host_option
@port_option
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=click.IntRange(1),
    help="Processes on the port; more than one takes Postgres and Redis.",
)
@click.option("--inherited", hidden=True)
@pass_program
def serve(
    program: Program,
    langgraph_json: Path | None,
    database_url: str | None,
    redis_url: str | None,
    host: str,
    port: int,
    workers: int,
    inherited: str | None,
) -> None:
    """Serve a project's graphs."""
    from threadhold.serving import server, supervisor

    given = {"langgraph_json": langgraph_json, "database_url": database_url, "redis_url": redis_url}
    settings = load_settings(program.settings, **given)
    if inherited is not None:
        server.serve(program, settings, host, port, inherited=supervisor.inherit(inherited))
    elif workers == 1:
        server.serve(program, settings, host, port)
    else:
        arguments = ["serve", "--host", host, "--port", str(port)]
        # By the environment, where others cannot read them.
        os.environ |= {key.upper(): str(value) for key, value in given.items() if value is not None}
        raise SystemExit(server.serve_together(program, settings, host, port, workers, arguments))


@click.command()
@config_option
@database_option
@redis_option
@click.option(
    "--heartbeat",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to touch every 5 seconds, by whose age a probe sees that it is alive.",
)
@pass_program
def worker(
    program: Program,
    langgraph_json: Path | None,
    database_url: str | None,
    redis_url: str | None,
    heartbeat: Path | None,
) -> None:
    """Work on runs beside servers of the same database, and answer no requests."""
    from threadhold.serving.worker import work

    given = {"langgraph_json": langgraph_json, "database_url": database_url, "redis_url": redis_url}
    work(program, load_settings(program.settings, **given), heartbeat)


@click.command()
@config_option
@database_option
@host_option
@port_option
@pass_program
def dev(
    program: Program, langgraph_json: Path | None, database_url: str | None, host: str, port: int
) -> None:
    """Serve, start again whenever a file changes, and let LangGraph Studio in."""
    from threadhold.serving import banner, listen, server

    given = {"langgraph_json": langgraph_json, "database_url": database_url}
    settings = load_settings(program.settings, **given, shutdown_grace_seconds=1.0)
    project = read_config(settings.langgraph_json)
    # Only to say so here, once: the port is taken for good by the process that serves.
    for each in listen.bind(host, port):
        each.close()
    base = banner.base_url(project, host, port)
    click.echo(f"API     {base}")
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
@click.option("--from", "source", help="Move everything from here, a sqlite:/// URL ...")
@click.option("--to", "target", help="... to here, a postgresql:// URL of an empty database.")
@config_option
@pass_program
def migrate(
    program: Program,
    database_url: str | None,
    source: str | None,
    target: str | None,
    langgraph_json: Path | None,
) -> None:
    """Bring the database's schema up to date, without starting anything.

    With --from and --to: move everything from a SQLite file, which is only read, to Postgres.
    No server may run. Whatever interrupts it, the same command goes on.
    """
    if source is not None or target is not None:
        if source is None or target is None or database_url is not None:
            raise click.UsageError("A move has both --from and --to, and no --database-url.")
        from threadhold.cli.move import move

        given = {"langgraph_json": langgraph_json, "database_url": target}
        move(program, load_settings(program.settings, **given), source)
        return
    from langgraph_runtime_sql.database.url import shown

    settings = load_settings(program.settings, database_url=database_url)
    program.migrate(settings.database_url)
    click.echo(f"{shown(settings.database_url)} is up to date")


@click.command()
@database_option
@click.argument("destination", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace an existing file.")
@pass_program
def backup(program: Program, database_url: str | None, destination: Path, force: bool) -> None:
    """Copy the database to DESTINATION, consistently, while the server runs."""
    from threadhold.admin.backup import back_up

    settings = load_settings(program.settings, database_url=database_url)
    size = back_up(settings.database_url, destination, force=force)
    click.echo(f"{destination}: {size:,} bytes, integrity verified")


@click.command()
@database_option
@redis_option
@click.option("--fix", is_flag=True, help="Repair what can be repaired; no server may run.")
@pass_program
def doctor(program: Program, database_url: str | None, redis_url: str | None, fix: bool) -> None:
    """List runs, threads and the like that nothing explains any more, say why, and repair them.

    Works beside a running server, unless it is to repair. Exits with 1 if anything is wrong, or
    still is after the repair.
    """
    from langgraph_runtime_sql.database.url import is_postgres, shown
    from threadhold.admin.doctor import examine, repair

    given = {"database_url": database_url, "redis_url": redis_url}
    settings = load_settings(program.settings, **given)
    url = settings.database_url
    found = repair(url) if fix else []
    left = examine(url)
    if settings.redis_url is not None:
        from threadhold.admin import doctor_redis

        left += doctor_redis.examine(settings.redis_url, settings.redis_prefix)
    elif is_postgres(url):
        from threadhold.admin import doctor_postgres

        if doctor_postgres.is_shared(url):
            click.echo("The Redis of those who serve it was not looked at: give its --redis-url")
    for finding in [*found, *(each for each in left if each not in found)]:
        click.echo(f"{finding.what} {finding.id}: {finding.why}")
        click.echo(f"    {'remedy' if finding in left else 'repaired'}: {finding.remedy}")
    if not found and not left:
        click.echo(f"{shown(url)}: nothing is wrong")
    if left:
        if not fix and any(finding.repair for finding in left):
            click.echo(f"`{program.name} doctor --fix` repairs what it can, while no server runs.")
        raise SystemExit(1)


ALL = (serve, worker, dev, migrate, backup, doctor)
