"""The command `threadhold`."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
from pydantic import ValidationError

from langgraph_runtime_sql.errors import RuntimeSqlError
from my_agent.database import ProductDatabaseError
from server.settings import Settings
from threadhold.config_file import read_config

STUDIO = "https://smith.langchain.com/studio/"

config_option = click.option(
    "--config",
    "langgraph_json",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The project to serve: path of its langgraph.json.  [default: langgraph.json]",
)
database_option = click.option(
    "--database-url", help="Such as sqlite:///data/app.db.  [default: DATABASE_URL]"
)
redis_option = click.option(
    "--redis-url", help="Such as redis://127.0.0.1:6379/0, with Postgres.  [default: REDIS_URL]"
)
host_option = click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on."
)
port_option = click.option(
    "--port", default=8123, show_default=True, type=click.IntRange(1, 65535), help="Port."
)


class Group(click.Group):
    """Commands whose expected failures are one sentence, not a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (RuntimeSqlError, ProductDatabaseError) as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=Group)
def main() -> None:
    """The LangGraph Platform held inside your own app."""


@main.command()
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
def serve(
    langgraph_json: Path | None,
    database_url: str | None,
    redis_url: str | None,
    host: str,
    port: int,
    workers: int,
    inherited: str | None,
) -> None:
    """Serve a project's graphs."""
    from server import processes, serving

    given = {"langgraph_json": langgraph_json, "database_url": database_url, "redis_url": redis_url}
    settings = load_settings(**given)
    if inherited is not None:
        serving.serve(settings, host, port, inherited=processes.inherited(inherited))
    elif workers == 1:
        serving.serve(settings, host, port)
    else:
        arguments = ["serve", "--host", host, "--port", str(port)]
        # By the environment, where others cannot read them.
        os.environ |= {key.upper(): str(value) for key, value in given.items() if value is not None}
        raise SystemExit(serving.serve_together(settings, host, port, workers, arguments))


@main.command()
@config_option
@database_option
@redis_option
@click.option(
    "--heartbeat",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to touch every 5 seconds, by whose age a probe sees that it is alive.",
)
def worker(
    langgraph_json: Path | None,
    database_url: str | None,
    redis_url: str | None,
    heartbeat: Path | None,
) -> None:
    """Work on runs beside servers of the same database, and answer no requests."""
    from server.working import work

    work(
        load_settings(
            langgraph_json=langgraph_json, database_url=database_url, redis_url=redis_url
        ),
        heartbeat,
    )


@main.command()
@config_option
@database_option
@host_option
@port_option
def dev(langgraph_json: Path | None, database_url: str | None, host: str, port: int) -> None:
    """Serve, start again whenever a file changes, and let LangGraph Studio in."""
    from server import serving

    settings = load_settings(
        langgraph_json=langgraph_json, database_url=database_url, shutdown_grace_seconds=1.0
    )
    project = read_config(settings.langgraph_json)
    base = f"http://{host}:{port}{project.sections['http'].get('mount_prefix') or ''}"
    click.echo(f"API     {base}")
    click.echo(f"Docs    {base}/docs")
    click.echo(f"Studio  {STUDIO}?baseUrl={quote(base, safe=':/')}")
    import watchfiles

    watchfiles.run_process(
        *project.import_paths,
        target=serving.develop,
        args=(settings, host, port),
        watch_filter=watchfiles.PythonFilter(extra_extensions=(".json", ".toml", ".env")),
    )


@main.command()
@database_option
@click.option("--from", "source", help="Move everything from here, a sqlite:/// URL ...")
@click.option("--to", "target", help="... to here, a postgresql:// URL of an empty database.")
@config_option
def migrate(
    database_url: str | None, source: str | None, target: str | None, langgraph_json: Path | None
) -> None:
    """Bring the database's schema up to date, without starting anything.

    With --from and --to: move everything from a SQLite file, which is only read, to Postgres.
    No server may run. Whatever interrupts it, the same command goes on.
    """
    if source is not None or target is not None:
        if source is None or target is None or database_url is not None:
            raise click.UsageError("A move has both --from and --to, and no --database-url.")
        from server.moving import move

        move(load_settings(langgraph_json=langgraph_json, database_url=target), source)
        return
    from langgraph_runtime_sql import migrations
    from langgraph_runtime_sql.database.url import shown
    from my_agent.database import ProductDatabase

    settings = load_settings(database_url=database_url)
    migrations.migrate(settings.database_url)
    ProductDatabase(settings.database_url).close()
    click.echo(f"{shown(settings.database_url)} is up to date")


