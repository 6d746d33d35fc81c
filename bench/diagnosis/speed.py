"""Speed: a session of 100,000 events, on SQLite and on Postgres, and a log of 500,000 lines."""

import asyncio
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.backends import postgres
from bench.report import Line
from my_agent.diagnosis.analysis.checks import Seen
from my_agent.diagnosis.giving import Giving
from my_agent.diagnosis.investigation import SHOWN, Round
from my_agent.diagnosis.reading.digest import digest
from my_agent.diagnosis.reading.sources import Given
from my_agent.diagnosis.record import following, log, texts
from my_agent.diagnosis.record.events import New, NoteAdded, new
from my_agent.diagnosis.record.fold import initial
from my_agent.diagnosis.settings import DiagnosisSettings
from my_agent.tables import tables
from threadhold.tables import Engine

EVENTS, BATCH, SAMPLES = 100_000, 250, 400
CURRENT_MS, PAST_MS, READ, APPENDED, LAG_MS = 5.0, 10.0, 250, 2_000.0, 50.0
LINES, READ_SECONDS, READ_MB = 500_000, 60.0, 300.0
TENANT, SESSION = "acme", "incident"


def lines(events: int = EVENTS, *, quick: bool = False) -> list[Line]:
    """Return the rows of the table.

    Args:
        events: events of the session.
        quick: leave Postgres out.
    """
    rows = _reading()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-"))
        kinds: dict[str, Callable[[], str]] = {"SQLite": lambda: f"sqlite:///{folder}/data.db"}
        if not quick:
            kinds["Postgres"] = lambda: stack.enter_context(postgres(Path(folder))).create(
                "diagnosis"
            )
        for name, url in kinds.items():
            store = tables.open(url())
            stack.callback(store.close)
            rows += _measured(store, name, events)
    return rows


def _measured(store: Engine, name: str, events: int) -> list[Line]:
    rng = random.Random(1)
    _open(store)
    begun = time.perf_counter()
    for first in range(0, events, BATCH):
        notes = [_note(rng, first + number) for number in range(BATCH)]
        with store.writing(TENANT) as connection:
            log.append(connection, TENANT, SESSION, notes)
    rate = events / (time.perf_counter() - begun)
    with store.reading(TENANT) as connection:
        last = log.last_seq(connection, TENANT, SESSION)
        ends = [
            each.at
            for each in (
                log.page(connection, TENANT, SESSION, after=0, count=1)[0],
                log.page(connection, TENANT, SESSION, after=last - 1, count=1)[0],
            )
        ]
    now, _ = _p95(lambda: _state(store, None, None))
    past, read = _p95(lambda: _state(store, rng.randrange(1, last), None))
    when, read_at = _p95(lambda: _state(store, None, rng.randrange(*ends)))
    slow = asyncio.run(_lag(store, wake=False))
    fast = asyncio.run(_lag(store, wake=True))
    owed = APPENDED if name == "SQLite" else None
    size = f"{events:,} events, {name}"
    return [
        Line(f"current state p95, {size}", now, "ms", limit=CURRENT_MS),
        Line(f"state at an event p95, {size}", past, "ms", limit=PAST_MS),
        Line(f"state at a time p95, {size}", when, "ms", limit=PAST_MS),
        Line(f"events read for a past state, most, {size}", max(read, read_at), "", limit=READ),
        Line(f"append, {BATCH} at once, {size}", rate, "events/s", limit=owed, better="higher"),
        Line(f"follower lag p95, one process, {name}", fast, "ms", limit=LAG_MS),
        Line(f"follower lag p95, two processes, {name}", slow, "ms", limit=LAG_MS),
    ]


def _open(store: Engine) -> None:
    """Begin the session with an incident that stands out, so that its state is not small."""
    text = _log(2_000)
    giving = Giving(initial(), DiagnosisSettings())
    giving.add([Given("log", "plain", "payments", text.count("\n"), text)])
    [name] = giving.texts
    made = Round(initial())
    made.observe([_seen(name, text, number) for number in range(SHOWN)])
    with store.writing(TENANT) as connection:
        texts.write(connection, TENANT, SESSION, name, text)
        log.append(connection, TENANT, SESSION, [*giving.events, *made.events], snapshot=True)


