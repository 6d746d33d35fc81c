"""Chains: append entries in the transaction of the change that they record.

SQLite has one writer, so a file has one chain, whose head is read in the transaction. On Postgres
each connection has a chain of its own, so that no lock makes writers wait for each other. Its head is
in memory, and advances after the commit. The first entry of a chain contains the hash of the newest
entry of the database, so that no chain can be removed unnoticed once another has begun after it.
"""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple
from uuid import uuid4

from sqlalchemy import bindparam, select

from langgraph_runtime_sql import clock
from langgraph_runtime_sql.audit.entry import GENESIS, Actor, Note, entry_hash, make
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import audit_entries
from langgraph_runtime_sql.database.statements import Params, Prepared

logger = logging.getLogger(__name__)

FILE_CHAIN = "main"
# A connection that has written no entry for so long begins a new chain. Retention removes only
# older entries, so it never removes one that a chain in memory continues.
MAX_IDLE = timedelta(hours=1)

_columns = [column.name for column in audit_entries.c if column.name != "seq"]
_INSERT = Prepared(audit_entries.insert().values({name: bindparam(name) for name in _columns}))
_newest = select(audit_entries.c.chain, audit_entries.c.number, audit_entries.c.hash)
_NEWEST = Prepared(_newest.order_by(audit_entries.c.seq.desc()).limit(1))
_NEWEST_OF_FILE = Prepared(
    _newest.where(audit_entries.c.chain == FILE_CHAIN)
    .order_by(audit_entries.c.number.desc())
    .limit(1)
)


class Head(NamedTuple):
    """The end of a chain.

    Attributes:
        chain: The chain's name.
        number: The number of its last entry; 0 for a new chain.
        hash: The hash that the next entry contains.
        at: When the last entry was written.
    """

    chain: str
    number: int
    hash: str
    at: datetime


def append(conn: Connection, actor: Actor, notes: Sequence[Note]) -> None:
    """Insert an entry for each note, in the transaction of `conn`."""
    at = clock.now()
    head = _head(conn, at)
    rows: list[Params] = []
    for note in notes:
        row = make(actor, note, at, tenant=conn.tenant)
        row |= {"chain": head.chain, "number": head.number + 1, "previous": head.hash}
        row["hash"] = entry_hash(row)
        head = Head(head.chain, row["number"], row["hash"], at)
        rows.append(row)
    conn.executemany(_INSERT, rows)
    if conn.dialect_name != "sqlite":
        conn.after_commit(partial(setattr, conn.session, "audit_head", head))


def _head(conn: Connection, at: datetime) -> Head:
    if conn.dialect_name == "sqlite":
        # All processes that write to the file continue its chain.
        row = conn.fetchone(_NEWEST_OF_FILE)
        return Head(FILE_CHAIN, row["number"], row["hash"], at) if row else _new(conn, at)
    head: Head | None = conn.session.audit_head
    if head is not None and at - head.at < MAX_IDLE:
        return head
    return _new(conn, at)


def _new(conn: Connection, at: datetime) -> Head:
    if conn.dialect_name == "sqlite":
        newest = conn.fetchone(_NEWEST)
        return Head(FILE_CHAIN, 0, newest["hash"] if newest else GENESIS, at)
    # The newest entry may be another tenant's. Only its hash is read.
    [[before]] = conn.raw.execute(
        "SELECT coalesce(current_setting('threadhold.everything', true), '')"
    ).fetchall()
    conn.raw.execute("SELECT set_config('threadhold.everything', 'on', true)")
    newest = conn.fetchone(_NEWEST)
    conn.raw.execute("SELECT set_config('threadhold.everything', %s, true)", (before,))
    return Head(uuid4().hex, 0, newest["hash"] if newest else GENESIS, at)
