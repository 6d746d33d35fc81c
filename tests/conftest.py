"""Configure every test: plugins, the event loop, certificates and timeouts of clients."""

import functools
import os
import ssl
import sys
from collections.abc import Iterator

import httpx
import pytest

pytest_plugins = [
    "tests.support.reaper",
    "tests.support.databases",
    "tests.support.javascript",
    "tests.support.logs",
    "tests.support.openai_server",
    "tests.support.order",
    "tests.support.processes",
    "tests.support.browser",
    "tests.support.products",
    "tests.support.redis",
    "tests.support.runtime",
    "tests.support.seeds",
]

# Each client would read all certificates of the system again. That takes longer than most tests,
# and few servers here use TLS.
ssl.create_default_context = functools.cache(ssl.create_default_context)  # type: ignore[assignment]


# Seconds; on a busy machine, a correct answer may take longer than httpx's default of five seconds.
for _wait in ("connect", "read", "write", "pool"):
    setattr(httpx._config.DEFAULT_TIMEOUT_CONFIG, _wait, 60.0)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Use asyncio only, because langgraph_api requires it.

    The session scope allows `async def` fixtures of every scope.
    """
    return "asyncio"


@pytest.fixture(scope="module", autouse=True)
def _own_authentication() -> Iterator[None]:
    """Fail a module that leaves `langgraph_api` with a project's authentication to later modules."""
    yield
    loaded = getattr(sys.modules.get("langgraph_api.config"), "LANGGRAPH_AUTH", None)
    assert not loaded and "LANGGRAPH_AUTH" not in os.environ
