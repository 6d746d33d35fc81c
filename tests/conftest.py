"""What every kind of test shares: plugins, the event loop and patience."""

import functools
import ssl

import httpx
import pytest

pytest_plugins = [
    "tests.support.databases",
    "tests.support.logs",
    "tests.support.openai_server",
    "tests.support.processes",
    "tests.support.products",
    "tests.support.redis",
    "tests.support.seeds",
]

# Every client that a test opens would read all the world's certificates anew, which takes longer
# than most tests, and hardly a server here speaks TLS.
ssl.create_default_context = functools.cache(ssl.create_default_context)  # type: ignore[assignment]


# Seconds; on a machine that is busy a good answer may take longer than the five that httpx waits.
for _wait in ("connect", "read", "write", "pool"):
    setattr(httpx._config.DEFAULT_TIMEOUT_CONFIG, _wait, 60.0)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """asyncio only: langgraph_api runs on nothing else. Session scope, so that fixtures of
    every scope may be `async def`."""
    return "asyncio"
