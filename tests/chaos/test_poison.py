"""A run that kills its process fails after three attempts and harms no other run."""

import pytest

from tests.chaos.victim import Victim, lines

pytestmark = pytest.mark.usefixtures("each_database")

STATUS = 9


def survive(victim: Victim) -> None:
    """Let the run kill the process, and start it again; the next kill may come early."""
    (victim.folder / "now").touch()
    assert victim.wait() == STATUS
    victim.begin()


def poison(victim: Victim, thread: str, **more: str) -> str:
    """Create a run that kills its process as soon as the test calls `survive`."""
    return victim.run(
        thread, "failing", {"exit": STATUS, "until": str(victim.folder / "now"), **more}
    )


def test_run_that_kills_its_process_three_times_fails(victim: Victim) -> None:
    victim.start()
    thread, record = victim.thread(), victim.folder / "attempts"
    run = poison(victim, thread, record=str(record))
    # The thread stays usable: the run that waits behind is executed.
    behind = victim.run(thread, "echo", {"value": 1}, multitask_strategy="enqueue")
    for _ in range(3):
        survive(victim)
    victim.await_(victim.answers)
    assert victim.ended(thread, run) == "error"
    assert len(lines(record)) == 3
    assert "Run exceeded max attempts" in victim.log()
    assert victim.ended(thread, behind) == "success"
    assert victim.findings() == []


def test_thread_of_a_poisoned_run_has_its_error(victim: Victim) -> None:
    victim.start()
    thread = victim.thread()
    run = poison(victim, thread)
    for _ in range(3):
        survive(victim)
    victim.await_(victim.answers)
    assert victim.ended(thread, run) == "error"
    shown = victim.get(f"/threads/{thread}")
    assert shown["status"] == "error"
    assert "exceeded max attempts (3)" in shown["error"]["message"]


def test_runs_beside_a_poisoned_run_succeed(victim: Victim) -> None:
    """The other runs die with it twice; its third attempt runs alone."""
    victim.start()
    beside = {}
    for name in ("first", "second"):
        thread = victim.thread()
        asked = {"seconds": 0.5, "record": str(victim.folder / name)}
        beside[victim.run(thread, "sleeper", asked)] = thread
        victim.await_(lambda name=name: lines(victim.folder / name))
    thread = victim.thread()
    deadly = poison(victim, thread)
    for _ in range(3):
        survive(victim)
    victim.await_(victim.answers)
    assert victim.ended(thread, deadly) == "error"
    for run, its_thread in beside.items():
        assert victim.ended(its_thread, run) == "success"
    assert victim.findings() == []


def test_run_that_killed_its_process_once_continues(victim: Victim) -> None:
    victim.start()
    thread, record = victim.thread(), victim.folder / "steps"
    once = str(victim.folder / "once")
    asked = {"count": 6, "exit_at": 3, "once": once, "record": str(record)}
    run = victim.run(thread, "steps", asked, durability="sync")
    assert victim.wait() == 70
    victim.start()
    assert victim.ended(thread, run) == "success"
    assert [line.split()[1] for line in lines(record)] == list("0123345")
