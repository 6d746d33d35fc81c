"""The store: langgraph's long-term memory in the runtime's database.

One `Store()` serves all loops and threads: it holds configuration only. A batch is one operation
on the database, after its searches. Embeddings are computed before that operation, never in it.
"""

import asyncio
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

import structlog
from langgraph.store.base import BaseStore, Op, Result, TTLConfig

from langgraph_runtime_sql import clock, process
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.gate.writes import by_project, own_write
from langgraph_runtime_sql.periodic import periodic
from langgraph_runtime_sql.store import sqlite_rows
from langgraph_runtime_sql.store.batch import Batch, expiry, tables_of
from langgraph_runtime_sql.store.index import Index
from langgraph_runtime_sql.store.rows import to_text

logger = structlog.stdlib.get_logger(__name__)

DEFAULT_SWEEP_MINUTES = 5.0
ADVICE = "Search a longer namespace, which holds fewer items."


class SqlStore(BaseStore):
    """langgraph's store interface on the runtime's database, for any loop or thread.

    Args:
        index: How to embed items for search; None disables vector search.
        ttl: `default_ttl` and `sweep_interval_minutes` in minutes, `refresh_on_read`.
    """

    supports_ttl = True

    def __init__(self, *, index: Index | None = None, ttl: TTLConfig | None = None) -> None:
        self.index = index
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run `ops` in one transaction, blocking this thread.

        Searches run before that transaction, so that writes need not wait for them. Reads see the
        state before `ops` in any case.

        Raises:
            SearchTimeout: a search takes too long.
            asyncio.InvalidStateError: called on a thread whose event loop runs.
            ValueError: a namespace, filter, time to live or page is invalid.
        """
        _refuse_on_event_loop()
        batch = Batch(ops, self.index, self.ttl_config)
        if self.index is not None:
            batch.vectors = self.index.embed(batch.documents, batch.queries)
        database: Database = process.current().database
        if batch.searches:
            results = database.search_sync(batch.read, ADVICE)
        elif batch.writes:
            with by_project():
                return database.write_sync(batch.write)
        else:
            results = database.read_sync(batch.read)
        if batch.writes or batch.to_refresh:
            with by_project() if batch.writes else own_write("expiry"):
                database.write_sync(batch.finish)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run `ops` in one transaction, as `batch` does.

        Raises:
            SearchTimeout: a search takes too long.
            ValueError: a namespace, filter, time to live or page is invalid.
        """
        batch = Batch(ops, self.index, self.ttl_config)
        if self.index is not None:
            batch.vectors = await self.index.aembed(batch.documents, batch.queries)
        database: Database = process.current().database
        if batch.searches:
            results = await database.search(batch.read, ADVICE)
        elif batch.writes:
            with by_project():
                return await database.write(batch.write)
        else:
            results = await database.read(batch.read)
        if batch.writes or batch.to_refresh:
            with by_project() if batch.writes else own_write("expiry"):
                await database.write(batch.finish)
        return results

    def ensure_schema(self, raw: sqlite3.Connection) -> None:
        """Create the configured tables in SQLite, inside the caller's transaction.

        Raises:
            ValueError: the stored vectors have other dimensions than the configured index.
        """
        sqlite_rows.ensure_tables(raw, self._dims)

    def ensure_postgres_schema(self, raw: Any) -> None:
        """Create the configured tables in Postgres, outside of transactions.

        Raises:
            ValueError: the stored vectors have other dimensions than the configured index.
        """
        from langgraph_runtime_sql.store import postgres_rows

        postgres_rows.ensure_tables(raw, self._dims)

    @property
    def _dims(self) -> int | None:
        return None if self.index is None else self.index.dims

    async def sweep_ttl(self) -> int:
        """Delete the expired items, a bounded number in each transaction; return how many."""
        deleted = 0
        while count := await process.current().database.write(
            lambda conn: tables_of(conn).sweep(conn.raw, to_text(clock.now()))
        ):
            deleted += count
        return deleted

    async def start_ttl_sweeper(self) -> None:
        """Sweep every `sweep_interval_minutes`, until cancelled."""
        config = self.ttl_config or {}
        minutes = float(config.get("sweep_interval_minutes") or DEFAULT_SWEEP_MINUTES)
        await periodic(self._sweep_logged, minutes * 60, "Item sweep failed", "item_sweep_failed")

    async def _sweep_logged(self) -> None:
        if deleted := await self.sweep_ttl():
            logger.info("Deleted expired store items", count=deleted)


def configured(config: Mapping[str, Any] | None) -> SqlStore:
    """Return the store for `config`, the `store` section of langgraph.json.

    Raises:
        ValueError: its index or time to live is invalid, or its embeddings are not found.
    """
    config = config or {}
    if config.get("path"):
        # The project has a store of its own, which the other options configure.
        config = {}
    index, ttl = None, config.get("ttl")
    if config.get("index"):
        from langgraph_api.graph import resolve_embeddings

        index = Index(config["index"], resolve_embeddings(config["index"]))
    if ttl:
        expiry(clock.now(), ttl.get("default_ttl"))
        expiry(clock.now(), ttl.get("sweep_interval_minutes"))
    return SqlStore(index=index, ttl=ttl or None)


def Store(*args: Any, **kwargs: Any) -> SqlStore:
    """Return the configured store.

    Raises:
        NotStarted: outside the platform's lifespan.
    """
    found: SqlStore = process.current().store
    return found


def _refuse_on_event_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise asyncio.InvalidStateError(
        "A synchronous call to the store would block this event loop. Await the asynchronous one "
        "instead: `await store.aget(...)` for `store.get(...)`."
    )
