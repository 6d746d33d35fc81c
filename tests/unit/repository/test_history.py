"""The checker of histories: a good history passes, and each kind of violation is found."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.server import ServerConnection, serve

from tests.history.audit import Change
from tests.history.canaries import Tenant, excerpts
from tests.history.checker import check
from tests.history.evidence import Evidence, Received, Run, Step, Thread
from tests.history.fuzzer import Fuzzer
from tests.history.recorder import Operation, Recorder, read
from tests.history.tenants import entry, log_lines, webhooks

P1, P2 = "101", "102"
LIMIT = 3


class Made:
    """A constructed history: one thread, `t`, and the runs on it in order."""

    def __init__(self) -> None:
        self.history: list[Operation] = []
        self.changes: list[Change] = []
        self.steps: list[Step] = []
        self.runs: dict[str, Run] = {}
        self.log: list[str] = []
        self.items: dict[str, int] = {}
        self.metadata: dict[str, Any] = {}
        self.clock = 0.0

    def tick(self) -> float:
        self.clock += 1.0
        return self.clock

    def ask(self, kind: str, outcome: Any = "ok", **about: Any) -> Operation:
        answer = about.pop("answer", {})
        begun, client = self.tick(), about.pop("client", 1)
        asked = Operation(
            len(self.history) + 1, kind, client, 0, begun, self.tick(), outcome, about, answer
        )
        self.history.append(asked)
        return asked

    def change(self, run: str, was: str | None, status: str | None, **about: Any) -> Change:
        change = Change(
            number=len(self.changes) + 1,
            at=self.tick(),
            what="run",
            thread="t",
            run=run,
            was=was,
            status=status,
            **{"by": P1, "attempt": 0, **about},
        )
        self.changes.append(change)
        return change

    def stored(self, run: str, attempt: int, by: str) -> None:
        number = len(self.changes) + 1
        self.changes.append(
            Change(number, self.tick(), by, "checkpoint", "t", run, attempt=attempt)
        )
        self.changes.append(Change(number + 1, self.tick(), by, "write", "t"))

    def create(self, run: str, count: int = 2, **about: Any) -> Operation:
        about = {"thread": "t", "tag": f"tag-{run}", "count": count, "strategy": "enqueue", **about}
        self.change(run, None, "pending", tag=about["tag"], strategy=about["strategy"])
        return self.ask("run", answer={"run": run}, **about)

    def work(self, run: str, steps: range, attempt: int = 1, by: str = P1) -> None:
        self.change(run, "pending", "running", attempt=attempt, by=by)
        for step in steps:
            begun = self.tick()
            self.steps.append(Step(run, attempt, int(by), step, begun, self.tick()))
            self.stored(run, attempt, by)
            self.log.append(f"{run}:{step}")

    def end(self, run: str, status: str = "success", attempt: int = 1, by: str = P1) -> None:
        self.change(run, "running", status, attempt=attempt, by=by)
        self.runs[run] = Run(run, "t", status, f"tag-{run}", attempt)

    def live(self, run: str, count: int = 2) -> None:
        """Record a run from its creation to its end."""
        self.create(run, count)
        self.work(run, range(count))
        self.end(run)

    def update(self, entry: str) -> None:
        """Record a state update by a client."""
        asked = self.ask("state", thread="t", entry=entry)
        number, at = len(self.changes) + 1, asked.begun + 0.5
        self.changes.append(Change(number, at, P1, "checkpoint", "t"))
        self.log.append(entry)

    def stream(self, run: str, *events: Any, after: str = "-1", closed: bool = True) -> None:
        answer = {"events": [list(event) for event in events], "closed": closed}
        self.ask("stream", thread="t", run=run, after=after, answer=answer)

    def watch(self, *events: Any, session: str = "s", after: str = "") -> None:
        """Record some of the events that a follower of the thread received."""
        answer = {"events": [list(event) for event in events]}
        self.ask("watch", thread="t", session=session, after=after, answer=answer)

    def evidence(self, **others: Any) -> Evidence:
        threads = {"t": Thread("idle", self.metadata, tuple(self.log))}
        found = Evidence(
            self.history, self.runs, threads, self.items, self.changes, self.steps, limit=LIMIT
        )
        return replace(found, **others)


def sent(
    order: int, n: int, attempt: int = 1, pid: int = 101, run: str = "a", step: int = 0
) -> Any:
    """Make an event of a stream."""
    data = {"n": n, "attempt": attempt, "pid": pid, "run": run, "step": step}
    return (f"{order}-0", "custom", data)


LOSS = (None, "error", {"error": "EventsLost"})
STREAMS = "streams have no gap and no repeat"


def result(*log: str) -> Any:
    """Make the last event of a stream that has lost others."""
    return (None, "values", {"log": log})


def promises(evidence: Evidence) -> set[str]:
    """Return the promises that are broken."""
    return {violation.promise for violation in check(evidence)}


def good() -> Made:
    """Make a valid history: two runs, one of them taken over, and one of every other operation."""
    made = Made()
    made.ask("thread", thread="t")
    made.live("a")
    made.create("b", 3)
    made.work("b", range(1))
    made.change("b", "running", "pending", attempt=1, by=P2)
    made.work("b", range(1, 3), attempt=2, by=P2)
    made.end("b", attempt=2, by=P2)
    made.stream("b", sent(1, 0), closed=False)
    made.stream("b", sent(2, 0, 2, 102), sent(3, 1, 2, 102), after="1-0")
    for value in (1, 2):
        made.ask("item", key="k", value=value)
        made.ask("patch", thread="t", key="m", value=value)
    made.items["k"] = made.metadata["m"] = 2
    made.update("u:update")
    made.ask("look", thread=None, key="k", answer={"found": {"value": 2}})
    made.ask("look", thread="t", key="m", answer={"found": {"m": 2}})
    return made


def test_good_history_has_no_violation() -> None:
    assert check(good().evidence()) == []


def test_empty_history_has_no_violation() -> None:
    assert check(Evidence()) == []


# --- every kind of violation


def lost_run(made: Made) -> None:
    del made.runs["a"]


def lost_step(made: Made) -> None:
    made.log.remove("a:1")


def repeated_step(made: Made) -> None:
    made.log.insert(2, "a:1")


def mixed_steps(made: Made) -> None:
    made.log[1], made.log[2] = made.log[2], made.log[1]


def undone_steps_that_stay(made: Made) -> None:
    made.ask("cancel", thread="t", run="a", action="rollback")
    del made.runs["a"]


def a_run_twice(made: Made) -> None:
    made.live("c")
    made.changes = [replace(each, tag=each.tag and "tag-a") for each in made.changes]


def a_run_that_was_refused(made: Made) -> None:
    made.history[1] = replace(made.history[1], outcome="fail")


def undone_for_one_that_came_later(made: Made) -> None:
    made.create("c", 0, strategy="rollback")
    made.change("a", "success", None, attempt=1)
    del made.runs["a"]
    made.log = [entry for entry in made.log if not entry.startswith("a:")]


def lost_state(made: Made) -> None:
    made.log.remove("u:update")


def state_twice(made: Made) -> None:
    made.log.append("u:update")


def refused_state(made: Made) -> None:
    [asked] = [each for each in made.history if each.kind == "state"]
    made.history[asked.number - 1] = replace(asked, outcome="fail")


def stale_item(made: Made) -> None:
    made.ask("look", thread=None, key="k", answer={"found": {"value": 1}})


def missing_entry(made: Made) -> None:
    made.ask("look", thread="t", key="m", answer={"found": {}})


def missing_run(made: Made) -> None:
    made.ask("join", "fail", thread="t", run="a", answer={"status": 404})


def missing_item(made: Made) -> None:
    made.ask("look", "fail", thread=None, key="k", answer={"status": 404})


def nothing_to_cancel(made: Made) -> None:
    made.create("c", 0)
    about = {"thread": "t", "run": "c", "action": "interrupt"}
    made.ask("cancel", "fail", **about, answer={"status": 404})
    made.work("c", range(0))
    made.end("c")


def busy_without_a_run(made: Made) -> None:
    made.clock += 60.0
    made.ask("state", "fail", thread="t", entry="v:update", answer={"status": 409})


def queued_run_that_is_refused(made: Made) -> None:
    about = {"thread": "t", "tag": "x", "count": 1, "strategy": "enqueue"}
    made.create("c", 0)
    made.ask("run", "fail", **about, answer={"status": 409})
    made.work("c", range(0))
    made.end("c")


def refused_without_a_reason(made: Made) -> None:
    made.ask("patch", "fail", thread="t", key="m", value=3, answer={"status": 422})


def lost_item(made: Made) -> None:
    made.items["k"] = 1


def lost_entry(made: Made) -> None:
    made.metadata["m"] = 1


def lost_thread(made: Made) -> None:
    made.ask("thread", thread="other")


def deleted_thread(made: Made) -> None:
    made.ask("delete", thread="t")


def empty_result(made: Made) -> None:
    asked = made.history[1]
    made.history[1] = replace(asked, kind="wait", answer={"run": "a", "result": {}})


def empty_result_without_thread(made: Made) -> None:
    about = {"thread": None, "tag": "x", "count": 1}
    made.ask("wait", **about, answer={"run": "x", "result": {"__error__": {}}})


LOST: list[Callable[[Made], None]] = [
    lost_run,
    lost_step,
    repeated_step,
    mixed_steps,
    undone_steps_that_stay,
    a_run_twice,
    a_run_that_was_refused,
    undone_for_one_that_came_later,
    lost_state,
    state_twice,
    refused_state,
    lost_item,
    lost_entry,
    lost_thread,
    deleted_thread,
    empty_result,
    empty_result_without_thread,
    stale_item,
    missing_entry,
    missing_run,
    missing_item,
    nothing_to_cancel,
    busy_without_a_run,
    queued_run_that_is_refused,
    refused_without_a_reason,
]


def two_running(made: Made) -> None:
    made.create("c")
    made.create("d", 1)
    made.work("c", range(2))
    made.change("d", "pending", "running", attempt=1, by=P2)
    made.end("d", by=P2, status="interrupted")
    made.end("c")


def step_without_claim(made: Made) -> None:
    made.steps.append(Step("a", 1, 102, 0, made.steps[0].begun))


def step_before_its_claim(made: Made) -> None:
    made.steps.append(Step("b", 2, 102, 0, 0.5))


def step_after_its_end(made: Made) -> None:
    made.steps.append(Step("a", 1, 101, 1, made.tick()))


def step_that_outlives_its_claim(made: Made) -> None:
    made.steps[0] = replace(made.steps[0], ended=made.tick())


TWO: list[Callable[[Made], None]] = [
    two_running,
    step_without_claim,
    step_before_its_claim,
    step_after_its_end,
    step_that_outlives_its_claim,
]


def late_checkpoint(made: Made) -> None:
    made.changes.append(Change(99, made.tick(), P1, "checkpoint", "t", "b", attempt=1))


def checkpoint_of_another_process(made: Made) -> None:
    made.create("c", 0)
    made.work("c", range(0))
    made.changes.append(Change(99, made.tick(), P2, "checkpoint", "t", "c", attempt=1))
    made.changes.append(Change(100, made.tick(), P1, "run", "t", "c", "running", "success", 1))
    made.runs["c"] = Run("c", "t", "success", "tag-c")


def write_of_another_process(made: Made) -> None:
    checkpoint_of_another_process(made)
    made.changes[-2] = replace(made.changes[-2], what="write", run=None, attempt=None)


def late_end(made: Made) -> None:
    made.change("b", "success", "error", attempt=LIMIT + 1, by=P1)


def end_by_another(made: Made) -> None:
    made.create("c", 0)
    made.work("c", range(0))
    made.end("c", by=P2)


def stateless_run_that_another_has_deleted(made: Made) -> None:
    made.create("c", 0, thread=None)
    made.work("c", range(0))
    made.change("c", "running", None, attempt=1, by=P2)


def ended_run_that_is_removed(made: Made) -> None:
    made.ask("cancel", thread="t", run="a", action="rollback")
    made.change("a", "success", None, attempt=1)


def write_on_a_thread_at_rest(made: Made) -> None:
    made.changes.append(Change(99, made.tick(), P1, "write", "t"))


def state_beside_a_run(made: Made) -> None:
    made.create("c", 0)
    made.change("c", "pending", "running", attempt=1)
    made.update("v:update")
    made.end("c")


def event_of_a_superseded_attempt(made: Made) -> None:
    made.steps.append(Step("b", 1, 101, 1, made.tick()))
    made.stream("b", sent(1, 0, run="b"), sent(2, 1, run="b", step=1), closed=False)


FENCE: list[Callable[[Made], None]] = [
    late_checkpoint,
    checkpoint_of_another_process,
    write_of_another_process,
    late_end,
    end_by_another,
    stateless_run_that_another_has_deleted,
    ended_run_that_is_removed,
    write_on_a_thread_at_rest,
    state_beside_a_run,
    event_of_a_superseded_attempt,
]


def too_many_attempts(made: Made) -> None:
    made.create("c", 0)
    for attempt in range(1, LIMIT + 3):
        made.work("c", range(0), attempt)
        made.change("c", "running", "pending", attempt=attempt)
    made.work("c", range(0), LIMIT + 3)
    made.end("c", "error", LIMIT + 3)


def attempt_that_is_not_counted(made: Made) -> None:
    made.create("c", 0)
    made.work("c", range(0))
    made.change("c", "running", "pending", attempt=1)
    made.work("c", range(0))
    made.end("c")


def failed_too_early(made: Made) -> None:
    made.create("c", 0)
    made.work("c", range(0))
    made.end("c", "error")


def tried_after_it_was_cancelled(made: Made) -> None:
    made.create("c", 0)
    made.change("c", "pending", "running", attempt=1, cancelled=True)
    made.end("c")


def attempt_that_another_does_not_count(made: Made) -> None:
    made.create("c", 0)
    made.work("c", range(0))
    made.change("c", "running", "pending", attempt=0, by=P2)
    made.work("c", range(0), by=P2)
    made.end("c", by=P2)


ATTEMPTS: list[Callable[[Made], None]] = [
    too_many_attempts,
    attempt_that_is_not_counted,
    failed_too_early,
    tried_after_it_was_cancelled,
    attempt_that_another_does_not_count,
]


def still_running(made: Made) -> None:
    made.create("c")
    made.runs["c"] = Run("c", "t", "pending", "tag-c")


def hanging_request(made: Made) -> None:
    made.ask("item", "info", key="other", value=1, answer={"hung": True})


def server_error(made: Made) -> None:
    made.ask("item", "info", key="other", value=1, answer={"status": 500})


END: list[Callable[[Made], None]] = [still_running, hanging_request, server_error]


def gap(made: Made) -> None:
    made.stream("a", sent(1, 0), sent(2, 2))


def gap_at_the_beginning(made: Made) -> None:
    made.stream("a", sent(1, 1))


def repeat(made: Made) -> None:
    made.stream("a", sent(1, 0), closed=False)
    made.stream("a", sent(1, 0), sent(2, 1), after="1-0")


def older_number(made: Made) -> None:
    made.stream("a", sent(2, 0), sent(1, 1))


def superseded(made: Made) -> None:
    made.stream("b", sent(1, 0), sent(2, 0, 2, 102), sent(3, 1), sent(4, 1, 2, 102))


def early_end(made: Made) -> None:
    made.stream("a", sent(1, 0))


def empty_stream(made: Made) -> None:
    made.stream("a")


def without_number(made: Made) -> None:
    made.stream("a", (None, *sent(1, 0)[1:]))


def loss_without_a_cause(made: Made) -> None:
    made.stream("a", sent(1, 0), LOSS, result("a:0", "a:1"))


def loss_without_a_result(made: Made) -> None:
    made.ask("fault", what="flush redis")
    made.stream("a", sent(1, 0), LOSS)


def loss_with_half_a_result(made: Made) -> None:
    made.ask("fault", what="flush redis")
    made.stream("a", LOSS, result("a:0"))


def missing_and_there(made: Made) -> None:
    made.ask("fault", what="flush redis")
    made.stream("a", (None, "error", {"error": "HTTPException", "message": "404"}))


def thread_gap(made: Made) -> None:
    made.watch(sent(1, 0), sent(2, 2))


def thread_gap_between_pieces(made: Made) -> None:
    made.watch(sent(1, 0))
    made.watch(sent(3, 0, run="b"), sent(4, 2, run="b"), after="1-0")


def thread_begun_late(made: Made) -> None:
    made.watch(sent(1, 1), sent(2, 1, run="b"))


def thread_repeat(made: Made) -> None:
    made.watch(sent(1, 0), sent(2, 1))
    made.watch(sent(2, 1), after="2-0")


def thread_superseded(made: Made) -> None:
    made.watch(sent(1, 0, 2, 102, run="b"), sent(2, 0, 1, 101, run="b"))


def thread_without_a_run(made: Made) -> None:
    made.create("c", 1, resumable=True)
    made.work("c", range(1))
    made.end("c")
    made.live("d")
    made.watch(sent(1, 0), sent(2, 1), sent(3, 0, run="d"))


def thread_loss_without_a_fault(made: Made) -> None:
    made.watch(sent(1, 0), LOSS, (None, "values", {}))


def numbered(epoch: int, number: int, n: int, **more: Any) -> Any:
    """Make an event of a thread's stream with its place in the log."""
    _, name, data = sent(0, n, **more)
    return f"{epoch}-{number}", name, data


