"""Options that several commands have."""

from pathlib import Path

import click

config_option = click.option(
    "--config",
    "langgraph_json",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Path of the project's langgraph.json.  [default: langgraph.json]",
)
database_option = click.option(
    "--database-url",
    help="SQLite or Postgres, such as sqlite:///data/app.db.  [default: DATABASE_URL]",
)
redis_option = click.option(
    "--redis-url",
    help="Redis, only with Postgres, such as redis://127.0.0.1:6379/0.  [default: REDIS_URL]",
)
host_option = click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on."
)
port_option = click.option(
    "--port",
    default=8123,
    show_default=True,
    type=click.IntRange(1, 65535),
    help="Port to listen on.",
)
