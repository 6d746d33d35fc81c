"""Fill a SQLite database of the server with many threads, without a request for each.

One thread with a finished run is created through the server. Its rows, in every table with a
`thread_id`, are then copied with new ids, dates and owners. So the copies equal what the server
writes, checkpoints included, with any schema.
"""

import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from bench.load import echo
from bench.servers import Server
from langgraph_runtime_sql.database.schema import PERIOD_SECONDS

SEED = 20_240
KEYS = ("tenant_id", "user_id", "agent_id")
# Placeholders of fixed width: they are also replaced inside binary checkpoints.
MARKERS = ("tenant-XX", "user-XXXX", "agent-X")
DATES = ("created_at", "updated_at", "state_updated_at")
Owner = tuple[str, ...]
Cell = Callable[["Copy"], Any]


@dataclass(frozen=True)
class Filled:
    """A filled database, and the number of threads of each owner."""

    file: Path
    owners: Counter[Owner]

    @property
    def url(self) -> str:
        """Return the database URL for a server."""
        return f"sqlite:///{self.file}"


def metadata_of(owner: Owner) -> dict[str, str]:
    """Return the metadata that a search for the threads of `owner` uses."""
    return dict(zip(KEYS, owner, strict=True))


@dataclass(frozen=True)
class Copy:
    """The values of the `number`-th copy. `names` maps texts of the template to new ones."""

    number: int
    names: dict[str, str]


async def seed(server: Server) -> None:
    """Create the thread that `multiply` copies."""
    async with server.client() as client:
        metadata = dict(zip(KEYS, MARKERS, strict=True))
        thread = await client.json("POST", "/threads", {"metadata": metadata})
        await echo(client, f"/threads/{thread['thread_id']}")


def multiply(file: Path, count: int) -> Filled:
    """Copy the seeded thread `count` times."""
    owners = Counter[Owner]()
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        # No other process has the file open, and an incomplete file is discarded.
        database.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-1000000;"
            "PRAGMA foreign_keys=OFF;"
        )
        (thread, updated_at) = database.execute(
            "SELECT thread_id, updated_at FROM threads"
        ).fetchone()
        (run,) = database.execute("SELECT run_id FROM runs").fetchone()
        all_copies = list(copies(count, thread, run, owners))
        by_age = sorted(all_copies, key=lambda copy: -copy.number)
        database.execute("BEGIN")
        for table, columns in _tables(database):
            # Threads are inserted oldest first, as in production: their ids are random.
            ordered = by_age if table == "threads" else all_copies
            _multiply_table(
                database, table, columns, thread, ordered, (thread, run, *MARKERS), updated_at
            )
        database.execute("DELETE FROM threads WHERE thread_id = ?", (thread,))
        database.execute("COMMIT")
        database.execute("PRAGMA journal_mode=WAL")
    return Filled(file, owners)


def copies(count: int, thread: str, run: str, owners: Counter[Owner]) -> Iterator[Copy]:
    """Yield the values of `count` copies of a thread, and count their owners in `owners`.

    Owners are skewed as in production: a few tenants, users and agents have most of the threads.
    """
    dice = random.Random(SEED)
    # Sorted by id, because a B-tree is filled far faster in its order. The dates stay random.
    threads = sorted(_fresh_id(dice) for _ in range(count))
    numbers = dice.sample(range(count), count)
    for new_thread, number in zip(threads, numbers, strict=True):
        tenant, user, agent = _skewed(dice, 50), _skewed(dice, 40), _skewed(dice, 5)
        owner = (f"tenant-{tenant:02}", f"user-{tenant:02}{user:02}", f"agent-{agent}")
        owners[owner] += 1
        new = (new_thread, _fresh_id(dice), *owner)
        yield Copy(number, dict(zip((thread, run, *MARKERS), new, strict=True)))


def _fresh_id(dice: random.Random) -> str:
    return str(UUID(int=dice.getrandbits(128), version=4))


def _skewed(dice: random.Random, size: int) -> int:
    """Return a number below `size`. Its probability falls about as 1 / rank."""
    return int(size ** dice.random()) % size


def _tables(database: sqlite3.Connection) -> list[tuple[str, list[str]]]:
    names = database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    tables = []
    for (name,) in names:
        columns = [row[1] for row in database.execute(f'PRAGMA table_info("{name}")')]
        if "thread_id" in columns:
            tables.append((name, columns))
    return tables


def _multiply_table(
    database: sqlite3.Connection,
    table: str,
    columns: list[str],
    thread: str,
    copies: list[Copy],
    markers: tuple[str, ...],
    updated_at: int,
) -> None:
    columns = [column for column in columns if (table, column) != ("runs", "seq")]
    names = ", ".join(f'"{column}"' for column in columns)
    rows = database.execute(
        f'SELECT {names} FROM "{table}" WHERE thread_id = ?', (thread,)
    ).fetchall()
    insert = f'INSERT INTO "{table}" ({names}) VALUES ({", ".join("?" * len(columns))})'
    for row in rows:
        cells = [_cell(c, v, markers, updated_at) for c, v in zip(columns, row, strict=True)]
        database.executemany(insert, ([cell(copy) for cell in cells] for copy in copies))


def _cell(column: str, value: Any, markers: tuple[str, ...], updated_at: int) -> Cell:
    """Return a function that computes a copy's cell. It is chosen once per column, not per row."""
    if column == "period":
        return lambda copy: (updated_at // 1_000_000 - copy.number) // PERIOD_SECONDS
    if column in DATES and isinstance(value, int):
        return lambda copy: value - copy.number * 1_000_000
    if isinstance(value, str) and (found := [m for m in markers if m in value]):
        return lambda copy: _replaced(value, found, copy.names)
    if isinstance(value, bytes) and (found := [m for m in markers if m.encode() in value]):
        return lambda copy: _replaced(value.decode("latin-1"), found, copy.names).encode("latin-1")
    return lambda copy: value


def _replaced(text: str, found: list[str], names: dict[str, str]) -> str:
    for marker in found:
        text = text.replace(marker, names[marker])
    return text