def thread_hole(made: Made) -> None:
    made.watch(numbered(1, 4, 0), (*numbered(1, 6, 0)[:1], "metadata", {"run_id": "a"}))


def thread_hole_between_attempts(made: Made) -> None:
    made.watch(numbered(1, 4, 0, run="b"), session="s")
    again = numbered(2, 6, 0, run="b", attempt=2, pid=102)
    made.watch(again, session="s", after="1-4")


STREAM: list[Callable[[Made], None]] = [
    thread_hole,
    thread_hole_between_attempts,
    gap,
    gap_at_the_beginning,
    repeat,
    older_number,
    superseded,
    early_end,
    empty_stream,
    without_number,
    loss_without_a_cause,
    loss_without_a_result,
    loss_with_half_a_result,
    missing_and_there,
    thread_gap,
    thread_gap_between_pieces,
    thread_begun_late,
    thread_repeat,
    thread_superseded,
    thread_without_a_run,
    thread_loss_without_a_fault,
]


def overtaken(made: Made) -> None:
    made.create("c")
    made.create("d")
    made.work("d", range(2))
    made.end("d")
    made.work("c", range(2))
    made.end("c")


HARMS = {
    "nothing acknowledged is lost": LOST,
    "never two running runs on a thread": TWO,
    "no write by a superseded attempt": FENCE,
    "attempts are within the limit": ATTEMPTS,
    "everything ends": END,
    "streams have no gap and no repeat": STREAM,
    "order is kept per thread": [overtaken],
}