@main.command()
@database_option
@click.argument("destination", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace an existing file.")
def backup(database_url: str | None, destination: Path, force: bool) -> None:
    """Copy the database to DESTINATION, consistently, while the server runs."""
    from server.backup import back_up

    settings = load_settings(database_url=database_url)
    size = back_up(settings.database_url, destination, force=force)
    click.echo(f"{destination}: {size:,} bytes, integrity verified")


@main.command()
@database_option
@redis_option
@click.option("--fix", is_flag=True, help="Repair what can be repaired; no server may run.")
def doctor(database_url: str | None, redis_url: str | None, fix: bool) -> None:
    """List runs, threads and the like that nothing explains any more, say why, and repair them.

    Works beside a running server, unless it is to repair. Exits with 1 if anything is wrong, or
    still is after the repair.
    """
    from langgraph_runtime_sql.database.url import is_postgres, shown
    from server.doctor import examine, repair

    settings = load_settings(database_url=database_url, redis_url=redis_url)
    url = settings.database_url
    found = repair(url) if fix else []
    left = examine(url)
    if settings.redis_url is not None:
        from server import doctor_redis

        left += doctor_redis.examine(settings.redis_url, settings.redis_prefix)
    elif is_postgres(url):
        from server import doctor_postgres

        if doctor_postgres.is_shared(url):
            click.echo("The Redis of those who serve it was not looked at: give its --redis-url")
    for finding in [*found, *(each for each in left if each not in found)]:
        click.echo(f"{finding.what} {finding.id}: {finding.why}")
        click.echo(f"    {'remedy' if finding in left else 'repaired'}: {finding.remedy}")
    if not found and not left:
        click.echo(f"{shown(url)}: nothing is wrong")
    if left:
        if not fix and any(finding.repair for finding in left):
            click.echo("`threadhold doctor --fix` repairs what it can, while no server runs.")
        raise SystemExit(1)


@main.command()
@click.option("--tenant", required=True, help="Tenant that the token is for.")
@click.option("--user", required=True, help="User that the token is for.")
@click.option("--role", "roles", multiple=True, help="Such as tenant_admin; may be repeated.")
@click.option("--ttl", default="8h", show_default=True, help="How long it is good: 90, 15m, 7d.")
def token(tenant: str, user: str, roles: tuple[str, ...], ttl: str) -> None:
    """Print a token for development, signed with JWT_SECRET."""
    from server.token import seconds, sign

    try:
        lifetime = seconds(ttl)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--ttl") from error
    click.echo(sign(load_settings(), tenant, user, roles, lifetime))


@main.command()
@database_option
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--tenant", help="Whose it is to be.  [default: shared by all tenants]")
def ingest(path: Path, tenant: str | None, database_url: str | None) -> None:
    """Bring PATH into the database: a folder of documents, or one file.

    Documents are Markdown, text, HTML and PDF. Doing it again updates what has changed.
    """
    from langgraph_runtime_sql.database.shared_lock import shared_lock
    from my_agent import database
    from server.ingest import ingest as bring_in

    url = load_settings(database_url=database_url).database_url
    with shared_lock(url):
        database.use(url)
        bring_in(path, tenant)


def load_settings(**given: Any) -> Settings:
    """Settings from the environment; what the command line gives is stronger.

    Raises:
        click.ClickException: a setting has a value it cannot have.
    """
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        problems = [
            ": ".join([*(str(name).upper() for name in problem["loc"][:1]), _said(problem["msg"])])
            for problem in error.errors()
        ]
        raise click.ClickException("\n".join(problems)) from error


def _said(message: str) -> str:
    """What our own checks say, without what pydantic puts in front of it."""
    return message.removeprefix("Value error, ")
