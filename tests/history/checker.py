"""The checker: whether a history keeps the promises. Pure functions of the evidence.

Each rule is one promise and yields its violations. The rules do not depend on the faults.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any

from tests.history.answers import reads_are_fresh, refusals_have_a_reason
from tests.history.audit import Change
from tests.history.claims import claims, may_not_know
from tests.history.evidence import Evidence
from tests.history.recorder import Operation
from tests.history.streams import late_steps_are_not_sent, streams_are_whole
from tests.history.undone import ENDED, deleted_threads, undone
from tests.history.watching import threads_streams_are_whole

# Maximum drift between two clocks of the machine in a history, in seconds.
CLOCKS = 0.1


@dataclass(frozen=True)
class Violation:
    """A broken promise.

    Attributes:
        operations: The operations, changes or steps that show it.
    """

    promise: str
    what: str
    operations: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return "\n".join(
            [f"{self.promise}: {self.what}", *(f"    {each}" for each in self.operations)]
        )


Found = tuple[str, Iterable[Any]]
Rule = Callable[[Evidence], Iterator[Found]]


def check(evidence: Evidence) -> list[Violation]:
    """Return every broken promise."""
    return [
        Violation(promise, what, tuple(operations))
        for promise, rules in PROMISES.items()
        for rule in rules
        for what, operations in rule(evidence)
    ]


# --- 1: nothing acknowledged is lost


def runs_are_kept(evidence: Evidence) -> Iterator[Found]:
    """An acknowledged run exists exactly once, unless a client asked for its removal."""
    excused = undone(evidence)
    for asked in _created(evidence):
        run = asked.answer.get("run")
        if run in evidence.runs or run is None or asked.asked["thread"] is None:
            continue
        if run not in excused:
            yield f"run {run} is gone", [asked, *evidence.changes_by_run.get(run, ())]
    tags = Counter(change.tag for change in evidence.changes if change.tag is not None)
    for asked in evidence.operations("run", "wait"):
        if tags[asked.asked["tag"]] > 1:
            yield "one request created more than one run", [asked]
        if asked.outcome == "fail" and tags[asked.asked["tag"]]:
            yield "a refused request created a run", [asked]


def steps_are_kept(evidence: Evidence) -> Iterator[Found]:
    """A thread's state has all steps of each run once, in order; of interrupted runs the first."""
    counts = {
        each.asked["tag"]: each
        for each in evidence.operations("run", "wait")
        # A stateless run keeps no state.
        if each.asked["thread"] is not None
    }
    for run in evidence.runs.values():
        asked = counts.get(run.tag or "")
        if asked is None or run.thread not in evidence.threads:
            continue
        kept = _steps(evidence.threads[run.thread].log, run.run)
        wanted = list(range(asked.asked["count"]))
        if kept != wanted if run.status == "success" else kept != wanted[: len(kept)]:
            yield f"run {run.run} is {run.status}, its thread has its steps {kept}", [asked]
    for thread, found in evidence.threads.items():
        names = [entry.partition(":")[0] for entry in found.log if not entry.endswith(":update")]
        for name in set(names):
            if name not in evidence.runs:
                yield f"thread {thread} has steps of run {name}, which was undone", []
        if len([name for name, _ in groupby(names)]) != len(set(names)):
            yield f"steps of different runs are mixed in thread {thread}: {list(found.log)}", []


def results_are_returned(evidence: Evidence) -> Iterator[Found]:
    """A client that waited for a successful run has received its complete result."""
    by_tag = {run.tag: run for run in evidence.runs.values()}
    tried = defaultdict(int)
    for step in evidence.steps:
        tried[step.run] = max(tried[step.run], step.attempt)
    for asked in evidence.operations("wait", "join"):
        if not asked.ok:
            continue
        run = by_tag.get(asked.asked["tag"])
        name = asked.answer["run"] if run is None else run.run
        if run is not None and run.status != "success":
            continue
        if run is None and (asked.asked["thread"] is not None or tried[name] >= evidence.limit):
            # The run was rolled back, or gave up after its last attempt.
            continue
        log = (asked.answer["result"] or {}).get("log", ())
        if _steps(log, name) != list(range(asked.asked["count"])):
            yield f"the result of run {name} differs from its steps", [asked]


