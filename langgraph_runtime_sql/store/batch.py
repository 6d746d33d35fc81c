"""Check and prepare store operations, and run them in one transaction."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)

from langgraph_runtime_sql import clock, process, request_context
from langgraph_runtime_sql.audit.entry import Note
from langgraph_runtime_sql.checkpoint.admission import not_superseded
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.gate import entries, limits
from langgraph_runtime_sql.gate.operations import ITEM_DELETE, ITEM_PUT
from langgraph_runtime_sql.json_codec import dumps, loads
from langgraph_runtime_sql.store import sqlite_rows
from langgraph_runtime_sql.store.filter import compile_filter
from langgraph_runtime_sql.store.index import NO_VECTORS, Index, Vectors
from langgraph_runtime_sql.store.rows import Row, Search, StoreTables, to_text
from langgraph_runtime_sql.store.sealing import Sealing
from langgraph_runtime_sql.tenancy import scope

MAX_ROWS = 2**31 - 1


def tables_of(conn: Connection) -> StoreTables:
    """Return the store's statements for the database of `conn`."""
    if conn.dialect_name == "sqlite":
        return sqlite_rows.SqliteTables(Sealing(conn))
    from langgraph_runtime_sql.store import postgres_rows

    return postgres_rows.PostgresTables(Sealing(conn))


def expiry(now: datetime, minutes: Any) -> str | None:
    """Return the date `minutes` from `now` as text for storage; None without an expiry.

    Raises:
        ValueError: `minutes` is no positive number, or the date is past the end of the calendar.
    """
    if minutes is None:
        return None
    if isinstance(minutes, bool) or not isinstance(minutes, int | float) or not minutes > 0:
        raise ValueError(f"A time to live must be a positive number of minutes, not {minutes!r}")
    try:
        return to_text(now + timedelta(minutes=minutes))
    except (OverflowError, ValueError) as error:
        raise ValueError(
            f"A time to live of {minutes!r} minutes ends after the year 9999: use null"
        ) from error


class _Put:
    """An item to write, checked and encoded. Its texts still need their vectors."""

    def __init__(self, op: PutOp, index: Index | None) -> None:
        self.op = op
        self.value = None if op.value is None else dumps(dict(op.value))
        self.texts: dict[str, str] = {}
        expiry(clock.now(), op.ttl)
        if index is not None and self.value is not None and op.index is not False:
            self.texts = index.texts(loads(self.value), op.index)

    def note(self) -> Note:
        """Return the note for the audit log."""
        operation = ITEM_DELETE if self.value is None else ITEM_PUT
        place = {"namespace": list(self.op.namespace), "key": self.op.key}
        return entries.of(operation, None, detail=place)

    def run(self, conn: Connection, vectors: Vectors, now: datetime) -> None:
        op, tables = self.op, tables_of(conn)
        if self.value is None:
            tables.delete(conn.raw, op.namespace, op.key)
            return
        tables.put(
            conn.raw,
            op.namespace,
            op.key,
            self.value,
            now=to_text(now),
            expires_at=expiry(now, op.ttl),
            ttl_minutes=op.ttl,
            vectors=[(field, vectors.documents[text]) for field, text in self.texts.items()],
        )


