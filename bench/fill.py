"""Fills a SQLite database of ours with many threads, without sending as many requests.

One thread with a finished run is made through the server; then its rows, in every table that has
a `thread_id`, are copied inside the file with fresh ids, dates and owners. So the copies are what
the server itself writes, checkpoints included, whatever the schema is.
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
# Stand-ins of fixed width: they are also replaced inside binary checkpoints.
MARKERS = ("tenant-XX", "user-XXXX", "agent-X")
DATES = ("created_at", "updated_at", "state_updated_at")
Owner = tuple[str, ...]
Cell = Callable[["Copy"], Any]


@dataclass(frozen=True)
class Filled:
    """A filled database, and how many threads each owner has in it."""

    file: Path
    owners: Counter[Owner]

    @property
    def url(self) -> str:
        """Where a server finds it."""
        return f"sqlite:///{self.file}"


def metadata_of(owner: Owner) -> dict[str, str]:
    """What to search by to find the threads of `owner`."""
    return dict(zip(KEYS, owner, strict=True))


@dataclass(frozen=True)
class Copy:
    """What tells the `number`-th copy from the template: `names` maps old texts to new ones."""

    number: int
    names: dict[str, str]


async def seed(server: Server) -> None:
    """Make the thread that `multiply` copies."""
    async with server.client() as client:
        metadata = dict(zip(KEYS, MARKERS, strict=True))
        thread = await client.json("POST", "/threads", {"metadata": metadata})
        await echo(client, f"/threads/{thread['thread_id']}")


def multiply(file: Path, count: int) -> Filled:
    """Copy the seeded thread `count` times."""
    owners = Counter[Owner]()
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        # Nobody else has the file open, and a half-filled one is thrown away.
        database.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-1000000;"
            "PRAGMA foreign_keys=OFF;"
        )
        (thread, moment) = database.execute("SELECT thread_id, updated_at FROM threads").fetchone()
        (run,) = database.execute("SELECT run_id FROM runs").fetchone()
        made = list(copies(count, thread, run, owners))
        by_age = sorted(made, key=lambda copy: -copy.number)
        database.execute("BEGIN")
        for table, columns in _tables(database):
            # Threads oldest first, as they come in life: an id says nothing of a row's place.
            ordered = by_age if table == "threads" else made
            _multiply_table(
                database, table, columns, thread, ordered, (thread, run, *MARKERS), moment
            )
        database.execute("DELETE FROM threads WHERE thread_id = ?", (thread,))
        database.execute("COMMIT")
        database.execute("PRAGMA journal_mode=WAL")
    return Filled(file, owners)


def copies(count: int, thread: str, run: str, owners: Counter[Owner]) -> Iterator[Copy]:
    """What tells `count` copies of a thread apart; who owns them is added to `owners`.

    Owners are skewed as in life: a few tenants, users and agents have most of the threads.
    """
    dice = random.Random(SEED)
    # Sorted, because a B-tree is filled far faster in its order; the dates are not.
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
    """A number below `size`, small ones far more often: about as 1 / rank."""
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
    moment: int,
) -> None:
    columns = [column for column in columns if (table, column) != ("runs", "seq")]
    names = ", ".join(f'"{column}"' for column in columns)
    rows = database.execute(
        f'SELECT {names} FROM "{table}" WHERE thread_id = ?', (thread,)
    ).fetchall()
    insert = f'INSERT INTO "{table}" ({names}) VALUES ({", ".join("?" * len(columns))})'
    for row in rows:
        cells = [_cell(c, v, markers, moment) for c, v in zip(columns, row, strict=True)]
        database.executemany(insert, ([cell(copy) for cell in cells] for copy in copies))


def _cell(column: str, value: Any, markers: tuple[str, ...], moment: int) -> Cell:
    """How to make a copy's cell from the template's, decided once a column and not once a row."""
    if column == "period":
        return lambda copy: (moment // 1_000_000 - copy.number) // PERIOD_SECONDS
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
