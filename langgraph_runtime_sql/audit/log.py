"""Log: append entries to the chains of one database, in the transaction of the change that they record.

Each opened SQLite database has a chain, and on Postgres each connection, so that no lock makes writers
wait for each other. The head of a chain is in memory, and advances after the commit. So a removed end
leaves a gap before the next entry. The first entry of a chain contains the hash of the newest entry of
the database, and `links` name all chains.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from threading import Lock
from typing import Any, NamedTuple
from uuid import uuid4
from weakref import WeakKeyDictionary

from sqlalchemy import Text, bindparam, select

from langgraph_runtime_sql import clock, process
from langgraph_runtime_sql.audit import keys
from langgraph_runtime_sql.audit.entry import GENESIS, Actor, Note, entry_hash, make
from langgraph_runtime_sql.audit.keys import Keyring
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import audit_entries, database_settings
from langgraph_runtime_sql.database.statements import InsertNew, Params, Prepared

# A chain without a new entry for so long ends, and the next entry begins another. Retention removes
# only older entries, so it never removes one that a chain in memory continues.
MAX_IDLE = timedelta(hours=1)

_columns = [column.name for column in audit_entries.c if column.name != "seq"]
_INSERT = Prepared(audit_entries.insert().values({name: bindparam(name) for name in _columns}))
_newest = select(audit_entries.c.chain, audit_entries.c.number, audit_entries.c.hash)
_NEWEST = Prepared(_newest.order_by(audit_entries.c.seq.desc()).limit(1))
_NEWEST_OF_CHAIN = Prepared(
    _newest.where(audit_entries.c.chain == bindparam("of_chain", type_=Text))
    .order_by(audit_entries.c.number.desc())
    .limit(1)
)
_SETTING = "audit_log"
_ID = Prepared(select(database_settings.c.value).where(database_settings.c.name == _SETTING))
_STORE_ID = Prepared(
    InsertNew(database_settings).values(name=_SETTING, value=bindparam("id", type_=Text))
)


class Head(NamedTuple):
    """The end of a chain.

    Attributes:
        chain: The chain's name.
        number: The number of its last entry; 0 for a new chain.
        hash: The hash that the next entry contains.
        at: When the last entry was written.
        action: The action of the last entry; empty for a new chain.
    """

    chain: str
    number: int
    hash: str
    at: datetime
    action: str = ""


class Log:
    """The audit log of one opened database.

    Args:
        url: The database.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._texts: tuple[str, ...] | None = None
        self._keyring: Keyring | None = None
        # The chain of a SQLite database, and its last committed entry.
        self._chain = uuid4().hex
        self._head: Head | None = None
        # The heads of own chains that no link names yet.
        self._unlinked: dict[str, Head] = {}
        self._unlinked_lock = Lock()

    def keyring(self, conn: Connection) -> Keyring:
        """Return the keys of the log, in a transaction that writes.

        The first use creates the file of keys beside a SQLite database that has no key.

        Raises:
            BadAuditKey: the key file cannot be used.
        """
        if self._keyring is not None:
            return self._keyring
        if self._texts is None:
            given = process.configuration().options.audit_key
            self._texts = keys.configured(self._url, given, create=True)
        if not self._texts:
            return Keyring()
        found = log_id(conn)
        if found is None:
            conn.execute(_STORE_ID, {"id": uuid4().hex})
            # Of several that stored one at the same time, the first to commit has won.
            found = log_id(conn)
        keyring = Keyring.of_log(self._texts, str(found))
        # Not before the commit: a rollback would remove the name.
        conn.after_commit(partial(setattr, self, "_keyring", keyring))
        return keyring

    def append(self, conn: Connection, actor: Actor, notes: Sequence[Note]) -> Head:
        """Insert an entry for each note, in the transaction of `conn`, and return the chain's head.

        Raises:
            BadAuditKey: the key file cannot be used.
        """
        key = self.keyring(conn).newest
        at = clock.now()
        head = self._continued(conn, at)
        rows: list[Params] = []
        for note in notes:
            row = make(actor, note, at, tenant=conn.tenant)
            row |= {"chain": head.chain, "number": head.number + 1, "previous": head.hash}
            row["key_id"] = None if key is None else key.id
            row["hash"] = entry_hash(row, key)
            head = Head(head.chain, row["number"], row["hash"], at, note.action)
            rows.append(row)
        conn.executemany(_INSERT, rows)
        session = None if conn.dialect_name == "sqlite" else conn.session
        conn.after_commit(partial(self._committed, head, session))
        return head

    def _committed(self, head: Head, session: Any) -> None:
        if session is None:
            self._head = head
        else:
            session.audit_head = head
        with self._unlinked_lock:
            self._unlinked[head.chain] = head

    def unlinked(self) -> list[Head]:
        """Return the heads of own chains that no link names yet."""
        with self._unlinked_lock:
            return list(self._unlinked.values())

    def linked(self, heads: Iterable[Head]) -> None:
        """Forget heads that a link names."""
        with self._unlinked_lock:
            for head in heads:
                if self._unlinked.get(head.chain) == head:
                    del self._unlinked[head.chain]

    def _continued(self, conn: Connection, at: datetime) -> Head:
        """Return the head of the chain that the transaction continues."""
        known: Head | None = (
            self._head if conn.dialect_name == "sqlite" else conn.session.audit_head
        )
        if known is not None and at - known.at >= MAX_IDLE:
            known, self._chain = None, uuid4().hex
        if conn.dialect_name != "sqlite":
            return known or self._new(conn, uuid4().hex, at)
        # Earlier operations of the same commit may have continued the chain.
        row = conn.fetchone(_NEWEST_OF_CHAIN, {"of_chain": self._chain})
        if row is not None and (known is None or row["number"] >= known.number):
            return Head(self._chain, row["number"], row["hash"], at)
        return known or self._new(conn, self._chain, at)

    @staticmethod
    def _new(conn: Connection, chain: str, at: datetime) -> Head:
        if conn.dialect_name == "sqlite":
            newest = conn.fetchone(_NEWEST)
        else:
            # The newest entry may be another tenant's. Only its hash is read.
            [[before]] = conn.raw.execute(
                "SELECT coalesce(current_setting('threadhold.everything', true), '')"
            ).fetchall()
            conn.raw.execute("SELECT set_config('threadhold.everything', 'on', true)")
            newest = conn.fetchone(_NEWEST)
            conn.raw.execute("SELECT set_config('threadhold.everything', %s, true)", (before,))
        return Head(chain, 0, newest["hash"] if newest else GENESIS, at)


_of_databases: WeakKeyDictionary[Database, Log] = WeakKeyDictionary()


def of(database: Database) -> Log:
    """Return the log of an opened database."""
    return _of_databases.setdefault(database, Log(database.url))


def register(database: Database, log: Log) -> None:
    """Make `log` the one of `database`."""
    _of_databases[database] = log


def log_id(conn: Connection) -> str | None:
    """Return the random name of the database's log; None before its first keyed entry."""
    found = conn.scalar(_ID)
    return None if found is None else str(found)
