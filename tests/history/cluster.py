"""The cluster: servers of one database, perhaps with a Redis, which can fail and are restarted."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx
import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo
from sqlalchemy.engine import make_url

from langgraph_runtime_sql import migrations
from tests.history import audit
from tests.support import databases
from tests.support.processes import GRAPHS, ROOT, environment, free_port
from tests.support.redis import Valkey

# Seconds; far more than any wait needs.
PATIENCE = 60.0
# Number of attempts at a run. Faults are more frequent here than in other tests.
ATTEMPTS = 5


class Server:
    """One of the servers, in its current process.

    Attributes:
        url: Its address.
        pid: Its process id; 0 while it does not run.
        expected: Whether the nemesis ends it.
    """

    def __init__(self, number: int, port: int) -> None:
        self.number = number
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.pid = 0
        self.expected = False
        self.gone = asyncio.Event()


class Cluster:
    """All servers with their Postgres and Redis.

    Args:
        folder: The folder of their files.
        size: Number of servers.
        lease: Length of a claim in seconds.
        with_redis: Whether the servers use Redis. Without, Postgres alone connects them.

    Attributes:
        dsn: The database as an administrator, because row-level security limits the servers.
        deaths: Unexpected ends of servers: the number of each server, and the time.
    """

    def __init__(self, folder: Path, size: int, lease: float, *, with_redis: bool = True) -> None:
        self.folder = folder
        self.lease = lease
        self.servers = [Server(number, free_port()) for number in range(size)]
        self.with_redis = with_redis
        self.valkey = Valkey(_made(folder / "valkey"))
        self.dsn = self._database = ""
        self.deaths: list[tuple[int, float]] = []
        self._data = databases.folder()
        self._postgres_user: str | None = None
        self._launcher: subprocess.Popen[bytes] | None = None
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Start everything, and wait until it answers."""
        await asyncio.to_thread(self._start_postgres)
        if self.with_redis:
            await asyncio.to_thread(self.valkey.start)
        self._launcher = await asyncio.to_thread(self._launch)
        for server in self.servers:
            await self.begin(server)
        await self.answer()

    def _start_postgres(self) -> None:
        admin, self._postgres_user = databases.start(self._data)
        role = make_url(databases.ordinary(admin))
        with psycopg.connect(admin, autocommit=True) as raw:
            owner = sql.Identifier(role.username or "")
            raw.execute(sql.SQL("CREATE DATABASE history OWNER {} ENCODING 'UTF8'").format(owner))
        self._database = role.set(database="history").render_as_string(hide_password=False)
        migrations.migrate(self._database)
        self.dsn = make_conninfo(admin, dbname="history")
        audit.install(self.dsn)

    def _launch(self) -> subprocess.Popen[bytes]:
        config = {
            "dependencies": [str(ROOT)],
            "graphs": {"witness": f"{GRAPHS / 'witness.py'}:graph"},
        }
        path = self.folder / "langgraph.json"
        path.write_text(json.dumps(config))
        with (self.folder / "launcher.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("launcher.py")), str(self.lease)],
                cwd=self.folder,
                env=environment(
                    LANGGRAPH_JSON=str(path),
                    DATABASE_URL=self._database,
                    **({"REDIS_URL": self.valkey.url} if self.with_redis else {}),
                    N_JOBS_PER_WORKER="10",
                    SHUTDOWN_GRACE_SECONDS="1",
                    BG_JOB_MAX_RETRIES=str(ATTEMPTS),
                    RESUMABLE_STREAM_TTL_SECONDS="3600",
                ),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )

    async def begin(self, server: Server) -> None:
        """Start a server without waiting until it answers."""
        async with self._starting:
            server.pid = await asyncio.to_thread(self._say, f"{server.port}")
        server.expected, server.gone = False, asyncio.Event()
        self._watch(server)

    def _say(self, command: str) -> int:
        assert self._launcher is not None
        assert self._launcher.stdin is not None
        assert self._launcher.stdout is not None
        self._launcher.stdin.write(f"{command}\n".encode())
        self._launcher.stdin.flush()
        while (line := self._launcher.stdout.readline().decode()) == "ready\n":
            continue
        if not line:
            raise RuntimeError((self.folder / "launcher.log").read_text()[-4000:])
        return int(line)

    def _watch(self, server: Server) -> None:
        """Watch for the end of a server's process."""
        loop, gone = asyncio.get_running_loop(), server.gone
        handle = os.pidfd_open(server.pid)

        def ended() -> None:
            loop.remove_reader(handle)
            os.close(handle)
            server.pid = 0
            if not server.expected:
                self.deaths.append((server.number, time.monotonic()))
            gone.set()

        loop.add_reader(handle, ended)

    async def end(self, server: Server, how: signal.Signals) -> None:
        """End a server, and wait for its end."""
        server.expected = True
        if server.pid:
            os.kill(server.pid, how)
            async with asyncio.timeout(PATIENCE):
                await server.gone.wait()

    def restart_postgres(self) -> None:
        """Restart Postgres, whatever it is doing. Blocks."""
        databases.restart(self._data, self._postgres_user)

    def end_listeners(self) -> int:
        """End the connections on which servers listen to Postgres; return how many. Blocks."""
        with psycopg.connect(self.dsn, autocommit=True) as raw:
            ended = raw.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                # The idle connection shows its last statement; after silence that is the check.
                " AND query IN ('LISTEN threadhold', 'SELECT 1')"
            )
            return ended.rowcount

    async def answer(self) -> None:
        """Wait until every server answers, and restart dead servers."""
        async with asyncio.timeout(PATIENCE * 2), httpx.AsyncClient(timeout=PATIENCE) as http:
            for server in self.servers:
                while not await self._answers(http, server):
                    await asyncio.sleep(0.05)

    async def serves(self, server: Server) -> None:
        """Wait until a server answers, whatever it says, or has ended."""
        async with asyncio.timeout(PATIENCE), httpx.AsyncClient(timeout=PATIENCE) as http:
            while server.pid:
                with suppress(httpx.TransportError):
                    await http.get(f"{server.url}/ok")
                    return
                await asyncio.sleep(0.05)

    async def _answers(self, http: httpx.AsyncClient, server: Server) -> bool:
        if not server.pid:
            await self.begin(server)
        try:
            answer = await http.get(f"{server.url}/health")
        except httpx.TransportError:
            return False
        redis = "ok" if self.with_redis else None
        return answer.is_success and answer.json().get("redis") == redis

    async def stop(self) -> None:
        """Stop everything. Repeatable."""
        for server in self.servers:
            server.expected = True
        if self._launcher is not None:
            await asyncio.to_thread(_close, self._launcher)
            self._launcher = None
        for server in self.servers:
            if server.pid:
                await server.gone.wait()
        await asyncio.to_thread(self.valkey.stop)


def _close(launcher: subprocess.Popen[bytes]) -> None:
    """End the launcher, which ends its children."""
    assert launcher.stdin is not None
    assert launcher.stdout is not None
    launcher.stdin.close()
    launcher.wait(PATIENCE)
    launcher.stdout.close()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
