"""Evidence: everything that is known at the end of a history, for the checker."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import psycopg
from psycopg.rows import dict_row

from tests.history import audit
from tests.history.audit import Change
from tests.history.recorder import Operation
from tests.support.databases import EVERYTHING

PATIENCE = 60.0


@dataclass(frozen=True)
class Run:
    """A run at the end."""

    run: str
    thread: str
    status: str
    tag: str | None = None
    attempt: int = 1


@dataclass(frozen=True)
class Thread:
    """A thread at the end; `log` is what its state has kept of its runs."""

    status: str = "idle"
    metadata: dict[str, Any] = field(default_factory=dict)
    log: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """An executed step, recorded outside the server, with times in seconds since 1970.

    Attributes:
        ended: None if the step was interrupted.
    """

    run: str
    attempt: int
    pid: int
    step: int
    begun: float
    ended: float | None = None


@dataclass(frozen=True)
class Received:
    """Text that reached a tenant, or a log.

    Attributes:
        tenant: The tenant; empty for a log, which no tenant reads.
        what: The request, `webhook`, the audit entry, or the name of the log.
        text: All of it, or what is around each canary.
        status: The answer's status; 0 if the answer did not begin, or has none.
        kind: The part of the API, `WebSocket`, `webhook`, `audit entry` or `log line`.
    """

    tenant: str
    what: str
    text: str
    status: int = 0
    kind: str = ""

    def __str__(self) -> str:
        return f"{self.what} for {self.tenant or 'everybody'}: {self.status}"


@dataclass(frozen=True)
class Evidence:
    """What clients saw, what the database stored and saw, and what the graphs did.

    Attributes:
        limit: Number of attempts that a run may have.
        deaths: Unexpected ends of servers.
        received: What tenants received, and logs.
        canaries: The text that all data of a tenant carries, by tenant.
        traces: The text that a tenant's request ids carry, by tenant. Logs may show it.
        kinds: The kinds of `received` in which some tenant must have seen its own canary.
        epoch: Seconds to add to the clock of operations to get the clock of changes and steps.
    """

    history: list[Operation] = field(default_factory=list)
    runs: dict[str, Run] = field(default_factory=dict)
    threads: dict[str, Thread] = field(default_factory=dict)
    items: dict[str, int] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    deaths: list[str] = field(default_factory=list)
    limit: int = 3
    epoch: float = 0.0
    received: list[Received] = field(default_factory=list)
    canaries: dict[str, str] = field(default_factory=dict)
    traces: dict[str, str] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()

    def operations(self, *kinds: str) -> list[Operation]:
        """Return the operations of some kinds, in the order they began."""
        return [each for each in self.history if each.kind in kinds]

    @cached_property
    def changes_by_run(self) -> dict[str, list[Change]]:
        """The changes of each run's row, in order."""
        found: dict[str, list[Change]] = defaultdict(list)
        for change in self.changes:
            if change.what == "run" and change.run is not None:
                found[change.run].append(change)
        return found


def stored(dsn: str) -> tuple[dict[str, Run], dict[str, tuple[str, dict[str, Any]]]]:
    """Read the runs and threads from the database."""
    with psycopg.connect(dsn, options=EVERYTHING, row_factory=dict_row) as raw:
        runs = raw.execute(
            "SELECT run_id::text AS run, thread_id::text AS thread, status, attempt,"
            " metadata ->> 'tag' AS tag FROM runs"
        ).fetchall()
        threads = raw.execute("SELECT thread_id::text AS id, status, metadata FROM threads")
        found = {each["id"]: (each["status"], each["metadata"]) for each in threads}
    return {each["run"]: Run(**each) for each in runs}, found


def in_flight(dsn: str) -> tuple[int, int]:
    """Return the number of runs that have not ended, and the number of changes so far."""
    with psycopg.connect(dsn, options=EVERYTHING) as raw:
        row = raw.execute(
            "SELECT count(*), (SELECT coalesce(max(number), 0) FROM history_audit)"
            " FROM runs WHERE status IN ('pending', 'running')"
        ).fetchone()
    assert row is not None
    return row[0], row[1]


async def gather(
    dsn: str, url: str, history: list[Operation], record: Path, **others: Any
) -> Evidence:
    """Gather the evidence, partly through the API of the server at `url`."""
    runs, threads = stored(dsn)
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE) as http:
        found = {
            thread: Thread(status, metadata, await _log(http, thread))
            for thread, (status, metadata) in threads.items()
        }
        items = await _items(http)
    return Evidence(
        history=history,
        runs=runs,
        threads=found,
        items=items,
        changes=audit.changes(dsn),
        steps=steps(record),
        **others,
    )


async def _log(http: httpx.AsyncClient, thread: str) -> tuple[str, ...]:
    answer = await http.get(f"/threads/{thread}/state")
    answer.raise_for_status()
    values = answer.json()["values"]
    return tuple(values.get("log", ())) if isinstance(values, dict) else ()


async def _items(http: httpx.AsyncClient) -> dict[str, int]:
    body = {"namespace_prefix": ["history"], "limit": 1000}
    answer = await http.post("/store/items/search", json=body)
    answer.raise_for_status()
    return {each["key"]: each["value"]["value"] for each in answer.json()["items"]}


def steps(record: Path) -> list[Step]:
    """Read the steps that the graphs have recorded."""
    found: dict[tuple[str, int, int, int], list[dict[str, Any]]] = defaultdict(list)
    for line in record.read_text().splitlines() if record.exists() else ():
        note = json.loads(line)
        key = note["run"], note["attempt"], note["pid"], note["step"]
        if note.pop("event") == "begin":
            note["begun"] = note.pop("at")
            found[key].append(note)
        else:
            found[key][-1]["ended"] = note["at"]
    return [Step(**note) for notes in found.values() for note in notes]
