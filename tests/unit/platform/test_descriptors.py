"""The limit of open descriptors, and the connections that fit into it."""

import subprocess
import sys

import pytest

from tests.support.processes import environment
from threadhold.serving import descriptors

RAISE = (
    "import resource; from threadhold.serving import descriptors; found = descriptors.raise_limit()"
)


@pytest.mark.parametrize(("soft", "hard", "raised"), [(256, 900, 900), (900, 900, 900)])
def test_soft_limit_is_raised_to_the_hard_limit(soft: int, hard: int, raised: int) -> None:
    show = f"{RAISE}; print(found, *resource.getrlimit(resource.RLIMIT_NOFILE))"
    line = f'ulimit -S -n {soft} && ulimit -H -n {hard} && exec "$@"'
    command = ["sh", "-c", line, "sh", sys.executable, "-c", show]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(raised), str(raised), str(hard)]


@pytest.mark.parametrize(
    ("wanted", "limit", "allowed"),
    [(10_000, 65_536, 10_000), (10_000, 1024, 704), (500, 1024, 500), (10_000, 100, 50)],
)
def test_connections_leave_descriptors_for_everything_else(
    wanted: int, limit: int, allowed: int
) -> None:
    assert descriptors.connections(wanted, limit, reserve=64) == allowed
