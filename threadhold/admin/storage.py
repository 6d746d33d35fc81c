"""Storage: what uses the space of a database, and what rules would free (`threadhold storage`)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, select

from langgraph_runtime_sql.checkpoint import retention
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import packed_id, threads
from langgraph_runtime_sql.database.statements import Prepared, Row
from langgraph_runtime_sql.limits import stored_count
from langgraph_runtime_sql.ops.threads.retention import at_rest
from langgraph_runtime_sql.retention_rules import KeepRule, rule_of
from threadhold.admin import doctor
from threadhold.admin.findings import OpenDatabase

# Threads in one transaction.
PAGE = 100
# What `retention.thin` changes.
_COPIED = ("thread_checkpoints", "thread_writes", "run_writes")
_c = threads.c
_NEXT = Prepared(
    select(_c.thread_id, _c.tenant, _c.metadata)
    .where(_c.thread_id > bindparam("after"))
    .order_by(_c.thread_id)
    .limit(PAGE)
)


@dataclass
class Freed:
    """What a rule would delete."""

    threads: int = 0
    checkpoints: int = 0
    bytes: int = 0


@dataclass
class Storage:
    """What uses space.

    Attributes:
        tables: The bytes of each table that is not empty.
        tenants: The bytes of the threads of each tenant; an empty text for threads without one.
        threads: The bytes of the largest threads.
        freed: What each rule would delete now, in the order of the rules.
    """

    tables: Counter[str]
    tenants: Counter[str] = field(default_factory=Counter)
    threads: Counter[str] = field(default_factory=Counter)
    freed: list[Freed] = field(default_factory=list)


def examine(url: str, rules: Sequence[KeepRule], *, top: int) -> Storage:
    """Measure a database without changing it. A server may run.

    Args:
        url: The URL of the database.
        rules: The rules for checkpoints. They are tried out, and nothing is deleted.
        top: How many of the largest threads are returned.

    Raises:
        CannotExamine: there is no database, or its schema has another version.
        BadDatabaseUrl: the URL names no database.
    """
    with doctor.opened(url) as database:
        found: list[Storage] = []

        def measure(conn: Connection) -> None:
            doctor.check_version(url, database, conn)
            found.append(
                Storage(Counter(stored_count.tables(conn)), freed=[Freed() for _ in rules])
            )

        database.read(measure)
        _measure_threads(database, found[0], rules, top)
    return found[0]


def _measure_threads(
    database: OpenDatabase, storage: Storage, rules: Sequence[KeepRule], top: int
) -> None:
    page: list[Row] = [{"thread_id": UUID(int=0)}]
    # A trial on Postgres changes rows until it is rolled back.
    run = database.write if rules else database.read

    def measure(conn: Connection) -> None:
        page[:] = conn.fetchall(_NEXT, {"after": page[-1]["thread_id"]})
        for row in page:
            size = stored_count.of_threads(conn, [row["thread_id"]])
            storage.threads[str(row["thread_id"])] = size
            storage.tenants[row["tenant"] or ""] += size
            _try_rules(conn, row, rules, storage.freed)

    while page:
        run(measure)
        storage.threads = Counter(dict(storage.threads.most_common(top)))


def _try_rules(
    conn: Connection, row: Row, rules: Sequence[KeepRule], freed: Sequence[Freed]
) -> None:
    """Add what a thread's rule would delete."""
    rule = rule_of(rules, row["metadata"])
    if rule is None or at_rest(conn, row["thread_id"]) is None:
        return
    count, size = _try(conn, row["thread_id"], rule)
    if count:
        total = freed[rules.index(rule)]
        total.threads += 1
        total.checkpoints += count
        total.bytes += size


def _try(conn: Connection, thread_id: UUID, rule: KeepRule) -> tuple[int, int]:
    """Return how many checkpoints and bytes a rule would delete of a thread."""
    count = 0
    with conn.rolled_back() if conn.locks else _copied(conn, thread_id):
        before = stored_count.of_threads(conn, [thread_id])
        while deleted := retention.thin(conn, str(thread_id), rule):
            count += deleted
        return count, before - stored_count.of_threads(conn, [thread_id])


@contextmanager
def _copied(conn: Connection, thread_id: Any) -> Iterator[None]:
    """Let the block work on copies of a thread's rows in SQLite.

    A table named without its schema is the temporary one, so the file need not be writable.
    """
    for table in _COPIED:
        copy = f"CREATE TEMP TABLE {table} AS SELECT * FROM main.{table} WHERE thread_id = ?"
        conn.raw.execute(copy, (packed_id(str(thread_id)),))
    yield
    for table in _COPIED:
        conn.raw.execute(f"DROP TABLE temp.{table}")
