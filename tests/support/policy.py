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
    """A server in `folder` with the policy for its graphs but `interrupt`."""
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
    """A token that the server accepts for an hour."""
    claims = {"sub": user, "tenant_id": tenant, "roles": roles, "exp": int(time.time()) + 3600}
    return jwt.encode(claims, SECRET, algorithm="HS256")


def headers(tenant: str, user: str, *roles: str) -> dict[str, str]:
    """The headers of a user's requests."""
    return {"authorization": f"Bearer {token(tenant, user, *roles)}"}


def somebody() -> str:
    """A user whom no other test knows."""
    return f"user-{next(_numbers)}-{uuid4().hex[:8]}"


class Member(Api):
    """A user of a tenant.

    Attributes:
        name: The user's id.
        headers: What authenticates the user.
    """

    def __init__(self, http: httpx.AsyncClient, name: str) -> None:
        super().__init__(http)
        self.name = name
        self.headers = dict(http.headers)

    async def open(self, website: str = "acme.com", agent: str = "echo", **more: Any) -> str:
        """A new thread of a policy agent."""
        return await self.thread(agent=agent, website=website, **more)

    async def metadata(self, thread: str) -> dict[str, Any]:
        """A thread's metadata."""
        found: dict[str, Any] = (await self.get(f"/threads/{thread}"))["metadata"]
        return found

    async def standing(self, thread: str) -> str:
        """A thread's status under the policy."""
        return str((await self.metadata(thread))["status"])

    async def standings(self, *threads: str) -> list[str]:
        """The same of several."""
        return [await self.standing(each) for each in threads]

    async def found(self, path: str = "/threads/search", **body: Any) -> Any:
        """What a search or count answers."""
        return await self.post(path, {"limit": 100, **body} if path.endswith("search") else body)


@asynccontextmanager
async def member(
    server: Running, name: str | None = None, tenant: str = "t1", *roles: str
) -> AsyncIterator[Member]:
    """A client of a user's, of somebody new by default."""
    name = name or somebody()
    async with httpx.AsyncClient(
        base_url=server.url,
        timeout=PATIENCE,
        headers=headers(tenant, name, *roles),
        limits=httpx.Limits(max_connections=200),
    ) as http:
        yield Member(http, name)


# Fixtures: a test module that wants them says `server, ana = policy.server, policy.ana`.


@pytest.fixture(scope="module")
def server(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with the thread policy, for all tests of a module."""
    with policy_server(tmp_path_factory.mktemp("policy")) as started:
        yield started


@pytest.fixture
async def ana(server: Running) -> AsyncIterator[Member]:
    """Somebody new, of tenant t1."""
    async with member(server) as client:
        yield client