def states_are_kept(evidence: Evidence) -> Iterator[Found]:
    """An acknowledged state update is in its thread once; a refused one is not."""
    for asked in evidence.operations("state"):
        thread = evidence.threads.get(asked.asked["thread"])
        count = 0 if thread is None else thread.log.count(asked.asked["entry"])
        if count not in {"ok": (1,), "fail": (0,), "info": (0, 1)}[asked.outcome]:
            yield f"a state update is stored {count} times", [asked]


def values_are_kept(evidence: Evidence) -> Iterator[Found]:
    """An item or entry of a single client has its last value, or one of unknown outcome."""
    written: dict[tuple[str, ...], list[Operation]] = defaultdict(list)
    for asked in evidence.operations("item", "patch"):
        place = (asked.kind, asked.asked.get("thread", ""), asked.asked["key"])
        written[place].append(asked)
    for (kind, thread, key), operations in written.items():
        if kind == "item":
            found = evidence.items.get(key)
        elif thread in evidence.threads:
            found = evidence.threads[thread].metadata.get(key)
        else:
            continue  # `threads_are_kept` reports it.
        last = [each.asked["value"] for each in operations if each.ok][-1:] or [None]
        unknown = [each.asked["value"] for each in operations if each.outcome == "info"]
        if found not in last + unknown:
            yield f"{kind} {thread} {key} is {found}", operations


def threads_are_kept(evidence: Evidence) -> Iterator[Found]:
    """A created thread exists, and a deleted thread does not."""
    deleted = {each.asked["thread"]: each for each in evidence.operations("delete")}
    for asked in evidence.operations("thread"):
        thread = asked.asked["thread"]
        gone = deleted.get(thread)
        if asked.ok and thread not in evidence.threads and (gone is None or gone.outcome == "fail"):
            yield f"thread {thread} is gone", [asked]
        if gone is not None and gone.ok and thread in evidence.threads:
            yield f"thread {thread} was deleted and still exists", [gone]


# --- 2: one run at a time


def one_run_per_thread(evidence: Evidence) -> Iterator[Found]:
    """By the changes in the database, a thread never has two running runs."""
    running: dict[str, dict[str, Change]] = defaultdict(dict)
    for change in evidence.changes:
        if change.what != "run" or change.run is None:
            continue
        others = running[change.thread]
        others.pop(change.run, None)
        if change.status == "running":
            if others:
                yield f"thread {change.thread} has two running runs", [*others.values(), change]
            others[change.run] = change


def steps_belong_to_a_claim(evidence: Evidence) -> Iterator[Found]:
    """Only the process that has claimed a run executes its steps, while it has the claim.

    A superseded process, or one whose run was deleted, may not know it yet; its writes
    are refused then.
    """
    for step, spans in claims(evidence):
        if not any(
            claimed.at <= step.begun
            and (may_not_know(claimed, end) or end is None or (step.ended or step.begun) <= end.at)
            for claimed, end in spans
        ):
            yield "a process executed a step without a claim of its run", [step, *spans]


# --- 3: no write by a superseded attempt


