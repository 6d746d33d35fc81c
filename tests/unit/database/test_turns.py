"""Threads take turns between their waits for Postgres, and none depends on its turn."""

import threading
from collections.abc import Generator
from typing import Any

import pytest

from langgraph_runtime_sql.database.postgres import turns
from langgraph_runtime_sql.database.postgres.turns import InterpreterTurns

SOON = 30.0


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a turn as long as it takes."""
    monkeypatch.setattr(turns, "PATIENCE_SECONDS", SOON)


def has_turn(given: InterpreterTurns) -> bool:
    """Return whether some thread has the turn."""
    return given._lock.locked()


def steps() -> Generator[Any, Any, list[Any]]:
    """Wait twice, as the driver's commands do, and return what the waits have given."""
    return [(yield "read"), (yield "write")]


def waited(
    work: Generator[Any, Any, Any], given: InterpreterTurns
) -> tuple[list[tuple[Any, bool]], Any]:
    """Do the work as the driver does; return its waits, each with whether it has a turn."""
    found, ready = [], None
    while True:
        try:
            awaited = work.send(ready)
        except StopIteration as end:
            return found, end.value
        found.append((awaited, has_turn(given)))
        ready = f"ready to {awaited}"


def test_turn_is_given_away_at_each_wait() -> None:
    given = InterpreterTurns()
    with given.turn():
        waits, result = waited(given.between_waits(steps()), given)
        assert has_turn(given)
    assert waits == [("read", False), ("write", False)]
    assert result == ["ready to read", "ready to write"]
    assert not has_turn(given)


def test_wait_outside_of_a_turn_takes_none() -> None:
    given = InterpreterTurns()
    assert waited(given.between_waits(steps()), given)[0] == [("read", False), ("write", False)]
    assert not has_turn(given)


@pytest.mark.usefixtures("patient")
def test_another_thread_has_its_turn_during_a_wait() -> None:
    given, order = InterpreterTurns(), list[str]()
    may_work = threading.Event()

    def other() -> None:
        may_work.wait(SOON)
        with given.turn():
            order.append("other")

    def work() -> Generator[Any, Any, None]:
        order.append("first")
        yield "read"
        order.append("last")

    thread = threading.Thread(target=other)
    thread.start()
    with given.turn():
        waiting = given.between_waits(work())
        next(waiting)
        may_work.set()
        thread.join(SOON)
        with pytest.raises(StopIteration):
            waiting.send("ready")
    assert order == ["first", "other", "last"]


def test_thread_that_does_not_get_its_turn_goes_on() -> None:
    given, done = InterpreterTurns(), threading.Event()

    def other() -> None:
        with given.turn():
            waited(given.between_waits(steps()), given)
        done.set()

    with given.turn():
        thread = threading.Thread(target=other)
        thread.start()
        assert done.wait(SOON)
        # The other thread has not given away a turn that it did not have.
        assert has_turn(given)
        thread.join()
    assert not has_turn(given)


@pytest.mark.parametrize("at", ["work", "wait"])
def test_turn_ends_with_an_error(at: str) -> None:
    given = InterpreterTurns()

    def work() -> Generator[Any, Any, None]:
        yield "read"
        raise ZeroDivisionError

    waiting = given.between_waits(work())
    with pytest.raises(ZeroDivisionError), given.turn():
        next(waiting)
        if at == "work":
            waiting.send("ready")
        waiting.throw(ZeroDivisionError)
    assert not has_turn(given)
