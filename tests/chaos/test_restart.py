"""A restart continues everything that `kill -9` or SIGTERM interrupted."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.victim import Victim, lines
from tests.support import databases
from tests.support.webhooks import receiver

pytestmark = pytest.mark.usefixtures("each_database")

# Seconds; a lease of this length does not end during a test.
NEVER = 600.0


def steps(victim: Victim, name: str) -> list[int]:
    return [int(line.split()[1]) for line in lines(victim.folder / name)]


def start_steps(
    victim: Victim, *, count: int = 10, name: str = "steps", **body: Any
) -> tuple[str, str]:
    """Start a run of `steps` on a new thread and wait until its third step has begun."""
    allow(victim, 2)
    asked = {"count": count, "record": str(victim.folder / name), "gate": str(gate(victim))}
    thread = victim.thread()
    # With `sync` each step begins only when the previous one is stored.
    run = victim.run(thread, "steps", asked, durability="sync", **body)
    victim.await_(lambda: len(steps(victim, name)) >= 3)
    return thread, run


def gate(victim: Victim) -> Path:
    return victim.folder / "gate"


def allow(victim: Victim, count: int) -> None:
    """Let every run take at most `count` steps."""
    gate(victim).write_text(str(count))


def assert_resumed(victim: Victim, thread: str, *, count: int, cuts: int, more: int = 0) -> None:
    """Check that every step was taken in order, and only interrupted steps were repeated."""
    taken = steps(victim, "steps")
    victim.await_(lambda: victim.get(f"/threads/{thread}")["status"] == "idle")
    assert sorted(set(taken)) == list(range(count))
    assert taken == sorted(taken)
    assert len(taken) <= count + cuts
    state = victim.get(f"/threads/{thread}/state")
    assert state["values"]["done"] == [*range(count), *range(more)]
    assert state["next"] == []


def test_killed_run_continues_from_its_last_checkpoint_at_once(victim: Victim) -> None:
    victim.start(lease=NEVER)
    thread, run = start_steps(victim)
    other = {"count": 2, "record": str(victim.folder / "queued")}
    queued = victim.run(thread, "steps", other, multitask_strategy="enqueue")
    late = victim.run(victim.thread(), "echo", {}, after_seconds=1)
    victim.kill()
    taken = len(steps(victim, "steps"))
    # The run must not wait for a sweep or for the end of its lease: both take minutes here.
    victim.start(lease=NEVER)
    victim.await_(lambda: len(steps(victim, "steps")) > taken)
    allow(victim, 10)
    assert victim.ended(thread, run) == "success"
    assert_resumed(victim, thread, count=10, cuts=1, more=2)
    assert victim.ended(thread, queued) == "success"
    [(late_thread,)] = victim.sql("SELECT thread_id FROM runs WHERE run_id = ?", late)
    assert victim.ended(late_thread, late) == "success"
    assert victim.findings() == []


def test_client_joining_after_the_restart_gets_the_end(victim: Victim) -> None:
    victim.start()
    thread, run = start_steps(victim)
    victim.kill()
    victim.start()
    with victim.client.stream("GET", f"/threads/{thread}/runs/{run}/stream") as answer:
        allow(victim, 10)
        text = "".join(answer.iter_text())
    assert "event: error" not in text
    assert victim.get(f"/threads/{thread}/runs/{run}/join")["done"] == list(range(10))


def test_shutdown_does_not_count_as_an_attempt(victim: Victim) -> None:
    victim.start()
    thread, run = start_steps(victim)
    for number in range(4):
        assert victim.terminate() in (0, -15)
        assert victim.sql("SELECT status, attempt FROM runs") == [("pending", 0)]
        assert victim.findings() == []
        victim.start()
        allow(victim, 3 + number)
        victim.await_(lambda n=number: steps(victim, "steps")[-1] == 3 + n)
    allow(victim, 10)
    assert victim.ended(thread, run) == "success"
    assert_resumed(victim, thread, count=10, cuts=4)


def test_cancel_acknowledged_before_the_crash_is_kept(victim: Victim) -> None:
    """The cancel is committed, but the worker dies before it receives it."""
    victim.start()
    kept, rolled_back = start_steps(victim, name="kept"), start_steps(victim, name="rolled_back")
    victim.kill()
    for (_, run), action in ((kept, "interrupt"), (rolled_back, "rollback")):
        victim.sql("UPDATE runs SET cancel_action = ? WHERE run_id = ?", action, run)
    taken = steps(victim, "kept"), steps(victim, "rolled_back")
    victim.start()
    assert victim.status(*kept) == "interrupted"
    assert victim.client.get(f"/threads/{rolled_back[0]}/runs/{rolled_back[1]}").status_code == 404
    assert victim.get(f"/threads/{rolled_back[0]}/state")["values"] == {}
    for thread in (kept[0], rolled_back[0]):
        again = victim.run(thread, "echo", {"value": 1})
        assert victim.ended(thread, again) == "success"
    assert (steps(victim, "kept"), steps(victim, "rolled_back")) == taken
    assert victim.findings() == []


def test_interrupted_threads_stay_resumable(victim: Victim) -> None:
    victim.start()
    thread = victim.thread()
    run = victim.run(thread, "interrupt", {"questions": ["a?", "b?"]})
    assert victim.ended(thread, run) == "success"
    before = victim.get(f"/threads/{thread}")
    assert before["status"] == "interrupted"
    victim.kill()
    victim.start()
    assert victim.get(f"/threads/{thread}") == before
    for answer in ("yes", "no"):
        command = {"resume": answer}
        run = victim.run(thread, "interrupt", None, command=command)
        assert victim.ended(thread, run) == "success"
    assert victim.get(f"/threads/{thread}/state")["values"]["summary"] == "yes, no"
    assert victim.get(f"/threads/{thread}")["status"] == "idle"


def test_killed_resuming_run_uses_its_answer_after_the_restart(victim: Victim) -> None:
    """The resuming run is killed right after its acknowledgement."""
    victim.start()
    threads = [victim.thread() for _ in range(4)]
    for thread in threads:
        assert victim.ended(thread, victim.run(thread, "interrupt", {})) == "success"
    runs = [victim.run(thread, "interrupt", None, command={"resume": "yes"}) for thread in threads]
    victim.kill()
    victim.start()
    for thread, run in zip(threads, runs, strict=True):
        assert victim.ended(thread, run) == "success"
        assert victim.get(f"/threads/{thread}/state")["values"]["summary"] == "yes"
        assert victim.get(f"/threads/{thread}")["status"] == "idle"


def test_missed_cron_fires_once_after_a_restart(victim: Victim) -> None:
    victim.start()
    body = {"assistant_id": "echo", "schedule": "0 3 1 1 *", "input": {"value": 1}}
    cron = victim.post("/runs/crons", {**body, "on_run_completed": "keep"})["cron_id"]
    victim.kill()
    # The cron was due while the server was down.
    [(date,)] = victim.sql("SELECT next_run_date FROM crons")
    victim.sql("UPDATE crons SET next_run_date = ?", databases.date(time.time() - 1))
    victim.start()
    victim.await_(lambda: victim.sql("SELECT * FROM runs"))
    [(thread, run)] = victim.sql("SELECT thread_id, run_id FROM runs")
    shown = victim.get(f"/threads/{thread}/runs/{run}")
    assert shown["kwargs"]["config"]["configurable"]["cron_id"] == cron
    assert victim.ended(thread, run) == "success"
    assert victim.sql("SELECT next_run_date FROM crons") == [(date,)]
    assert len(victim.sql("SELECT * FROM runs")) == 1


def test_webhook_of_a_killed_run_is_called_at_its_end(victim: Victim) -> None:
    victim.start()
    with receiver() as webhooks:
        thread, run = start_steps(victim, webhook=f"{webhooks.url}/hook")
        victim.kill()
        assert webhooks.received("/hook") == []
        victim.start()
        allow(victim, 10)
        assert victim.ended(thread, run) == "success"
        victim.await_(lambda: webhooks.received("/hook"))
    [call] = webhooks.received("/hook")
    assert (call["run_id"], call["status"]) == (run, "success")
    assert call["values"]["done"] == list(range(10))
