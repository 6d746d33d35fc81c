"""What every kind of test shares: the event loop and a seed that is printed."""

import os
import random

import pytest

pytest_plugins = ["tests.support.openai_server", "tests.support.databases"]

SEED = int(os.environ.get("THREADHOLD_SEED") or random.SystemRandom().randrange(2**32))


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