class Batch:
    """Prepared operations. Reads see the state before the batch; the last put of a key wins.

    Attributes:
        documents: Texts of the items to write. The caller embeds them.
        queries: Texts to search for. The caller embeds them.
        vectors: The caller stores the vectors of both here.
        searches: Whether an operation may examine many items.

    Raises:
        ValueError: a namespace, filter, time to live or page is invalid.
    """

    def __init__(self, ops: Iterable[Op], index: Index | None, ttl: TTLConfig | None) -> None:
        self._ops = list(ops)
        for op in self._ops:
            validate_op_namespace(op)
            _check_page(op)
        puts = {(op.namespace, op.key): op for op in self._ops if isinstance(op, PutOp)}
        self._puts = [_Put(op, index) for op in puts.values()]
        self.searches = any(isinstance(op, SearchOp | ListNamespacesOp) for op in self._ops)
        searches = [(i, op) for i, op in enumerate(self._ops) if isinstance(op, SearchOp)]
        self._tests = {i: compile_filter(op.filter) for i, op in searches}
        self.documents = list({text: None for put in self._puts for text in put.texts.values()})
        self.queries = list({op.query: None for _, op in searches if op.query and index})
        self.vectors = NO_VECTORS
        self._refreshes = ttl is not None
        self._admit = not_superseded()
        # A run that has begun is not refused: its items count with the next count.
        self._is_limited = bool(self._puts) and request_context.claim.get() is None
        self._tenant = scope.current(process.current().options.tenant_key).tenant
        self._is_request = request_context.origin.get() is not None
        self._seen: dict[tuple[str, str], Row] = {}

    @property
    def writes(self) -> bool:
        """Return whether the batch holds a put or a delete."""
        return bool(self._puts)

    @property
    def to_refresh(self) -> bool:
        """Return whether the batch has read items whose expiry must be postponed."""
        return bool(self._seen)

    def read(self, conn: Connection) -> list[Result]:
        """Return the results, read in the transaction of `conn`."""
        self._seen.clear()
        now = to_text(clock.now())
        return [self._answer(conn, i, op, now) for i, op in enumerate(self._ops)]

    def write(self, conn: Connection) -> list[Result]:
        """Read and write everything in the transaction of `conn`; return the results.

        Raises:
            SupersededAttempt: the caller's attempt no longer owns its run.
        """
        results = self.read(conn)
        self.finish(conn)
        return results

    def finish(self, conn: Connection) -> None:
        """Write after everything was read.

        Raises:
            SupersededAttempt: as in `write`.
            LimitReached: the request's tenant stores as much as it may.
        """
        if self._puts:
            self._admit(conn)
        if self._is_limited:
            # Before the writes, so that a refused batch writes nothing.
            limits.items(conn, self._tenant, sum(len(put.value or "") for put in self._puts))
        self._refresh(conn)
        for put in self._puts:
            put.run(conn, self.vectors, clock.now())
        # The entry of a run covers what its graph writes.
        if self._is_request:
            conn.notes += [put.note() for put in self._puts]

    def _refresh(self, conn: Connection) -> None:
        now = clock.now()
        for row in self._seen.values():
            tables_of(conn).refresh(
                conn.raw, row, now=to_text(now), expires_at=expiry(now, row.ttl_minutes)
            )

    def _answer(self, conn: Connection, i: int, op: Op, now: str) -> Result:
        tables, raw = tables_of(conn), conn.raw
        if isinstance(op, GetOp):
            row = tables.get(raw, op.namespace, op.key, now)
            return None if row is None else Item(**self._fields(row, op.refresh_ttl))
        if isinstance(op, SearchOp):
            query = self.vectors.queries.get(op.query) if op.query else None
            page = op.limit, op.offset
            wanted = Search(op.namespace_prefix, self._tests[i], *page, query, conn.check_deadline)
            return [
                SearchItem(**self._fields(row, op.refresh_ttl), score=score)
                for row, score in tables.search(raw, wanted, now)
            ]
        if isinstance(op, ListNamespacesOp):
            return tables.namespaces(raw, op, now)
        return None

    def _fields(self, row: Row, refresh: bool) -> dict[str, Any]:
        if refresh and self._refreshes and row.ttl_minutes is not None:
            self._seen[row.prefix, row.key] = row
        return row.fields()


def _check_page(op: Op) -> None:
    if isinstance(op, SearchOp | ListNamespacesOp):
        _check_number("limit", op.limit, 0)
        _check_number("offset", op.offset, 0)
    if isinstance(op, ListNamespacesOp) and op.max_depth is not None:
        _check_number("max_depth", op.max_depth, 1)


def _check_number(name: str, number: Any, least: int) -> None:
    if not isinstance(number, int) or not least <= number <= MAX_ROWS:
        raise ValueError(
            f"{name} must be a whole number from {least} to {MAX_ROWS}, not {number!r}"
        )
