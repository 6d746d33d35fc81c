"""Verify: check every entry and every link of the audit log's chains."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Select, and_, select, text

from langgraph_runtime_sql.audit import log
from langgraph_runtime_sql.audit.entry import (
    GENESIS,
    LINK,
    LOG,
    RETENTION,
    Broken,
    fault,
    unknown_key,
)
from langgraph_runtime_sql.audit.keys import Keyring
from langgraph_runtime_sql.audit.links import Links
from langgraph_runtime_sql.audit.removals import Removals
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import audit_entries as entries
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.errors import RuntimeSqlError

# Entries read at a time.
PAGE = 2000

Status = Literal["intact", "broken", "unkeyed"]


@dataclass
class Unproven:
    """Entries that prove nothing: they have no key, or one that is not configured.

    Attributes:
        count: Their number.
        seq: The number of the newest one.
        at: Its date.
    """

    count: int = 0
    seq: int = 0
    at: datetime | None = None

    def add(self, row: Row) -> None:
        """Count an entry."""
        self.count += 1
        if row["seq"] > self.seq:
            self.seq, self.at = row["seq"], row["at"]


@dataclass
class Verdict:
    """The result of a verification.

    Attributes:
        count: The number of entries.
        keyed: The number of entries that a configured key proves.
        chains: The number of chains.
        newest: The hash of the newest entry; empty if there is none.
        sealed: The entries from before the log had a key. Since the date `sealed_at` a link protects
            them.
        unkeyed: The other entries without a key.
        unknown: The entries with a key that is not configured, by its id.
        broken: The first broken entry, or None.
    """

    count: int = 0
    keyed: int = 0
    chains: int = 0
    newest: str = GENESIS
    sealed: Unproven = field(default_factory=Unproven)
    sealed_at: datetime | None = None
    unkeyed: Unproven = field(default_factory=Unproven)
    unknown: dict[str, Unproven] = field(default_factory=dict)
    broken: Broken | None = None

    @property
    def status(self) -> Status:
        """`intact` only if a key proves all entries since the log has one."""
        if self.broken is not None:
            return "broken"
        is_proven = self.keyed > 0 and self.keyed + self.sealed.count == self.count
        return "intact" if is_proven else "unkeyed"


def verify(
    conn: Connection, texts: tuple[str, ...] = (), *, expected: str | None = None
) -> Verdict:
    """Check all entries that the transaction sees, which must be those of all tenants.

    Args:
        conn: The transaction.
        texts: The configured keys; see `keys.configured`.
        expected: A hash noted earlier, which must still have its entry.
    """
    try:
        return _Verification(conn, texts, expected).run()
    except _Unreadable as error:
        return Verdict(broken=Broken(0, f"a value of an entry cannot be read: {error}"))


class _Unreadable(RuntimeSqlError):
    """An entry has a value that no process writes, such as a text for a date."""


class _Verification:
    def __init__(self, conn: Connection, texts: tuple[str, ...], expected: str | None) -> None:
        self._conn = conn
        self._keys = Keyring.of_log(texts, log.log_id(conn) or "")
        self._expected = expected
        self._links = Links(_about_log(conn, LINK), self._keys)
        self._removals = Removals(_about_log(conn, RETENTION), self._keys, self._links)
        self._found = [*self._links.broken, *self._removals.broken]
        sealed_by = self._links.sealed_by
        self._verdict = Verdict(sealed_at=None if sealed_by is None else sealed_by["at"])
        # The heads that links name and that have not been read yet.
        self._named = dict(self._links.heads)

    def run(self) -> Verdict:
        verdict, newest = self._verdict, 0
        # Entries that the first entries of chains follow: hash by the rows that need it.
        starts = {
            row["previous"]: row["seq"]
            for row in _starts(self._conn)
            if row["previous"] != GENESIS and not self._removals.explain(row)
        }
        before: Row | None = None
        is_expected_there = self._expected is None
        for row in _rows(self._conn):
            verdict.count += 1
            if row["seq"] > newest:
                newest, verdict.newest = row["seq"], row["hash"]
            starts.pop(row["hash"], None)
            is_expected_there = is_expected_there or row["hash"] == self._expected
            if before is None or before["chain"] != row["chain"]:
                verdict.chains += 1
                before = None
            if why := self._fault(row) or self._gap(before, row):
                self._found.append(Broken(row["seq"], why))
            before = row
        self._found += [
            Broken(seq, "the entry that its chain follows is missing") for seq in starts.values()
        ]
        self._found += [
            Broken(seq, f"it names entry {number} of the chain {chain}, which is missing")
            for chain, (number, _, seq) in self._named.items()
            if number > self._removals.last.get(chain, 0)
        ]
        verdict.broken = min(self._found, key=lambda each: each.seq, default=None)
        if verdict.broken is None and not is_expected_there:
            why = "it is the newest, but the expected hash has no entry"
            verdict.broken = Broken(newest, why)
        return verdict

    def _fault(self, row: Row) -> str | None:
        """Return what is wrong with an entry by itself, and count it."""
        if self._links.seals(row):
            self._verdict.sealed.add(row)
        elif row["key_id"] is None:
            self._verdict.unkeyed.add(row)
        elif (unknown := unknown_key(row, self._keys)) is not None:
            self._verdict.unknown.setdefault(unknown, Unproven()).add(row)
        else:
            self._verdict.keyed += 1
        return fault(row, self._keys) or self._removals.contradiction(row) or self._link(row)

    def _link(self, row: Row) -> str | None:
        number, digest, by = self._named.get(row["chain"], (0, "", 0))
        if row["number"] != number:
            return None
        del self._named[row["chain"]]
        return None if row["hash"] == digest else f"entry {by} names another one in its place"

    def _gap(self, before: Row | None, row: Row) -> str | None:
        """Return what is wrong between an entry and the one before it in its chain."""
        if before is not None and row["number"] == before["number"] + 1:
            if row["previous"] != before["hash"]:
                return "it does not follow the entry before it"
            if before["key_id"] is not None and row["key_id"] is None:
                return "it has no key, but the entry before it has one"
            return None
        if row["number"] == 1 or self._removals.explain(row):
            return None
        return "the entry before it is missing"


def _rows(conn: Connection) -> Iterator[Row]:
    """Yield all entries, chain by chain."""
    order = (entries.c.chain, entries.c.number)
    after: Any = None
    while True:
        query = select(entries).order_by(*order).limit(PAGE)
        if after is not None:
            query = query.where(
                (entries.c.chain > after["chain"])
                | and_(entries.c.chain == after["chain"], entries.c.number > after["number"])
            )
        page = _fetch(conn, query)
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1]


def _starts(conn: Connection) -> list[Row]:
    query = select(entries).where(text("number = 1")).order_by(entries.c.seq.desc())
    return _fetch(conn, query)


def _about_log(conn: Connection, action: str) -> list[Row]:
    """Return the entries about the log itself; those of earlier versions have no kind."""
    is_one = entries.c.object_kind.is_(None) | (entries.c.object_kind == LOG)
    query = select(entries).where(entries.c.action == action, is_one).order_by(entries.c.seq)
    return _fetch(conn, query)


def _fetch(conn: Connection, query: Select[Any]) -> list[Row]:
    if conn.dialect_name == "sqlite":
        errors: tuple[type[Exception], ...] = (TypeError, ValueError, OverflowError)
        errors = (*errors, sqlite3.OperationalError)
    else:
        from psycopg import DataError

        errors = (DataError,)
    try:
        return conn.fetchall(query)
    except errors as error:
        raise _Unreadable(str(error)) from error