@pytest.mark.parametrize(
    ("promise", "harm"),
    [(promise, harm) for promise, harms in HARMS.items() for harm in harms],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_each_violation_is_found(promise: str, harm: Callable[[Made], None]) -> None:
    made = good()
    harm(made)
    assert promise in promises(made.evidence())


def test_busy_thread_and_dead_server_are_found() -> None:
    made = good()
    busy = {"t": Thread("busy", made.metadata, tuple(made.log))}
    assert promises(made.evidence(threads=busy)) == {"everything ends"}
    assert promises(made.evidence(deaths=["server 1 died"])) == {"everything ends"}


# --- histories without a violation


def test_unanswered_write_may_have_happened_or_not() -> None:
    for happened in (True, False):
        made = good()
        made.ask("item", "info", key="k", value=3)
        made.ask("state", "info", thread="t", entry="v:update")
        made.ask("look", thread=None, key="k", answer={"found": {"value": 3 if happened else 2}})
        if happened:
            made.items["k"] = 3
            made.log.append("v:update")
        assert check(made.evidence()) == []


def test_rolled_back_run_may_be_gone_with_its_steps() -> None:
    made = good()
    made.create("c")
    made.ask("cancel", thread="t", run="c", action="rollback")
    made.change("c", "pending", None)
    assert check(made.evidence()) == []


def test_run_replaced_by_a_rollback_run_may_be_gone() -> None:
    made = good()
    made.create("c")
    made.change("d", None, "pending", strategy="rollback")
    made.change("c", "pending", None)
    made.change("d", "pending", "running", attempt=1)
    made.end("d")
    assert check(made.evidence()) == []


def test_requests_for_missing_or_busy_objects_may_be_refused() -> None:
    made = good()
    made.create("c", 0)
    made.ask("state", "fail", thread="t", entry="v:update", answer={"status": 409})
    made.work("c", range(0))
    made.end("c")
    about = {"thread": "t", "run": "c", "action": "rollback"}
    made.ask("cancel", "fail", **about, answer={"status": 404})
    made.ask("thread", thread="other")
    made.ask("delete", thread="other")
    made.ask("stream", "fail", thread="other", run="x", after="-1", answer={"status": 404})
    assert check(made.evidence()) == []


def test_interrupted_run_keeps_its_first_steps() -> None:
    made = good()
    made.create("c", 5)
    made.work("c", range(2))
    made.end("c", "interrupted")
    assert check(made.evidence()) == []


def test_superseded_attempt_may_do_one_more_step() -> None:
    made = good()
    made.steps.append(Step("b", 1, 101, 1, made.tick()))
    made.create("c", 0)
    made.ask("cancel", thread="t", run="c", action="rollback")
    made.work("c", range(0))
    made.change("c", "running", None, attempt=1)
    made.steps.append(Step("c", 1, 101, 0, made.tick()))
    assert check(made.evidence()) == []


def test_stateless_run_keeps_no_steps() -> None:
    made = good()
    made.create("c", 2, thread=None)
    made.change("c", "pending", "running", attempt=1)
    made.end("c")
    assert check(made.evidence()) == []


def test_run_may_fail_after_its_last_attempt() -> None:
    made = good()
    made.create("c", 5)
    for attempt in range(1, LIMIT + 1):
        made.work("c", range(0), attempt)
        made.change("c", "running", "pending", attempt=attempt)
    made.work("c", range(0), LIMIT + 1)
    made.end("c", "error", LIMIT + 1)
    assert check(made.evidence()) == []


def test_lost_events_are_a_violation_also_after_a_fault() -> None:
    made = good()
    made.ask("fault", what="flush redis")
    made.stream("a", sent(1, 0), LOSS, result("a:0", "a:1"))
    assert promises(made.evidence()) == {STREAMS}


def test_empty_stream_is_a_violation_also_after_a_fault() -> None:
    made = good()
    made.ask("fault", what="flush redis")
    made.stream("a")
    assert promises(made.evidence()) == {STREAMS}


def test_thread_stream_may_start_in_a_run_but_not_end_with_a_loss() -> None:
    made = good()
    made.watch(sent(2, 1), ("3-0", "metadata", {}), sent(4, 0, 2, 102, run="b"))
    assert check(made.evidence()) == []
    made.watch(sent(5, 1, 2, 102, run="b"), LOSS, (None, "values", {}), after="4-0")
    assert promises(made.evidence()) == {STREAMS}


def test_thread_stream_may_repeat_numbers_that_were_never_stored() -> None:
    made = good()
    lost = [numbered(1, 4, 0, run="b"), numbered(1, 5, 1, run="b")]
    again = {"run": "b", "attempt": 2, "pid": 102}
    made.watch(*lost, numbered(2, 3, 0, **again), numbered(2, 4, 1, **again))
    assert check(made.evidence()) == []


def test_removed_run_leaves_a_hole_in_the_numbers_of_its_thread() -> None:
    made = good()
    made.live("d")
    made.create("c")
    made.ask("cancel", thread="t", run="c", action="rollback")
    made.change("c", "pending", None)
    made.live("e")
    hole = [numbered(1, 4, 0, run="d"), numbered(1, 5, 1, run="d"), numbered(9, 8, 0, run="e")]
    made.watch(*hole, session="s")
    assert check(made.evidence()) == []
    made.watch(numbered(1, 4, 0, run="a"), numbered(1, 9, 1, run="a"), session="u")
    assert promises(made.evidence()) == {STREAMS}


# --- any stream


@given(st.lists(st.integers(1, 6), min_size=1, max_size=LIMIT), st.data())
def test_stream_in_pieces_passes_and_a_gap_or_repeat_is_found(
    attempts: list[int], data: st.DataObject
) -> None:
    """The stream has the events of several attempts and is read in pieces."""
    order = iter(range(100))
    events = [
        sent(next(order), n, attempt, 200 + attempt)
        for attempt, count in enumerate(attempts, 1)
        for n in range(count)
    ]

    def read_in_pieces(events: list[Any]) -> set[str]:
        made = good()
        made.create("c", len(attempts))
        for attempt, count in enumerate(attempts, 1):
            made.work("c", range(attempt - 1, attempt), attempt, str(200 + attempt))
            # The attempt repeats this step once per further event.
            made.steps += [made.steps[-1]] * (count - 1)
            if attempt < len(attempts):
                made.change("c", "running", "pending", attempt=attempt, by=P1)
        made.end("c", attempt=len(attempts), by=str(200 + len(attempts)))
        cuts = sorted(data.draw(st.sets(st.integers(1, len(events)), max_size=3)))
        after = "-1"
        for first, until in zip([0, *cuts], [*cuts, len(events)], strict=True):
            made.stream("c", *events[first:until], after=after, closed=until == len(events))
            after = events[until - 1][0] if until else after
        return promises(made.evidence())

    assert read_in_pieces(events) == set()
    harmed = {"streams have no gap and no repeat"}
    again = data.draw(st.integers(0, len(events) - 1))
    assert read_in_pieces([*events[: again + 1], *events[again:]]) == harmed
    if len(events) > 1:
        swap = data.draw(st.integers(0, len(events) - 2))
        swapped = [*events[:swap], events[swap + 1], events[swap], *events[swap + 2 :]]
        assert read_in_pieces(swapped) == harmed
    # A missing last event of an attempt cannot be told from one that was never sent.
    within = [at for at in range(len(events) - 1) if events[at + 1][2]["n"] > 0]
    if within:
        hole = data.draw(st.sampled_from(within))
        assert read_in_pieces([*events[:hole], *events[hole + 1 :]]) == harmed


# --- the recorder


def test_recorded_operations_are_read_back_even_if_unfinished(tmp_path: Any) -> None:
    recorder = Recorder(tmp_path / "history.jsonl")
    with recorder.operation("run", 3, 1, thread="t") as pending:
        pending.ok(run="r")
    with pytest.raises(RuntimeError), recorder.operation("patch", 4):
        raise RuntimeError
    with recorder.operation("item", 5) as pending:
        pending.fail(status=409)
        # After a crash, only what is on disk at this point remains.
        unended = read(tmp_path / "history.jsonl")[-1]
    recorder.close()
    run, patch, item = read(tmp_path / "history.jsonl")
    assert (run.kind, run.client, run.process, run.outcome) == ("run", 3, 1, "ok")
    assert (run.asked, run.answer) == ({"thread": "t"}, {"run": "r"})
    assert run.ended is not None
    assert run.begun <= run.ended
    assert patch.outcome == "info"
    assert item.outcome == "fail"
    assert (unended.ended, unended.outcome) == (None, "info")


SEPARATE = "no byte of another tenant"
ADA, BOB = Tenant("ada"), Tenant("bob")


def tenants(*received: Received, kinds: tuple[str, ...] = ()) -> list[str]:
    own = [Received(each.name, "GET /threads", each.canary, 200, "threads") for each in (ADA, BOB)]
    return [str(each) for each in check(seen([*own, *received], kinds))]


def seen(received: list[Received], kinds: tuple[str, ...] = ()) -> Evidence:
    return Evidence(
        received=received,
        canaries={each.name: each.canary for each in (ADA, BOB)},
        traces={each.name: each.trace for each in (ADA, BOB)},
        kinds=kinds,
    )


def test_own_data_and_the_traces_of_logs_are_no_violation(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"request {ADA.trace}\nrun ended {BOB.trace}\n")
    own = entry(["ada", "ada", "", "", "PUT", "/", "put", "item", ADA.canary, "allowed", None, ""])
    hook = Received("ada", "webhook", f"has {ADA.canary}", 200, "webhook")
    assert tenants(hook, own, *log_lines(log), kinds=("webhook", "audit entry")) == []


@pytest.mark.parametrize(
    "text",
    [
        '{"values": "CANARY"}',
        "x-note: CANARY",
        "event: values\ndata: " + "x" * 10_000 + "CANARY" + "y" * 10_000,
        # The server may change the case of a name, or show its own canary before.
        ADA.canary + BOB.canary.upper(),
        f"request_id: {BOB.trace}",
    ],
    # Canaries are random; every process must name its tests alike.
    ids=("body", "header", "stream", "case", "trace"),
)
def test_data_of_another_tenant_is_found(text: str) -> None:
    shown = excerpts(text.replace("CANARY", BOB.canary))
    [found] = tenants(Received("ada", "GET /threads/x", shown, 200, "threads"))
    assert found.startswith(f"{SEPARATE}: data of bob reached GET /threads/x for ada")
    assert len(found) < 1000


@pytest.mark.parametrize("tenant", ["ada", None])
def test_foreign_data_in_an_audit_entry_is_found(tenant: str | None) -> None:
    [found] = tenants(entry([tenant, "", "", "", "", "", "put", "", "", "", None, BOB.canary]))
    assert "data of bob reached entry of put" in found


def test_data_of_any_tenant_in_a_log_line_is_found(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"one\nrequest {BOB.canary} {BOB.trace}\n")
    [found] = tenants(*log_lines(log))
    assert f"data of bob reached {log}:2" in found


def test_foreign_data_in_a_webhook_is_found() -> None:
    with webhooks("ada") as (url, arrived):
        httpx.post(url, json={"values": BOB.canary}, headers={"x-note": BOB.trace})
    assert len(tenants(*arrived)) == 2


def test_internal_error_is_found() -> None:
    [found] = tenants(Received("ada", "GET /threads", "", 500, "threads"))
    assert "a server answered" in found


def test_search_that_finds_nothing_proves_nothing() -> None:
    assert len(check(seen([]))) == 2
    [found] = tenants(kinds=("threads", "MCP"))
    assert "no tenant received its own data by MCP" in found


# What a broken server shows to a tenant, by the path that shows it.
LEAKS = ["/threads", "/store", "/mcp", "/a2a", "/assistants", "/runs/batch", "/runs/crons"]
LEAKS += [
    "/api/ask",
    "/threads/resolve",
    "/audit",
    "/commands",
    "/stream",
    "/runs",
    "socket",
    "key",
]


@pytest.mark.parametrize("leak", [*LEAKS, "nothing"])
async def test_fuzzer_finds_what_a_server_shows_to_another_tenant(leak: str) -> None:
    """The server answers with the sender's canary; where it leaks, with that of another tenant."""
    first: dict[str, str] = {}

    def answer(request: httpx.Request) -> httpx.Response:
        path, text = request.url.path, request.headers["x-note"]
        if leak in path:
            text = BOB.canary
        if leak == "key" and (key := request.headers.get("idempotency-key")):
            text = first.setdefault(key, text)
        return httpx.Response(200, json={"thread_id": str(uuid4()), "note": text})

    async def talk(socket: ServerConnection) -> None:
        assert socket.request is not None
        own = socket.request.headers["x-note"]
        for _ in range(2):
            await socket.recv()
        await socket.send(BOB.canary if leak == "socket" else own)

    server = await serve(talk, "127.0.0.1", 0)
    async with server, httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        port = server.sockets[0].getsockname()[1]
        fuzzer = Fuzzer([ADA, BOB], [f"http://127.0.0.1:{port}"], http, 7)
        await fuzzer.begin(ADA)
        await fuzzer.begin(BOB)
        for _ in range(20):
            await fuzzer._repeat(ADA)
    reached = [each for each in check(seen(fuzzer.received)) if "data of" in each.what]
    assert bool(reached) == (leak != "nothing")
