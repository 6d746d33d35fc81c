"""What is drawn at random depends on a seed and the test alone, and the seed is the same every day.

So a change is judged by what it does, and not by what was drawn meanwhile. `THREADHOLD_SEED`
draws otherwise: to look for more.
"""

import os
import random

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, seed, settings
from hypothesis.internal.conjecture import providers

SEED = int(os.environ.get("THREADHOLD_SEED") or 1)

# How long an example takes says more of the machine than of the code.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")
# It also tries what it reads in modules, and which are loaded depends on what ran before.
providers.is_local_module_file = lambda path: False


def pytest_report_header() -> str:
    return f"random seed: {SEED} (another one with THREADHOLD_SEED=...)"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_hypothesis_test(test := getattr(item, "obj", None)):
            seed(SEED)(test)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Random numbers that depend on the seed and the test alone, not on what ran before."""
    return random.Random(f"{SEED}:{request.node.nodeid}")
