"""Verify: check every entry and every link of the audit log's chains."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import and_, func, select

from langgraph_runtime_sql.audit.entry import (
    GENESIS,
    RETENTION,
    entry_hash,
    is_erased,
    person_digest,
)
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import audit_entries as entries
from langgraph_runtime_sql.database.statements import Row

# Entries read at a time.
PAGE = 2000


@dataclass(frozen=True)
class Broken:
    """An entry that was changed, or whose predecessor is missing.

    Attributes:
        seq: The number of its row.
        why: What is wrong.
    """

    seq: int
    why: str


@dataclass(frozen=True)
class Verdict:
    """The result of a verification.

    Attributes:
        count: The number of entries.
        chains: The number of chains.
        newest: The hash of the newest entry; empty if there is none.
        broken: The first broken entry, or None.
    """

    count: int
    chains: int
    newest: str
    broken: Broken | None


def verify(conn: Connection, *, expected: str | None = None) -> Verdict:
    """Check all entries that the transaction sees, which must be those of all tenants.

    Args:
        expected: A hash noted earlier. Without its entry, newer entries were removed.
    """
    removed = _removed(conn)
    found: list[Broken] = []
    # Entries that first entries of chains follow: hash by the rows that need it.
    wanted: dict[str, int] = {}
    for row in _starts(conn):
        if row["previous"] != GENESIS and row["previous"] not in removed:
            wanted.setdefault(row["previous"], row["seq"])
    missing_expected = expected is not None and expected not in removed
    count = chains = 0
    newest = (0, GENESIS)
    before: Row | None = None
    for row in _rows(conn):
        count += 1
        newest = max(newest, (row["seq"], row["hash"]))
        wanted.pop(row["hash"], None)
        missing_expected = missing_expected and row["hash"] != expected
        if why := _change(row):
            found.append(Broken(row["seq"], why))
        if before is None or before["chain"] != row["chain"]:
            chains += 1
            if row["number"] != 1 and row["previous"] not in removed:
                found.append(Broken(row["seq"], "the entries before it are missing"))
        elif row["number"] != before["number"] + 1 and row["previous"] not in removed:
            found.append(Broken(row["seq"], "the entry before it is missing"))
        elif row["number"] == before["number"] + 1 and row["previous"] != before["hash"]:
            found.append(Broken(row["seq"], "it does not follow the entry before it"))
        before = row
    found += [Broken(seq, "the entry that its chain follows is missing") for seq in wanted.values()]
    if missing_expected and not found:
        found.append(Broken(newest[0], "it is the newest, but the expected hash has no entry"))
    return Verdict(count, chains, newest[1], min(found, key=lambda each: each.seq, default=None))


def _change(row: Row) -> str | None:
    """Return how an entry differs from what was written, or None."""
    if not is_erased(row) and person_digest(row) != row["person"]:
        return "its user, tenant, address or detail was changed"
    if entry_hash(row) != row["hash"]:
        return "it was changed"
    return None


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
        page = conn.fetchall(query)
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1]


def _starts(conn: Connection) -> list[Row]:
    first = (
        select(entries.c.chain, func.min(entries.c.number).label("number"))
        .group_by(entries.c.chain)
        .subquery()
    )
    return conn.fetchall(
        select(entries.c.seq, entries.c.previous).join(
            first, and_(entries.c.chain == first.c.chain, entries.c.number == first.c.number)
        )
    )


def _removed(conn: Connection) -> set[str]:
    """Return the hashes of entries that retention removed and that others follow."""
    query = select(entries.c.detail).where(entries.c.action == RETENTION)
    return {
        each
        for row in conn.fetchall(query)
        if row["detail"]
        for each in orjson.loads(row["detail"]).get("followed", ())
    }
