"""Every statement of a writer fails once: the database stays consistent and every run ends.

The other statements are in `test_failing_reads_and_commits.py`: a file runs in one process, and the
test here takes as long as all the others together.
"""

import random
from pathlib import Path

import pytest

from tests.chaos import failing_lives
from tests.chaos.failing_lives import fail_each
from tests.chaos.faults import MESSAGES, Faults
from tests.support import databases

pytestmark = pytest.mark.usefixtures("each_database")

settings, quick, faulty, path = (
    failing_lives.settings,
    failing_lives.quick,
    failing_lives.faulty,
    failing_lives.path,
)

MODES = ("fails", "aborts")

# A life takes several times as long on Postgres as on SQLite. On Postgres each life therefore has
# many failures, this many statements apart, until each statement has failed once.
PERIOD = 40


@pytest.mark.timeout(900)
async def test_every_statement_may_fail(path: Path, rng: random.Random) -> None:
    faults, offset = Faults(), rng.randrange(4)
    period = PERIOD if databases.kind() == "postgresql" else None
    ways = [(mode, burst) for mode in MODES for burst in (1, 4)]

    def arm(number: int) -> None:
        mode, burst = ways[(number + offset) % len(ways)]
        faults.arm(number, mode, rng.choice(MESSAGES), burst=burst, period=period)

    number, kinds = await fail_each(path, faults, arm, until=period)
    assert number == period or number > 100
    # SQLite uses a savepoint for each write of a group.
    savepoints = {"SAVEPOINT"} if databases.kind() == "sqlite" else set()
    assert {"BEGIN", "INSERT", "UPDATE", "SELECT", "COMMIT", *savepoints} <= kinds
