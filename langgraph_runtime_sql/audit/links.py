"""Links: entries that name the newest entries of the other chains.

Each process writes one at its start, at least once a minute while something is written, and at its stop. A
link names the heads of its own chains as the process remembers them. So a chain, its end or a gap can be
removed unseen only together with all entries after it.
"""

import asyncio
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import Any

import structlog
from sqlalchemy import BigInteger, and_, bindparam, func, select

from langgraph_runtime_sql.audit import log as logs
from langgraph_runtime_sql.audit.entry import (
    LINK,
    LOG,
    MALFORMED,
    Actor,
    Broken,
    Note,
    detail_of,
    is_believed,
)
from langgraph_runtime_sql.audit.keys import Keyring
from langgraph_runtime_sql.audit.log import Head
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import audit_entries as entries
from langgraph_runtime_sql.database.statements import Prepared, Row
from langgraph_runtime_sql.errors import RuntimeSqlError
from langgraph_runtime_sql.tenancy import scope

logger = structlog.stdlib.get_logger(__name__)

EVERY_SECONDS = 30.0
# A stop waits so long for the last link.
STOP_SECONDS = 3.0
# Heads that one entry names.
HEADS = 500
# A link looks again at so many entries before the last link: a transaction may have got its numbers
# before, and committed after it.
OVERLAP = 5000

_ends = (
    select(entries.c.chain, func.max(entries.c.number).label("number"))
    .where(entries.c.seq > bindparam("since", type_=BigInteger))
    .group_by(entries.c.chain)
    .subquery()
)
_HEADS = Prepared(
    select(entries.c.seq, entries.c.chain, entries.c.number, entries.c.hash, entries.c.action).join(
        _ends, and_(entries.c.chain == _ends.c.chain, entries.c.number == _ends.c.number)
    )
)
_LAST = Prepared(
    select(entries.c.seq)
    .where(entries.c.object_kind == LOG, entries.c.action == LINK)
    .order_by(entries.c.seq.desc())
    .limit(1)
)
_KEYED = Prepared(
    select(entries.c.seq)
    .where(entries.c.key_id.is_not(None))
    .order_by(entries.c.seq.desc())
    .limit(1)
)


class Linker:
    """Write the links of one opened database.

    Args:
        database: The database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._log = logs.of(database)
        # The newest entry that the last link has seen; None before the first link.
        self._seen: int | None = None
        # The heads that the last link has seen: number and `seq` by chain.
        self._named: dict[str, tuple[int, int]] = {}

    async def write(self) -> None:
        """Write a link if there are new entries, or if it is the first of this process."""
        with scope.within(scope.EVERYTHING):
            await self._database.write(self.link)

    async def stop(self) -> None:
        """Write the last link of this process, if the database answers."""
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self.write()
        except (RuntimeSqlError, TimeoutError):
            # The next link names the same heads, also that of another process.
            logger.exception("The audit log's chains were not linked", action="audit_link_failed")

    def link(self, conn: Connection, *, always: bool = False) -> Head | None:
        """Write a link as `write` does, and return the head of its chain.

        Args:
            conn: A transaction that writes and sees all entries.
            always: Write a link even if there is nothing new.
        """
        since, seals = self._start(conn) if self._seen is None else (self._seen - OVERLAP, False)
        rows = conn.fetchall(_HEADS, {"since": since})
        ends = {row["chain"]: (row["number"], row["seq"]) for row in rows}
        heads: dict[str, Row] = {
            row["chain"]: row for row in rows if self._named.get(row["chain"]) != ends[row["chain"]]
        }
        own = self._log.unlinked()
        for head in own:
            # Also if the entry itself has disappeared.
            if head.number > heads.get(head.chain, {"number": 0})["number"]:
                heads[head.chain] = head._asdict()
        is_new = self._seen is None or any(row["action"] != LINK for row in heads.values())
        if not always and not is_new and not self._has_shrunk(ends, since):
            # Idle processes do not link each other's links.
            return None
        written = self._log.append(conn, Actor(), list(_notes(heads.values(), seals)))
        seen = max([since, *(row["seq"] for row in rows)])
        conn.after_commit(partial(self._advance, seen, ends, own))
        return written

    def _has_shrunk(self, ends: dict[str, tuple[int, int]], since: int) -> bool:
        """Return whether an entry that the last link has seen has disappeared."""
        return any(
            seq > since and ends.get(chain, (0, 0))[0] < number
            for chain, (number, seq) in self._named.items()
        )

    def _start(self, conn: Connection) -> tuple[int, bool]:
        """Return after which entry the first link looks, and whether it seals entries without a key."""
        if self._log.keyring(conn).newest is not None and conn.scalar(_KEYED) is None:
            return 0, True
        return (conn.scalar(_LAST) or 0) - OVERLAP, False

    def _advance(self, seen: int, named: dict[str, tuple[int, int]], own: list[Head]) -> None:
        self._seen, self._named = seen, named
        self._log.linked(own)


def _notes(heads: Collection[Row], seals: bool) -> Iterator[Note]:
    """Yield the notes of a link, which are several if it names many heads."""
    named = [[row["chain"], row["number"], row["hash"]] for row in heads]
    for start in range(0, max(1, len(named)), HEADS):
        detail: dict[str, Any] = {"heads": named[start : start + HEADS]}
        yield Note(LOG, None, LINK, detail=detail | ({"seals": True} if seals else {}))


class Links:
    """The content of those links of a log that verify.

    Args:
        rows: The links, in the order of their writing.
        keys: The keys of the log.

    Attributes:
        broken: The links that cannot be read.
        heads: The highest number and its hash that are named of each chain, with the link's `seq`.
        sealed_by: The link that named the entries without a key when the log got one, or None.
    """

    def __init__(self, rows: Iterable[Row], keys: Keyring) -> None:
        self.broken: list[Broken] = []
        self.heads: dict[str, tuple[int, str, int]] = {}
        self.sealed_by: Row | None = None
        self._sealed: dict[str, int] = {}
        for row in rows:
            if is_believed(row, keys):
                try:
                    self._add(row)
                except MALFORMED:
                    self.broken.append(Broken(row["seq"], "its detail is no link's"))

    def _add(self, row: Row) -> None:
        detail = detail_of(row)
        for chain, number, digest in detail["heads"]:
            if number > self.heads.get(chain, (0, "", 0))[0]:
                self.heads[chain] = number, digest, row["seq"]
            if "seals" in detail:
                self._sealed[chain] = max(number, self._sealed.get(chain, 0))
        if "seals" in detail:
            self.sealed_by = row

    def seals(self, row: Row) -> bool:
        """Return whether an entry without a key was there when the log got its first key."""
        number: int = row["number"]
        return row["key_id"] is None and number <= self._sealed.get(row["chain"], 0)
