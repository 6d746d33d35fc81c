"""A crew: who has worked last works next, and nothing that was submitted is left undone."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from langgraph_runtime_sql.database.postgres.thread_pool import Crew

PATIENCE = 60.0


@pytest.fixture
def crew() -> Iterator[Crew]:
    crew = Crew(3, "crew")
    yield crew
    crew.stop()


class Gate:
    """Work that is at it from `arrived` on until `leave` is set."""

    def __init__(self) -> None:
        self.arrived, self.leave = threading.Event(), threading.Event()
        self.thread = ""

    def __call__(self) -> None:
        self.thread = threading.current_thread().name
        self.arrived.set()
        self.leave.wait(PATIENCE)


def begun(crew: Crew, count: int) -> tuple[list[Gate], list[Future[None]]]:
    """So many at work at once."""
    gates = [Gate() for _ in range(count)]
    done = [crew.submit(gate) for gate in gates]
    assert all(gate.arrived.wait(PATIENCE) for gate in gates)
    return gates, done


def rested(crew: Crew) -> None:
    """Whoever has reported is, a moment later, among those who wait."""
    deadline = threading.Event()
    while len(crew._idle) < len(crew._threads):
        deadline.wait(0.001)


def test_who_has_worked_last_works_next(crew: Crew) -> None:
    gates, done = begun(crew, 3)
    assert len({gate.thread for gate in gates}) == 3
    order = [gates[1], gates[2], gates[0]]
    for index, gate in enumerate(order, start=1):
        gate.leave.set()
        while len(crew._idle) < index:
            threading.Event().wait(0.001)
    again, _ = begun(crew, 3)
    assert [gate.thread for gate in again] == [gate.thread for gate in reversed(order)]
    for gate in again:
        gate.leave.set()
    assert all(each.result(PATIENCE) is None for each in done)


def test_work_that_comes_one_by_one_is_one_threads(crew: Crew) -> None:
    names = set()
    for _ in range(20):
        gates, [done] = begun(crew, 1)
        gates[0].leave.set()
        done.result(PATIENCE)
        names.add(gates[0].thread)
        rested(crew)
    assert len(names) == 1


def test_what_finds_nobody_waits_its_turn(crew: Crew) -> None:
    gates, _ = begun(crew, 3)
    seen: list[int] = []
    later = [crew.submit(lambda n=n: seen.append(n)) for n in range(5)]  # type: ignore[misc]
    assert not any(each.done() for each in later)
    gates[0].leave.set()
    for each in later:
        each.result(PATIENCE)
    assert seen == list(range(5))
    for gate in gates:
        gate.leave.set()


def test_what_was_submitted_is_done_before_the_end(crew: Crew) -> None:
    gates, done = begun(crew, 3)
    done.append(crew.submit(lambda: None))
    stopping = threading.Thread(target=crew.stop)
    stopping.start()
    for gate in gates:
        gate.leave.set()
    stopping.join(PATIENCE)
    assert not stopping.is_alive()
    assert all(each.done() for each in done)
    assert not any(thread.is_alive() for thread in crew._threads)
    with pytest.raises(RuntimeError, match="stopped"):
        crew.submit(lambda: None)
    crew.stop()


def test_work_that_fails_costs_no_thread(crew: Crew) -> None:
    def fail() -> None:
        raise SystemExit(5)

    for _ in range(5):
        with pytest.raises(SystemExit):
            crew.submit(fail).result(PATIENCE)
    gates, _ = begun(crew, 3)
    for gate in gates:
        gate.leave.set()


def test_what_is_urgent_waits_for_nothing_that_is_not() -> None:
    crew = Crew(2, "crew", reserve=2)
    gates, done = begun(crew, 2)
    waiting = Gate()
    done.append(crew.submit(waiting))
    urgent = [Gate(), Gate()]
    done += [crew.submit(gate, urgent=True) for gate in urgent]
    assert all(gate.arrived.wait(PATIENCE) for gate in urgent)
    # The reserve is not for what is not, however much of it there is.
    urgent[0].leave.set()
    crew.submit(lambda: None, urgent=True).result(PATIENCE)
    assert not waiting.arrived.is_set()
    gates[0].leave.set()
    assert waiting.arrived.wait(PATIENCE)
    assert len(crew._threads) == 4
    for gate in (gates[1], waiting, urgent[1]):
        gate.leave.set()
    crew.stop()
    assert all(each.done() for each in done)


def test_what_is_urgent_goes_first() -> None:
    crew = Crew(1, "crew", reserve=0)
    [gate], _ = begun(crew, 1)
    seen: list[str] = []
    done = [
        crew.submit(lambda name=name: seen.append(name), urgent=name == "urgent")  # type: ignore[misc]
        for name in ("first", "second", "urgent")
    ]
    gate.leave.set()
    for each in done:
        each.result(PATIENCE)
    assert seen == ["urgent", "first", "second"]
    crew.stop()
