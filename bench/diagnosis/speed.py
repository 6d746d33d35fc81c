"""Speed: a session of 100,000 events, on SQLite and on Postgres."""

import asyncio
import random
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from bench.backends import postgres
from bench.diagnosis.incidents import generate
from bench.report import Line
from my_agent.diagnosis import following, investigation, log
from my_agent.diagnosis.analysis import signs
from my_agent.diagnosis.events import New, NoteAdded, SourceAdded, new
from my_agent.diagnosis.reading import reader, sources
from my_agent.tables import tables
from threadhold.tables import Engine

EVENTS, BATCH, SAMPLES = 100_000, 250, 400
CURRENT_MS, PAST_MS, READ, APPENDED, LAG_MS = 5.0, 10.0, 250, 2_000.0, 50.0
TENANT, SESSION = "acme", "incident"


def lines(events: int = EVENTS, *, quick: bool = False) -> list[Line]:
    """Return the rows of the table.

    Args:
        events: events of the session.
        quick: leave Postgres out.
    """
    rows = []
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
    """Begin the session with an investigated incident, so that its state is not small."""
    given = sources.split(generate(0).message)[1]
    texts, read, events = {}, [], []
    for number, each in enumerate(given):
        name = f"s{number}"
        texts[name] = each.text
        read.append(reader.Source(name, each.kind, each.format, each.name, each.text, _NOW))
        events.append(new(SourceAdded(id=name, **each._asdict())))
    picture = signs.find(reader.read(read))
    for work in (
        lambda state: events,
        lambda state: investigation.observe(state, picture, texts),
        lambda state: investigation.propose(state, picture, []),
        lambda state: investigation.investigate(state, picture, texts)[0],
    ):
        with store.writing(TENANT) as connection:
            state = log.moment(connection, TENANT, SESSION).state
            log.append(connection, TENANT, SESSION, work(state), snapshot=True)


_NOW = datetime(2026, 3, 3, tzinfo=UTC)


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
