"""Erase: remove a tenant's rows, and then their bytes from the database's files."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psycopg import sql
from sqlalchemy import bindparam, select

from langgraph_runtime_sql import migrations
from langgraph_runtime_sql.audit import log as logs
from langgraph_runtime_sql.audit import recorder, triggers
from langgraph_runtime_sql.audit.entry import PERSONAL, Note, erasure
from langgraph_runtime_sql.audit.log import Log
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.postgres.engine import PostgresEngine
from langgraph_runtime_sql.database.schema import audit_entries as entries
from langgraph_runtime_sql.database.sqlite.engine import BUSY_TIMEOUT_SECONDS, DIALECT
from langgraph_runtime_sql.database.sqlite.ownership import Ownership
from langgraph_runtime_sql.database.statements import Prepared
from langgraph_runtime_sql.database.url import database_path, is_postgres
from langgraph_runtime_sql.encryption import keys
from threadhold.tenant_data import reading
from threadhold.tenant_data.reading import Transaction
from threadhold.tenant_data.rules import Rule

_EMPTY = Prepared(
    entries.update()
    .where(entries.c.seq == bindparam("of_seq"))
    .values({**dict.fromkeys((*PERSONAL, "salt")), "erased": bindparam("erased")})
)
# An exclusive lock of a table waits for its users.
LOCK_TIMEOUT = "10min"


@dataclass(frozen=True)
class Erased:
    """What an erase removes.

    Attributes:
        rows: The number of rows by table, without tables that have none.
        files: Paths of files outside of the database, which stay.
    """

    rows: dict[str, int]
    files: list[str]

    @property
    def count(self) -> int:
        """The number of all rows."""
        return sum(self.rows.values())


def plan(url: str, tenant: str, rules: Sequence[Rule]) -> Erased:
    """Return what `erase` would remove. Servers may run.

    Raises:
        UnknownTenant: the database has no tenants.
        CannotErase: a table has no rule.
    """
    with reading.snapshot(url) as transaction:
        reading.check_tenant(transaction, tenant)
        return _planned(transaction, tenant, transaction.rules(rules))


def erase(url: str, tenant: str, rules: Sequence[Rule]) -> Erased:
    """Erase all data of a tenant, in one transaction, and rewrite the files that held them.

    A SQLite file must not be served meanwhile. Postgres may be, but tokens of the tenant must no
    longer be accepted: the tenant could write again.

    Raises:
        DatabaseInUse: a server uses the SQLite file.
        UnknownTenant: the database has no tenants.
        CannotErase: a table has no rule.
    """
    # A wrong name must not cost a rewrite, and a database of another version stays as it is.
    plan(url, tenant, rules)
    with recorder.by_command("tenant erase"):
        return (_in_postgres if is_postgres(url) else _in_file)(url, tenant, rules)


def _in_file(url: str, tenant: str, rules: Sequence[Rule]) -> Erased:
    path = database_path(url)
    owner = Ownership(path)
    owner.take()
    try:
        options: Any = {"timeout": BUSY_TIMEOUT_SECONDS, "isolation_level": None}
        with closing(sqlite3.connect(path, **options)) as raw:
            raw.execute("PRAGMA foreign_keys = ON")
            # Deleted rows are overwritten, also in pages that stay in use.
            raw.execute("PRAGMA secure_delete = ON")
            raw.execute("BEGIN IMMEDIATE")
            erased = _delete(Connection(raw, DIALECT), Log(url), tenant, rules)
            raw.execute("COMMIT")
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            raw.execute("VACUUM")
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return erased
    finally:
        owner.release()


def _in_postgres(url: str, tenant: str, rules: Sequence[Rule]) -> Erased:
    database = migrations.open_database(url, exclusive=False)
    try:
        log = logs.of(database)
        erased = database.write_sync(lambda conn: _delete(conn, log, tenant, rules))
    finally:
        database.close()
    with closing(PostgresEngine(url).reach()) as raw:
        raw.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
        raw.execute("SET threadhold.everything = 'on'")
        tables = [rule.table for rule in Transaction(raw).rules(rules)]
        # Plain VACUUM leaves the bytes in the pages. ANALYZE, because the statistics hold values.
        for table in tables:
            raw.execute(sql.SQL("VACUUM (FULL, ANALYZE) {}").format(sql.Identifier(table)))
        raw.execute("VACUUM FULL pg_statistic")
    return erased


def _planned(transaction: Transaction, tenant: str, rules: Sequence[Rule]) -> Erased:
    counts = {rule.table: transaction.count(rule, tenant) for rule in rules}
    files = [
        str(path)
        for rule in rules
        if rule.files is not None
        for (path,) in transaction.execute(
            f'SELECT DISTINCT {rule.files} FROM "{rule.table}" WHERE {rule.where}', tenant
        ).fetchall()
        if Path(str(path)).is_absolute()
    ]
    return Erased({table: count for table, count in counts.items() if count}, files)


def _delete(conn: Connection, log: Log, tenant: str, rules: Sequence[Rule]) -> Erased:
    transaction = Transaction(conn.raw)
    known = transaction.rules(rules)
    erased = _planned(transaction, tenant, known)
    for rule in known:
        if rule.erase == "delete":
            if rule.guard is not None:
                triggers.allow(conn, rule.guard, tenant)
            transaction.execute(f'DELETE FROM "{rule.table}" WHERE {rule.where}', tenant)
            if rule.guard is not None:
                triggers.forbid(conn, rule.guard)
            continue
        if rule.erase == "shred":
            keys.erase_rows(conn, tenant)
            continue
        _empty(conn, log, tenant)
    transaction.rebuild(rules)
    # Without the tenant's name.
    detail = {"rows": erased.count}
    log.append(conn, recorder.current_actor(), [Note("tenant", None, "erase", detail=detail)])
    return erased


def _empty(conn: Connection, log: Log, tenant: str) -> None:
    """Empty the columns about persons of the tenant's audit entries, and mark them with the key."""
    key = log.keyring(conn).newest
    query = select(entries.c.seq, entries.c.hash).where(entries.c.tenant == tenant)
    found = [(row["seq"], erasure(row, key)) for row in conn.fetchall(query)]
    triggers.allow(conn, triggers.ERASED, tenant)
    conn.executemany(_EMPTY, [{"of_seq": seq, "erased": mark} for seq, mark in found])
    triggers.forbid(conn, triggers.ERASED)