def writes_are_fenced(evidence: Evidence) -> Iterator[Found]:
    """Only the attempt that has the run stores its checkpoints and writes.

    Clients may store their own, on threads without a running run.
    """
    states: dict[str, list[Operation]] = defaultdict(list)
    for asked in evidence.operations("state"):
        states[asked.asked["thread"]].append(asked)
    held: dict[str, Change] = {}
    running: dict[str, Change] = {}
    for change in evidence.changes:
        if change.what == "run" and change.run is not None:
            held.pop(change.run, None)
            if running.get(change.thread) and running[change.thread].run == change.run:
                del running[change.thread]
            if change.status == "running":
                held[change.run] = running[change.thread] = change
        elif change.what == "checkpoint" and change.run is not None:
            holder = held.get(change.run)
            if holder is None or (holder.attempt, holder.by) != (change.attempt, change.by):
                yield "a checkpoint by an attempt that did not have the run", [holder, change]
        elif (holder := running.get(change.thread)) is not None:
            if change.what == "checkpoint" or holder.by != change.by:
                yield "a write to a thread by a process without its run", [holder, change]
        elif not any(_may_be_of(change, each, evidence.epoch) for each in states[change.thread]):
            yield "a write without a request, on a thread where nothing ran", [change]


def _may_be_of(change: Change, asked: Operation, epoch: float) -> bool:
    """Return whether a client's state update may have caused a change."""
    if asked.outcome == "fail" and change.what == "checkpoint":
        return False
    end = float("inf") if asked.outcome == "info" or asked.ended is None else asked.ended
    return asked.begun + epoch - CLOCKS <= change.at <= end + epoch + CLOCKS


def statuses_are_fenced(evidence: Evidence) -> Iterator[Found]:
    """Only the process that has a run ends it, and only once; no process removes an ended run."""
    deleted, excused = deleted_threads(evidence), undone(evidence)
    stateless = {
        each.asked["tag"]
        for each in evidence.operations("run", "wait")
        if each.asked["thread"] is None
    }
    for run, changes in evidence.changes_by_run.items():
        holder: Change | None = None
        for change in changes:
            if change.was in ENDED and change.status is not None:
                yield f"run {run} had ended", [change]
            elif change.was in ENDED and run not in excused and changes[0].tag not in stateless:
                yield f"run {run} had ended, and was removed", [change]
            elif _is_end(change, deleted) and (holder is None or holder.by != change.by):
                yield f"run {run} was ended by a process that did not have it", [holder, change]
            holder = change if change.status == "running" else None


def _is_end(change: Change, deleted: set[str]) -> bool:
    """Return whether a process reports the end of a run. A stateless run is then deleted."""
    if change.status is None and change.was == "running":
        return change.thread not in deleted
    return change.status in ("success", "error", "timeout")


# --- 4: attempts


def attempts_are_limited(evidence: Evidence) -> Iterator[Found]:
    """A run has at most its allowed attempts, in sequence, and fails for no other reason."""
    for run, changes in evidence.changes_by_run.items():
        before, holder = 0, None
        for change in changes:
            attempt = change.attempt or 0
            if change.status == "pending" and attempt < before and change.by != holder:
                yield f"run {run}: another process did not count an attempt", [change]
            if change.status == "running":
                if attempt != before + 1 or attempt > evidence.limit + 1:
                    yield f"run {run} has attempt {attempt} after {before}", [change]
                if change.cancelled:
                    yield f"run {run} is tried again after it was cancelled", [change]
            elif change.status == "error" and attempt <= evidence.limit:
                yield f"run {run} failed at attempt {attempt}", [change]
            before, holder = attempt, change.by
    for step in evidence.steps:
        if step.attempt > evidence.limit:
            yield "a run had one attempt too many", [step]


# --- 5: the end state


def everything_has_ended(evidence: Evidence) -> Iterator[Found]:
    """Every run has ended, and no thread is busy."""
    for run in evidence.runs.values():
        if run.status not in ENDED:
            yield f"run {run.run} is {run.status}", evidence.changes_by_run[run.run]
    for name, thread in evidence.threads.items():
        if thread.status == "busy":
            yield f"thread {name} is busy", []


def nothing_hangs_or_breaks(evidence: Evidence) -> Iterator[Found]:
    """No request hangs, no server dies by itself, and none answers 500."""
    for asked in evidence.history:
        if asked.answer.get("hung"):
            yield "a request was never answered", [asked]
        if asked.answer.get("status") == 500:
            yield "a server answered 500", [asked]
    for death in evidence.deaths:
        yield death, []


