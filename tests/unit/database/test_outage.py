"""An outage says why once a minute, and ends waits and streams after half a minute."""

import pytest
from structlog.testing import capture_logs

from langgraph_runtime_sql.database import outage as module
from langgraph_runtime_sql.database.outage import Outage
from langgraph_runtime_sql.errors import DatabaseOutage, DatabaseState


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "elapsed", made)
    return made


@pytest.fixture
def outage(clock: Clock) -> Outage:
    made = Outage()
    made.is_watched = True
    return made


def refuse(outage: Outage, asked_at: float | None = None) -> None:
    outage.note(DatabaseOutage(DatabaseState.UNREACHABLE, "too many clients"), asked_at)


def test_failed_operations_leave_one_line_a_minute(outage: Outage, clock: Clock) -> None:
    with capture_logs() as lines:
        for _ in range(150):
            refuse(outage)
            clock.seconds += 1
        outage.end()
    assert [each["action"] for each in lines] == [*["database_outage"] * 3, "database_outage_over"]
    assert {each["reason"] for each in lines[:3]} == {"too many clients"}


def test_an_outage_that_goes_on_and_off_is_one(outage: Outage, clock: Clock) -> None:
    """A probe finds a connection, and the operations that wait find none."""
    began = clock.seconds
    with capture_logs() as lines:
        for _ in range(8):
            refuse(outage, clock.seconds)
            clock.seconds += 10
            outage.end()
        refuse(outage)
    assert [each["action"] for each in lines] == [
        *("database_outage", "database_outage_over") * 2,
    ]
    with pytest.raises(DatabaseOutage, match="too many clients"):
        outage.stream_seconds(began)


def test_time_counts_from_the_first_operation_that_got_no_connection(
    outage: Outage, clock: Clock
) -> None:
    asked_at = clock.seconds
    clock.seconds += 15
    refuse(outage, asked_at)
    assert outage.stream_seconds(asked_at) == module.STREAM_SECONDS - 15
    # A client that asks again gets its time, too.
    assert outage.stream_seconds(clock.seconds) == module.STREAM_SECONDS