def _seen(source: str, text: str, number: int) -> Seen:
    start = text.index(f"request {number} ")
    end = text.index("\n", start)
    quote = text[start:end]
    return Seen(
        f"o{number}",
        "context",
        source,
        start,
        end,
        quote,
        "notice",
        "payments",
        "info",
        "neutral",
        number,
    )


def _log(lines: int) -> str:
    """Return a log of some lines, most of which say the same, and some something else."""
    rng = random.Random(3)
    begun = datetime(2026, 3, 2, tzinfo=UTC)
    return "".join(
        f"{(begun + timedelta(milliseconds=170 * number)).isoformat()} "
        + (
            f"ERROR [payments] write {number} failed: No space left on device\n"
            if number % 997 == 996
            else f"INFO [payments] request {number} of user u{rng.randrange(9999)} handled in "
            f"{rng.randrange(90)} ms\n"
        )
        for number in range(lines)
    )


def _reading() -> list[Line]:
    """Return the rows about a log of 500,000 lines, which a worker reads as those of a session."""
    text = _log(LINES)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    begun = time.perf_counter()
    script = "import sys; from bench.diagnosis.speed import read_all; read_all(sys.stdin.read())"
    subprocess.run([sys.executable, "-c", script], input=text.encode(), check=True)
    taken = time.perf_counter() - begun
    most = max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    size = f"{LINES:,} lines, {len(text) / 1e6:.0f} MB"
    return [
        Line(f"log read, {size}", taken, "s", limit=READ_SECONDS),
        Line(f"memory of its reader, {size}", most / 1024, "MB", limit=READ_MB),
    ]


def read_all(text: str) -> None:
    """Read a log as the worker of a session does."""
    made = digest(text, "payments", "log", "plain", 0)
    if made.unread or sum(each.count for each in made.groups) < LINES - made.dropped:
        raise AssertionError("The reader left lines out")


def _note(rng: random.Random, number: int) -> New:
    return new(NoteAdded(author="ada", text=f"note {number} " + "x" * rng.randrange(60, 180)))


def _state(store: Engine, at_seq: int | None, at: int | None) -> int:
    with store.reading(TENANT) as connection:
        return log.moment(connection, TENANT, SESSION, at_seq=at_seq, at=at).read


def _p95(work: Callable[[], int]) -> tuple[float, int]:
    """Return the 95th percentile of the times of `work` in ms, and its largest result."""
    taken, most = [], 0
    for _ in range(SAMPLES):
        begun = time.perf_counter()
        most = max(most, work())
        taken.append(1000 * (time.perf_counter() - begun))
    return sorted(taken)[int(0.95 * SAMPLES)], most


async def _lag(store: Engine, *, wake: bool) -> float:
    """Return the 95th percentile of the time from a commit to a follower, in ms.

    Args:
        wake: whether the writer wakes the follower, as one in the same process does.
    """
    with store.reading(TENANT) as connection:
        after = log.last_seq(connection, TENANT, SESSION)
    count, committed, lags = 100, {}, []

    def write() -> None:
        rng = random.Random(2)
        for number in range(count):
            time.sleep(rng.uniform(0.005, 0.05))
            with store.writing(TENANT) as connection:
                done = log.append(connection, TENANT, SESSION, [_note(rng, number)])
                committed[done.seq] = time.perf_counter()
            if wake:
                following.wake(TENANT, SESSION)

    writer = threading.Thread(target=write)
    pages = following.follow(store, TENANT, SESSION, after)
    writer.start()
    try:
        async for page in pages:
            lags += [1000 * (time.perf_counter() - committed[each.seq]) for each in page]
            if len(lags) >= count:
                break
    finally:
        await pages.aclose()
        await asyncio.to_thread(writer.join)
    return sorted(lags)[int(0.95 * count)]