# --- 7: order


def order_is_kept(evidence: Evidence) -> Iterator[Found]:
    """A run that was acknowledged before the request of another one ends before that one starts."""
    by_run = evidence.changes_by_run
    threads: dict[str, list[Operation]] = defaultdict(list)
    for asked in _created(evidence):
        if asked.answer.get("run") in by_run:
            threads[asked.asked["thread"]].append(asked)
    for operations in threads.values():
        for later in operations:
            begun = _number(by_run[later.answer["run"]], lambda each: each.status == "running")
            for earlier in operations:
                if begun is None or earlier.ended is None or earlier.ended >= later.begun:
                    continue
                changes = by_run[earlier.answer["run"]]
                ended = _number(changes, lambda each: each.status in (*ENDED, None))
                if ended is None or ended > begun:
                    yield (
                        "a run started before an earlier run had ended",
                        [
                            earlier,
                            later,
                        ],
                    )


# --- 8: tenants


def tenants_are_separate(evidence: Evidence) -> Iterator[Found]:
    """Nothing that reaches a tenant, and no log, has a byte of another tenant's data.

    A canary stands for the data. Logs contain no tenant's data at all, only the ids of its requests.
    An audit entry is its tenant's.
    """
    marks = [*evidence.canaries.items()], [*evidence.traces.items()]
    for received in evidence.received:
        # A server may change the case of a name.
        text = received.text.lower()
        for tenant, mark in marks[0] if received.kind == "log line" else chain(*marks):
            if tenant != received.tenant and mark in text:
                place = text.index(mark)
                around = received.text[max(0, place - 200) : place + 100]
                yield f"data of {tenant} reached {received}: ...{around}...", [received]


def tenants_see_their_own(evidence: Evidence) -> Iterator[Found]:
    """Each tenant receives its own data: a search that finds nothing would prove nothing."""
    own = [
        each for each in evidence.received if evidence.canaries.get(each.tenant, "\0") in each.text
    ]
    for tenant in set(evidence.canaries).difference(each.tenant for each in own):
        yield f"{tenant} received none of its own data", []
    for kind in set(evidence.kinds).difference(each.kind for each in own):
        yield f"no tenant received its own data by {kind}", []


def tenants_break_nothing(evidence: Evidence) -> Iterator[Found]:
    """No request of a tenant breaks the server."""
    for received in evidence.received:
        if received.status == 500:
            yield f"a server answered {received}", [received]


# --- functions that rules share


def _created(evidence: Evidence) -> list[Operation]:
    """Return the acknowledged creations of runs."""
    return [each for each in evidence.operations("run", "wait") if each.ok]


def _steps(log: Iterable[str], run: str) -> list[int]:
    return [int(entry.partition(":")[2]) for entry in log if entry.startswith(f"{run}:")]


def _number(changes: list[Change], is_it: Callable[[Change], bool]) -> int | None:
    return next((each.number for each in changes if is_it(each)), None)


PROMISES: dict[str, tuple[Rule, ...]] = {
    "nothing acknowledged is lost": (
        runs_are_kept,
        steps_are_kept,
        results_are_returned,
        states_are_kept,
        values_are_kept,
        reads_are_fresh,
        threads_are_kept,
        refusals_have_a_reason,
    ),
    "never two running runs on a thread": (one_run_per_thread, steps_belong_to_a_claim),
    "no write by a superseded attempt": (
        writes_are_fenced,
        statuses_are_fenced,
        late_steps_are_not_sent,
    ),
    "attempts are within the limit": (attempts_are_limited,),
    "everything ends": (everything_has_ended, nothing_hangs_or_breaks),
    "streams have no gap and no repeat": (streams_are_whole, threads_streams_are_whole),
    "order is kept per thread": (order_is_kept,),
    "no byte of another tenant": (
        tenants_are_separate,
        tenants_see_their_own,
        tenants_break_nothing,
    ),
}
