"""Tenants: let four of them ask for each other's objects, and gather what reached whom.

The servers run the example application with authentication. Each tenant has its canary in all that
it sends. The checker searches what tenants received in answers, streams, WebSockets and webhooks, the
audit entries, and the logs of the servers.
"""

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.history.canaries import Tenant, excerpts
from tests.history.evidence import Evidence, Received
from tests.history.fuzzer import Fuzzer
from tests.integration.http.test_matrix import OURS, score
from tests.support import databases
from tests.support.http_server import QuietHandler, answering
from tests.support.issuer import SECRET
from tests.support.processes import GRAPHS, ROOT, Running
from tests.support.served import served

# Similar names, and administrators: their rights must end at their tenant.
TENANTS = {"acme": (), "acm": ("tenant_admin",), "acme2": ("tenant_admin",), "globex": ()}
WORKERS = 3
TEST_GRAPHS = ("echo", "sleeper", "failing", "interrupt")
LOG = "log line"
# What must have shown a tenant's own canary; otherwise finding no other one proves nothing.
KINDS = ["threads", "runs", "assistants", "crons", "store", "streams and waits", "v2 streams"]
KINDS += ["WebSocket", "MCP", "A2A", "batch", "product routes", "idempotency keys", "run commands"]
KINDS += ["webhook", "audit entry"]
ENTRIES = (
    "SELECT tenant, user_id, roles, address, method, route, action, object_kind, object_id,"
    " decision, status, detail FROM audit_entries"
)


@contextmanager
def webhooks(tenant: str) -> Iterator[tuple[str, list[Received]]]:
    """Receive the webhooks of a tenant; yield the URL and what arrives."""
    arrived: list[Received] = []

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            text = excerpts(f"{self.headers}\n{body}")
            arrived.append(Received(tenant, "webhook", text, 200, "webhook"))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

    with answering(Handler) as url:
        yield url.replace("127.0.0.1", "localhost"), arrived


async def fuzz(
    folder: Path, seed: int, seconds: float, *, redis_url: str | None = None, servers: int = 1
) -> Evidence:
    """Let four tenants ask for each other's objects; return what they received, and the logs.

    Args:
        folder: Folder of the database and the logs.
        seconds: Duration, after each tenant has done everything once.
        redis_url: The Redis that several servers share.
    """
    with ExitStack() as stack:
        tenants, arrived = [], []
        for name, roles in TENANTS.items():
            url, received = stack.enter_context(webhooks(name))
            tenants.append(Tenant(name, roles, url))
            arrived.append(received)
        config = _project(folder)
        started: list[Running] = [
            stack.enter_context(served(folder, config, redis_url, **_environment()))
            for _ in range(servers)
        ]
        await asyncio.to_thread(_score, folder, tenants)
        async with httpx.AsyncClient(timeout=60.0) as http:
            fuzzer = Fuzzer(tenants, [each.url for each in started], http, seed)
            await asyncio.gather(*map(fuzzer.begin, tenants))
            until = time.monotonic() + seconds
            async with asyncio.TaskGroup() as group:
                for tenant in tenants * WORKERS:
                    group.create_task(fuzzer.work(tenant, until))
        entries = await asyncio.to_thread(_entries, folder)
        logs = [each.log for each in started]
    return Evidence(
        received=[
            *fuzzer.received,
            *(each for received in arrived for each in received),
            *entries,
            # Read after the servers have ended.
            *(each for path in logs for each in log_lines(path)),
        ],
        canaries={each.name: each.canary for each in tenants},
        traces={each.name: each.trace for each in tenants},
        kinds=tuple(KINDS),
    )


def _project(folder: Path) -> Path:
    """Write the configuration: the example application with some graphs of the tests."""
    ours = json.loads((ROOT / "langgraph.json").read_text())
    config = {
        "graphs": {
            **{name: f"{GRAPHS}/{name}.py:graph" for name in TEST_GRAPHS},
            **{name: f"{ROOT}/my_agent/{name}/graph.py:graph" for name in OURS},
        },
        "auth": ours["auth"],
        "sql": ours["sql"],
        "webhooks": {"url": {"allowed_domains": ["localhost"]}},
    }
    path = folder / "tenants.json"
    path.write_text(json.dumps(config))
    return path


def _environment() -> dict[str, str]:
    return {
        "APP_ENV": "production",
        "JWT_SECRET": SECRET,
        "JWT_OPERATOR_TENANTS": ",".join(TENANTS),
        "ALLOW_PRIVATE_WEBHOOKS": "true",
        "CRON_SCHEDULER_SLEEP_TIME": "1",
        "ICP_WEB_SEARCH": "false",
        "RESEARCH_WEB_SEARCH": "false",
        "LOG_LEVEL": "DEBUG",
    }


def _score(folder: Path, tenants: list[Tenant]) -> None:
    for each in tenants:
        score(databases.url(folder / "data.db"), each.name, each.canary)


def _entries(folder: Path) -> list[Received]:
    """Read all audit entries; those without a tenant count as logs, which show no tenant's data."""
    return [entry(row) for row in databases.execute(folder / "data.db", ENTRIES)]


def entry(row: Sequence[Any]) -> Received:
    """Return the text of a row of the audit log, which begins with its tenant."""
    return Received(row[0] or "", f"entry of {row[6]}", excerpts(repr(row)), 0, "audit entry")


def log_lines(path: Path) -> Iterator[Received]:
    """Return the lines of a log that show a canary or trace, and the number of all lines."""
    number = 0
    with path.open() as lines:
        for number, line in enumerate(lines, 1):
            if shown := excerpts(line):
                yield Received("", f"{path}:{number}", shown, 0, LOG)
    yield Received("", f"{path} has {number} lines", "", 0, LOG)
