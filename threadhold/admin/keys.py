"""Keys: rotate the keys of an encrypted database, and encrypt the rows that are not (`keys`).

Once all rows are encrypted the database says so, and plain rows are refused from then on.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from sqlalchemy import Table, func, select, tuple_, type_coerce

from langgraph_runtime_sql import json_codec
from langgraph_runtime_sql.checkpoint.resealing import changes, threads_after
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import (
    Json,
    Sealed,
    assistant_versions,
    assistants,
    crons,
    effects,
    event_segments,
    runs,
    tenant_keys,
    threads,
    webhooks,
)
from langgraph_runtime_sql.database.statements import InsertNew, Row
from langgraph_runtime_sql.database.url import is_postgres
from langgraph_runtime_sql.encryption import keys, master
from langgraph_runtime_sql.encryption.documents import (
    is_current,
    open_document,
    seal_row,
    sealed_columns,
)
from langgraph_runtime_sql.encryption.envelope import Key
from langgraph_runtime_sql.errors import RuntimeSqlError
from langgraph_runtime_sql.events.resealing import reseal
from langgraph_runtime_sql.migrations import sealed_only
from langgraph_runtime_sql.store.batch import tables_of
from langgraph_runtime_sql.store.sealing import tenant_of
from threadhold.admin.beside import opened_beside_server, vacuum

# Rows, and threads with their checkpoints, in one transaction. Other writes wait for it on SQLite.
PAGE = 100
THREADS = 10
# Rows that a message names.
SHOWN = 20

Report = Callable[[str, int], None]
"""Called with a table and the number of rows changed so far."""


class NoKey(RuntimeSqlError):
    """No master key is configured."""


class Refused(list[str]):
    """Why rows cannot be read. Later pages go on without them."""

    def stays(self, change: Callable[[], int]) -> int:
        """Return the result of `change`; 0 if the row cannot be read, and stays as it is."""
        try:
            return change()
        except keys.KeyErased:
            return 0
        except keys.CannotDecrypt as error:
            self.append(str(error))
            return 0


class NotAllEncrypted(RuntimeSqlError):
    """Some rows cannot be read, so they stay as they are."""

    def __init__(self, refused: Refused) -> None:
        more = f", and {len(refused) - SHOWN:,} more" if len(refused) > SHOWN else ""
        super().__init__(
            f"{len(refused):,} rows cannot be read and stay as they are; all others are encrypted. "
            "Add missing keys (`keys import`) or delete these rows, and run the command again: "
            f"{'; '.join(refused[:SHOWN])}{more}"
        )


def rotate(url: str) -> int:
    """Wrap every data key with the current master key, and return how many have changed.

    Servers may run if their settings name both master keys.

    Raises:
        NoKey: LANGGRAPH_AES_KEY is not set.
        CannotDecrypt: a data key is wrapped with a master key that is not configured.
    """
    newest = _newest()
    with opened_beside_server(url) as database:
        return database.write_sync(partial(_rewrap, newest=newest))


def encrypt(url: str, report: Report, *, new_keys: bool = False) -> int:
    """Encrypt all rows that do not have their tenant's newest data key, in pages.

    Servers may run. After an interruption the same call continues. A row that cannot be read stops
    no other one. Once all rows are encrypted, the database accepts no plain ones any more.

    Args:
        url: The database.
        report: Receives the progress.
        new_keys: Make a new data key for each tenant first.

    Returns:
        The number of changed rows and values.

    Raises:
        NoKey, CannotDecrypt: as in `rotate`.
        NotAllEncrypted: some rows cannot be read. All others are encrypted.
    """
    newest = _newest()
    with opened_beside_server(url) as database:
        database.read_sync(keys.check)
        if new_keys:
            database.write_sync(partial(_add_versions, newest=newest))
        total, refused = _encrypt_all(database, report)
        if not refused and not database.read_sync(keys.current().only_sealed):
            sealed_only.guard(database)
            # A process without the key may have added rows behind the page that was read.
            added, refused = _encrypt_all(database, report)
            total += added
            if not refused:
                database.write_sync(keys.record_encrypted)
    if not is_postgres(url):
        # Free pages still hold replaced rows.
        vacuum(url)
    if refused:
        raise NotAllEncrypted(refused)
    return total


def _encrypt_all(database: Database, report: Report) -> tuple[int, Refused]:
    total, refused = 0, Refused()
    for name, pages in _stages(database, refused):
        changed = 0
        for count in pages:
            changed += count
            report(name, changed)
        total += changed
    return total, refused


def _newest() -> bytes:
    newest = master.current()
    if newest is None:
        raise NoKey("Set LANGGRAPH_AES_KEY to the master key: 16, 24 or 32 bytes")
    return newest


def _rewrap(conn: Connection, newest: bytes) -> int:
    keys.check(conn)
    fingerprint, columns = master.fingerprint(newest), tenant_keys.c
    others = select(tenant_keys).where(columns.wrapped.is_not(None), columns.master != fingerprint)
    found = conn.fetchall(others)
    for row in found:
        _, wrapped = master.wrap(keys.unwrapped(row), newest)
        changes = {"master": fingerprint, "wrapped": wrapped.hex()}
        conn.execute(tenant_keys.update().where(columns.key_id == row["key_id"]).values(**changes))
    return len(found)


def _add_versions(conn: Connection, newest: bytes) -> None:
    columns = tenant_keys.c
    last = func.max(columns.version).label("version")
    live = select(columns.tenant).where(columns.wrapped.is_not(None))
    every = select(columns.tenant, last).where(columns.tenant.in_(live)).group_by(columns.tenant)
    for row in conn.fetchall(every):
        made = Key.new(row["tenant"])
        conn.execute(
            InsertNew(tenant_keys).values(keys.row_of(made, row["version"] + 1, newest, conn.now()))
        )
        keys.current().forget(row["tenant"])


def _stages(database: Database, refused: Refused) -> Iterator[tuple[str, Iterator[int]]]:
    for table in (threads, runs, crons, webhooks, effects, assistants, assistant_versions):
        yield table.name, _each_page(database, partial(_rows, table, refused))
    for name, page in (("store", _items), ("checkpoints", _threads), ("event_segments", _events)):
        yield name, _each_page(database, partial(page, refused))


Page = Callable[..., tuple[int, Any]]
"""Called with the connection and `after`. Changes the page after a key. Returns the number of changes and the last key, or None."""


def _each_page(database: Database, page: Page) -> Iterator[int]:
    after: Any = None
    while True:
        count, after = database.write_sync(partial(page, after=after))
        yield count
        if after is None:
            return


def _rows(table: Table, refused: Refused, conn: Connection, after: Any) -> tuple[int, Any]:
    key, documents = list(table.primary_key.columns), sealed_columns(table)
    # Not decrypted by the statement, so that one with the newest key costs nothing.
    raw = [type_coerce(table.c[name], Json).label(name) for name in documents]
    row_id = next(c.type.key for c in table.columns if isinstance(c.type, Sealed))
    others = {table.c[row_id], table.c.tenant, *key}
    query = select(*others, *raw).order_by(*key).limit(PAGE).with_for_update(key_share=True)
    if after is not None:
        query = query.where(tuple_(*key) > tuple_(*after))
    found = conn.fetchall(query)
    count = 0
    for row in found:
        newest = keys.current().for_writing(conn, row["tenant"]).id
        stale = [name for name in documents if not is_current(row[name], newest)]
        if stale:
            count += refused.stays(partial(_seal_row, conn, table, row_id, row, stale))
    last = tuple(found[-1][column.name] for column in key) if len(found) == PAGE else None
    return count, last


def _seal_row(conn: Connection, table: Table, row_id: str, row: Row, names: list[str]) -> int:
    opened = {}
    for name in names:
        # One that was erased cannot be read any more; it stays as it is.
        with suppress(keys.KeyErased):
            opened[name] = open_document(conn, row[name], (table.name, str(row[row_id]), name))
    sealed = seal_row(conn, table, row[row_id], row["tenant"], opened)
    if sealed:
        same = [column == row[column.name] for column in table.primary_key.columns]
        conn.execute(table.update().where(*same).values(**sealed))
    return bool(sealed)


def _items(refused: Refused, conn: Connection, after: Any) -> tuple[int, Any]:
    tables, raw = tables_of(conn), conn.raw
    where, params = ("", ()) if after is None else (" WHERE (prefix, key) > (?, ?)", after)
    order = (
        "prefix, key" if conn.dialect_name == "sqlite" else 'prefix COLLATE "C", key COLLATE "C"'
    )
    if after is not None and conn.dialect_name != "sqlite":
        where = ' WHERE (prefix COLLATE "C", key COLLATE "C") > (?, ?)'
    statement = f"SELECT prefix, key, value FROM store{where} ORDER BY {order} LIMIT ?"
    found = tables.execute(raw, statement, (*params, PAGE)).fetchall()
    count = 0
    for prefix, key, stored in found:
        newest = keys.current().for_writing(conn, tenant_of(prefix)).id
        if not is_current(tables.decode(stored), newest):
            count += refused.stays(partial(_rewrite_item, conn, prefix, key, stored))
    return count, tuple(found[-1][:2]) if len(found) == PAGE else None


def _rewrite_item(conn: Connection, prefix: str, key: str, stored: Any) -> int:
    tables, raw, item = tables_of(conn), conn.raw, (prefix, key)
    value = json_codec.dumps(open_document(conn, tables.decode(stored), ("store", prefix, key)))
    sealed = tables.seal(prefix, key, value)
    vectors: list[Any] = []
    columns = "prefix, key, field_name, embedding, created_at, updated_at"
    if has_vectors := _has_table(conn, "store_vectors"):
        # A trigger deletes the vectors of a changed value, but only its encryption changes here.
        statement = f"SELECT {columns} FROM store_vectors WHERE prefix = ? AND key = ?"
        vectors = tables.execute(raw, statement, item).fetchall()
    tables.execute(raw, "UPDATE store SET value = ? WHERE prefix = ? AND key = ?", (sealed, *item))
    if has_vectors:
        places = ", ".join("?" * 6)
        for vector in vectors:
            tables.execute(raw, f"INSERT INTO store_vectors ({columns}) VALUES ({places})", vector)
    return 1


def _has_table(conn: Connection, name: str) -> bool:
    asked = (
        "SELECT count(*) FROM sqlite_master WHERE name = ?"
        if conn.dialect_name == "sqlite"
        else "SELECT count(*) FROM pg_class WHERE oid = to_regclass(%s)"
    )
    return bool(conn.raw.execute(asked, (name,)).fetchone()[0])


def _threads(refused: Refused, conn: Connection, after: Any) -> tuple[int, Any]:
    found = threads_after(conn, after, THREADS)
    count = sum(refused.stays(step) for each in found for step in changes(conn, each))
    return count, found[-1] if len(found) == THREADS else None


def _events(refused: Refused, conn: Connection, after: Any) -> tuple[int, Any]:
    key, c = list(event_segments.primary_key.columns), event_segments.c
    query = select(*key, c.tenant, c.events).where(c.events.is_not(None))
    query = query.order_by(*key).limit(PAGE).with_for_update(key_share=True)
    if after is not None:
        query = query.where(tuple_(*key) > tuple_(*after))
    found = conn.fetchall(query)
    count = sum(refused.stays(partial(reseal, conn, row)) for row in found)
    last = tuple(found[-1][column.name] for column in key) if len(found) == PAGE else None
    return count, last
