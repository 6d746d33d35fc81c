"""A pool: who has worked last works next, and nothing that was submitted is left undone."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from langgraph_runtime_sql.thread_pool import ThreadPool

PATIENCE = 60.0


@pytest.fixture
def pool() -> Iterator[ThreadPool]:
    pool = ThreadPool(3, "pool", each=3)
    yield pool
    pool.stop()


class Gate:
    """Work that sets `arrived` when it starts and runs until `leave` is set."""

    def __init__(self) -> None:
        self.arrived, self.leave = threading.Event(), threading.Event()
        self.thread = ""

    def __call__(self) -> None:
        self.thread = threading.current_thread().name
        self.arrived.set()
        self.leave.wait(PATIENCE)


def start_gates(pool: ThreadPool, count: int) -> tuple[list[Gate], list[Future[None]]]:
    """So many at work at once."""
    gates = [Gate() for _ in range(count)]
    done = [pool.submit(gate) for gate in gates]
    assert all(gate.arrived.wait(PATIENCE) for gate in gates)
    return gates, done


def wait_until_idle(pool: ThreadPool) -> None:
    """Whoever has reported is, a moment later, among those who wait."""
    deadline = threading.Event()
    while len(pool._idle) < len(pool._threads):
        deadline.wait(0.001)


def test_thread_that_worked_last_works_next(pool: ThreadPool) -> None:
    gates, done = start_gates(pool, 3)
    assert len({gate.thread for gate in gates}) == 3
    order = [gates[1], gates[2], gates[0]]
    for index, gate in enumerate(order, start=1):
        gate.leave.set()
        while len(pool._idle) < index:
            threading.Event().wait(0.001)
    again, _ = start_gates(pool, 3)
    assert [gate.thread for gate in again] == [gate.thread for gate in reversed(order)]
    for gate in again:
        gate.leave.set()
    assert all(each.result(PATIENCE) is None for each in done)


def test_sequential_work_stays_on_one_thread(pool: ThreadPool) -> None:
    names = set()
    for _ in range(20):
        gates, [done] = start_gates(pool, 1)
        gates[0].leave.set()
        done.result(PATIENCE)
        names.add(gates[0].thread)
        wait_until_idle(pool)
    assert len(names) == 1


def test_work_waits_in_order_while_all_threads_are_busy(pool: ThreadPool) -> None:
    gates, _ = start_gates(pool, 3)
    seen: list[int] = []
    later = [pool.submit(lambda n=n: seen.append(n)) for n in range(5)]  # type: ignore[misc]
    assert not any(each.done() for each in later)
    gates[0].leave.set()
    for each in later:
        each.result(PATIENCE)
    assert seen == list(range(5))
    for gate in gates:
        gate.leave.set()


def test_stop_completes_all_submitted_work(pool: ThreadPool) -> None:
    gates, done = start_gates(pool, 3)
    done.append(pool.submit(lambda: None))
    stopping = threading.Thread(target=pool.stop)
    stopping.start()
    for gate in gates:
        gate.leave.set()
    stopping.join(PATIENCE)
    assert not stopping.is_alive()
    assert all(each.done() for each in done)
    assert not any(thread.is_alive() for thread in pool._threads)
    with pytest.raises(RuntimeError, match="stopped"):
        pool.submit(lambda: None)
    pool.stop()


def test_failed_work_does_not_end_its_thread(pool: ThreadPool) -> None:
    def fail() -> None:
        raise SystemExit(5)

    for _ in range(5):
        with pytest.raises(SystemExit):
            pool.submit(fail).result(PATIENCE)
    gates, _ = start_gates(pool, 3)
    for gate in gates:
        gate.leave.set()


def test_urgent_work_does_not_wait_for_other_work() -> None:
    pool = ThreadPool(2, "pool", each=2, reserve=2)
    gates, done = start_gates(pool, 2)
    waiting = Gate()
    done.append(pool.submit(waiting))
    urgent = [Gate(), Gate()]
    done += [pool.submit(gate, urgent=True) for gate in urgent]
    assert all(gate.arrived.wait(PATIENCE) for gate in urgent)
    # Work that is not urgent never runs on the reserved threads.
    urgent[0].leave.set()
    pool.submit(lambda: None, urgent=True).result(PATIENCE)
    assert not waiting.arrived.is_set()
    gates[0].leave.set()
    assert waiting.arrived.wait(PATIENCE)
    assert len(pool._threads) == 4
    for gate in (gates[1], waiting, urgent[1]):
        gate.leave.set()
    pool.stop()
    assert all(each.done() for each in done)


def test_urgent_work_goes_first() -> None:
    pool = ThreadPool(1, "pool")
    [gate], _ = start_gates(pool, 1)
    seen: list[str] = []
    done = [
        pool.submit(lambda name=name: seen.append(name), urgent=name == "urgent")  # type: ignore[misc]
        for name in ("first", "second", "urgent")
    ]
    gate.leave.set()
    for each in done:
        each.result(PATIENCE)
    assert seen == ["urgent", "first", "second"]
    pool.stop()
