"""A server with the thread policy on test graphs, and users with tokens."""

import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import jwt
import pytest

from tests.support import databases
from tests.support.processes import (
    GRAPHS,
    Running,
    environment,
    free_port,
    running,
    threadhold,
)
from tests.support.served import PATIENCE, Api

RUN = {"assistant_id": "echo", "input": {"value": "a"}}
ACME = {"agent": "echo", "website": "acme.com"}
NOWHERE = "01a20000-0000-7000-8000-00000000dead"
SECRET = "a secret that only these tests know, long enough"
ORIGIN = "https://app.example"
_numbers: Iterator[int] = count()


@contextmanager
def policy_server(folder: Path, *, prefix: str | None = None, **env: str) -> Iterator[Running]:
    """Serve test graphs in `folder` with the thread policy for all of them except `interrupt`.

    Args:
        prefix: The path at which the API is mounted.
    """
    config = folder / "langgraph.json"
    graphs = {
        name: f"{GRAPHS}/{name}.py:graph" for name in ("echo", "sleeper", "interrupt", "loopback")
    }
    config.write_text(
        json.dumps(
            {
                "graphs": graphs,
                "http": {"mount_prefix": prefix},
                "auth": {"path": "hooks.auth:auth"},
                "sql": {"hooks": "hooks.threads:policy", "tenant_key": "tenant_id"},
            }
        )
    )
    env = {
        "THREAD_POLICY_AGENTS": "echo,sleeper,loopback",
        "JWT_SECRET": SECRET,
        "CORS_ALLOW_ORIGINS": ORIGIN,
        "CRON_SCHEDULER_SLEEP_TIME": "1",
        **env,
    }
    port = free_port()
    command = threadhold("serve", "--config", config, "--port", str(port))
    command += ["--database-url", databases.url(folder / "data.db")]
    with running(command, port, folder, environment(**env), ready="/health") as started:
        yield started


def token(tenant: str, user: str, *roles: str) -> str:
    """Return a token that is valid for an hour."""
    claims = {"sub": user, "tenant_id": tenant, "roles": roles, "exp": int(time.time()) + 3600}
    return jwt.encode(claims, SECRET, algorithm="HS256")


def headers(tenant: str, user: str, *roles: str) -> dict[str, str]:
    """Return the headers of a user's requests."""
    return {"authorization": f"Bearer {token(tenant, user, *roles)}"}


def new_user_name() -> str:
    """Return a user name that no other test uses."""
    return f"user-{next(_numbers)}-{uuid4().hex[:8]}"


class Member(Api):
    """A user of a tenant.

    Attributes:
        name: The user's id.
        headers: The headers that authenticate the user.
    """

    def __init__(self, http: httpx.AsyncClient, name: str) -> None:
        super().__init__(http)
        self.name = name
        self.headers = dict(http.headers)

    async def open(self, website: str = "acme.com", agent: str = "echo", **more: Any) -> str:
        """Create a thread of a policy agent and return its id."""
        return await self.thread(agent=agent, website=website, **more)

    async def metadata(self, thread: str) -> dict[str, Any]:
        """Return a thread's metadata."""
        found: dict[str, Any] = (await self.get(f"/threads/{thread}"))["metadata"]
        return found

    async def policy_status(self, thread: str) -> str:
        """Return a thread's status under the policy."""
        return str((await self.metadata(thread))["status"])

    async def policy_statuses(self, *threads: str) -> list[str]:
        """Return the statuses of several threads under the policy."""
        return [await self.policy_status(each) for each in threads]

    async def found(self, path: str = "/threads/search", **body: Any) -> Any:
        """Return the answer of a search or count."""
        return await self.post(path, {"limit": 100, **body} if path.endswith("search") else body)


@asynccontextmanager
async def member(
    server: Running, name: str | None = None, tenant: str = "t1", *roles: str
) -> AsyncIterator[Member]:
    """Open a client of a user; by default a new user."""
    name = name or new_user_name()
    async with httpx.AsyncClient(
        base_url=server.url,
        timeout=PATIENCE,
        headers=headers(tenant, name, *roles),
        limits=httpx.Limits(max_connections=200),
    ) as http:
        yield Member(http, name)


# A test module imports these fixtures with `server, ana = policy.server, policy.ana`.


@pytest.fixture(scope="module")
def server(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Start a server with the thread policy for all tests of a module."""
    with policy_server(tmp_path_factory.mktemp("policy")) as started:
        yield started


@pytest.fixture
async def ana(server: Running) -> AsyncIterator[Member]:
    """Open a client of a new user of tenant t1."""
    async with member(server) as client:
        yield client
