"""Derive random numbers from a seed and the test alone. The default seed is constant.

So a test's result depends only on the code. `THREADHOLD_SEED` sets another seed, to search for more
defects.
"""

import os
import random

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, seed, settings
from hypothesis.internal.conjecture import providers

SEED = int(os.environ.get("THREADHOLD_SEED") or 1)

# The duration of an example depends on the machine more than on the code.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")
# Hypothesis also tries constants of loaded modules, and these depend on earlier tests.
providers.is_local_module_file = lambda path: False


def pytest_report_header() -> str:
    return f"random seed: {SEED} (another one with THREADHOLD_SEED=...)"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_hypothesis_test(test := getattr(item, "obj", None)):
            seed(SEED)(test)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Give random numbers that depend on the seed and the test alone."""
    return random.Random(f"{SEED}:{request.node.nodeid}")
