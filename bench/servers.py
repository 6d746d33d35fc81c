"""Start and stop both servers as processes, each in a scratch directory."""

import asyncio
import os
import shutil
import socket
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from bench.client import Client, HTTPFailure

ROOT = Path(__file__).resolve().parent.parent
GRAPHS = ROOT / "bench" / "graphs"
START_LIMIT = 60.0
# Prefixes of environment variables that a shell may have set and that would distort the figures.
FOREIGN = (
    "LANGSMITH_",
    "LANGCHAIN_",
    "LANGGRAPH_",
    "DATABASE_",
    "REDIS_",
    "POSTGRES_",
    "N_JOBS_",
    # pip has compiled the installed packages. With this variable, only the code that is installed
    # in place, which is this project, would be compiled again at each start.
    "PYTHONDONTWRITEBYTECODE",
)


@dataclass
class Server:
    """A running server. `started_in` is the time in seconds from spawn to the first 200 on /ok."""

    name: str
    port: int
    process: asyncio.subprocess.Process
    log: Path
    started_in: float = 0.0

    def client(self) -> Client:
        return Client(self.port)

    def cpu_seconds(self) -> float:
        """Return the CPU time so far, user and system, including children that have been reaped."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")

    def rss_megabytes(self) -> float:
        """Return the current resident memory."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def stock_command(port: int) -> list[str]:
    langgraph = str(Path(sys.executable).parent / "langgraph")
    flags = ["--no-browser", "--no-reload", "--n-jobs-per-worker", "10"]
    return [langgraph, "dev", *flags, "--port", str(port), "--config", "langgraph.json"]


def our_command(
    port: int, database_url: str, config: str, program: Sequence[str] = ()
) -> list[str]:
    flags = ["--config", config, "--port", str(port), "--database-url", database_url]
    return [*(program or (sys.executable, "-m", "server", "serve")), *flags]


@asynccontextmanager
async def stock(scratch: Path, name: str = "langgraph dev") -> AsyncIterator[Server]:
    """Start stock `langgraph dev` without stored data, and stop it on exit."""
    port = free_port()
    async with _running(name, stock_command(port), port, scratch) as server:
        yield server


@asynccontextmanager
async def ours(
    scratch: Path,
    database_url: str | None = None,
    name: str = "ours",
    config: str = "langgraph.json",
    flags: Sequence[str] = (),
    port: int | None = None,
    code: Path = ROOT,
    program: Sequence[str] = (),
    **env: str,
) -> AsyncIterator[Server]:
    """Start our server, and stop it on exit.

    Args:
        scratch: folder of its files.
        database_url: its database; None: a new, empty file.
        name: of its files.
        config: the configuration file among the bench's graphs.
        flags: further arguments of the command.
        port: to listen on; None: a free one.
        code: the checkout of this project that is served.
        program: the command that serves; default: the server's own.
        env: environment variables.
    """
    port = port or free_port()
    url = database_url or f"sqlite:///{scratch / name.replace(' ', '-')}-{port}.db"
    command = [*our_command(port, url, config, program), *flags]
    async with _running(name, command, port, scratch, {"PYTHONPATH": str(code), **env}) as server:
        yield server


@asynccontextmanager
async def floor(scratch: Path) -> AsyncIterator[Server]:
    """Start the app of `bench.floor`, and stop it on exit."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "bench.floor:app", "--port", str(port)]
    env = {"FLOOR_FILE": str(scratch / f"floor-{port}.db")}
    async with _running(
        "floor", [*command, "--log-level", "warning"], port, scratch, env
    ) as server:
        yield server


@asynccontextmanager
async def _running(
    name: str,
    command: list[str],
    port: int,
    scratch: Path,
    env: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[Server]:
    # A directory of its own, with the graphs: the stock server looks for them in the working
    # directory and stores its pickle files there.
    home = scratch / f"{name.replace(' ', '-')}-{port}"
    shutil.copytree(GRAPHS, home)
    log = home / "server.log"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
    environment |= {"PYTHONPATH": str(ROOT), "LANGGRAPH_CLI_NO_ANALYTICS": "1", **env}
    begun = time.perf_counter()
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *command, cwd=home, env=environment, stdout=output, stderr=output
        )
    server = Server(name, port, process, log)
    try:
        await _until_ok(server, begun)
        yield server
    finally:
        await _stop(process)


async def _until_ok(server: Server, begun: float) -> None:
    while time.perf_counter() - begun < START_LIMIT:
        if server.process.returncode is not None:
            break
        try:
            async with server.client() as client:
                await client.request("GET", "/ok", None, lambda data: None)
        except (OSError, HTTPFailure):
            await asyncio.sleep(0.01)
        else:
            server.started_in = time.perf_counter() - begun
            return
    tail = server.log.read_text(errors="replace")[-3000:]
    raise RuntimeError(f"{server.name} did not answer /ok within {START_LIMIT:.0f} s:\n{tail}")


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), 10)
    except TimeoutError:
        process.kill()
        await process.wait()


def free_port() -> int:
    """Return a port that no process listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
