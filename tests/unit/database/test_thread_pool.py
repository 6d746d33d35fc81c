"""The thread pool: the thread that worked last works next, and all submitted work is done."""

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
    """Work that sets `arrived` when it starts and runs until `leave` is set."""

    def __init__(self) -> None:
        self.arrived, self.leave = threading.Event(), threading.Event()
        self.thread = ""

    def __call__(self) -> None:
        self.thread = threading.current_thread().name
        self.arrived.set()
        self.leave.wait(PATIENCE)


def start_gates(crew: Crew, count: int) -> tuple[list[Gate], list[Future[None]]]:
    """Start `count` gates and wait until all of them run at once."""
    gates = [Gate() for _ in range(count)]
    done = [crew.submit(gate) for gate in gates]
    assert all(gate.arrived.wait(PATIENCE) for gate in gates)
    return gates, done


def wait_until_idle(crew: Crew) -> None:
    """Wait until every thread is idle again: a thread reports its result shortly before."""
    deadline = threading.Event()
    while len(crew._idle) < len(crew._threads):
        deadline.wait(0.001)


def test_thread_that_worked_last_works_next(crew: Crew) -> None:
    gates, done = start_gates(crew, 3)
    assert len({gate.thread for gate in gates}) == 3
    order = [gates[1], gates[2], gates[0]]
    for index, gate in enumerate(order, start=1):
        gate.leave.set()
        while len(crew._idle) < index:
            threading.Event().wait(0.001)
    again, _ = start_gates(crew, 3)
    assert [gate.thread for gate in again] == [gate.thread for gate in reversed(order)]
    for gate in again:
        gate.leave.set()
    assert all(each.result(PATIENCE) is None for each in done)


def test_sequential_work_stays_on_one_thread(crew: Crew) -> None:
    names = set()
    for _ in range(20):
        gates, [done] = start_gates(crew, 1)
        gates[0].leave.set()
        done.result(PATIENCE)
        names.add(gates[0].thread)
        wait_until_idle(crew)
    assert len(names) == 1


def test_work_waits_in_order_while_all_threads_are_busy(crew: Crew) -> None:
    gates, _ = start_gates(crew, 3)
    seen: list[int] = []
    later = [crew.submit(lambda n=n: seen.append(n)) for n in range(5)]  # type: ignore[misc]
    assert not any(each.done() for each in later)
    gates[0].leave.set()
    for each in later:
        each.result(PATIENCE)
    assert seen == list(range(5))
    for gate in gates:
        gate.leave.set()


def test_stop_completes_all_submitted_work(crew: Crew) -> None:
    gates, done = start_gates(crew, 3)
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


def test_failed_work_does_not_end_its_thread(crew: Crew) -> None:
    def fail() -> None:
        raise SystemExit(5)

    for _ in range(5):
        with pytest.raises(SystemExit):
            crew.submit(fail).result(PATIENCE)
    gates, _ = start_gates(crew, 3)
    for gate in gates:
        gate.leave.set()


def test_urgent_work_does_not_wait_for_other_work() -> None:
    crew = Crew(2, "crew", reserve=2)
    gates, done = start_gates(crew, 2)
    waiting = Gate()
    done.append(crew.submit(waiting))
    urgent = [Gate(), Gate()]
    done += [crew.submit(gate, urgent=True) for gate in urgent]
    assert all(gate.arrived.wait(PATIENCE) for gate in urgent)
    # Work that is not urgent never runs on the reserved threads.
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


def test_urgent_work_goes_first() -> None:
    crew = Crew(1, "crew", reserve=0)
    [gate], _ = start_gates(crew, 1)
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
