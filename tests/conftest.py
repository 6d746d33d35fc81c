"""What every kind of test shares: the event loop and a seed that is printed."""

import functools
import os
import random
import ssl

import httpx
import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says more of the machine than of the code.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")

pytest_plugins = [
    "tests.support.databases",
    "tests.support.openai_server",
    "tests.support.processes",
    "tests.support.products",
    "tests.support.redis",
]

SEED = int(os.environ.get("THREADHOLD_SEED") or random.SystemRandom().randrange(2**32))
# The processes that tests are spread over share it.
os.environ["THREADHOLD_SEED"] = str(SEED)

# Every client that a test opens would read all the world's certificates anew, which takes longer
# than most tests, and hardly a server here speaks TLS.
ssl.create_default_context = functools.cache(ssl.create_default_context)  # type: ignore[assignment]


# Seconds; on a machine that is busy a good answer may take longer than the five that httpx waits.
for _wait in ("connect", "read", "write", "pool"):
    setattr(httpx._config.DEFAULT_TIMEOUT_CONFIG, _wait, 60.0)


def pytest_report_header() -> str:
    return f"random seed: {SEED} (repeat with THREADHOLD_SEED={SEED})"


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """asyncio only: langgraph_api runs on nothing else. Session scope, so that fixtures of
    every scope may be `async def`."""
    return "asyncio"


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Random numbers that depend on the printed seed and the test alone, not on what ran before."""
    return random.Random(f"{SEED}:{request.node.nodeid}")
