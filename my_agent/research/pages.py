"""Pages that a project has read. Each is stored as soon as it is read, and never read again."""

import asyncio
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from my_agent.research import dedupe, projects
from my_agent.research.model import CrawledPage, CrawlFailure, as_dict, from_dict
from my_agent.research.projects import Key, now
from my_agent.research.tables import pages as table
from my_agent.tables import tables


@dataclass(frozen=True)
class Reading:
    """The result of reading an address.

    Attributes:
        requested: the canonical address that was asked for.
        page: the page; None if it could not be read.
        failure: why not.
        attempts: number of attempts.
    """

    requested: str
    page: CrawledPage | None
    failure: CrawlFailure | None
    attempts: int


async def find(key: Key, requested: str) -> Reading | None:
    """Return the reading of an address, or None."""
    found = await _select(key, table.c.requested == requested)
    return found[0] if found else None


async def load(key: Key) -> list[Reading]:
    """Return all readings of a project, in the order of their addresses."""
    return await _select(key)


async def by_address(key: Key) -> dict[str, CrawledPage]:
    """Return the pages of a project by address, with the origins of near-duplicates."""
    read = [each.page for each in await load(key) if each.page is not None]
    grouped = await asyncio.to_thread(dedupe.group, read)
    return {page.url: page for page in grouped}


async def save(key: Key, reading: Reading) -> None:
    """Store a reading in place of an earlier one of the same address.

    Nothing is stored if the project was deleted meanwhile.
    """
    where = (*_where(key), table.c.requested == reading.requested)
    values = {
        "tenant_id": key.tenant_id,
        "project_id": key.project_id,
        "requested": reading.requested,
        "page": None if reading.page is None else as_dict(reading.page),
        "failure": None if reading.failure is None else as_dict(reading.failure),
        "attempts": reading.attempts,
        "fetched_at": now(),
    }

    def work(connection: Connection) -> None:
        # Locked, so that a deletion of the project comes before this or removes this, too.
        if not projects.exists(connection, key):
            return
        connection.execute(delete(table).where(*where))
        connection.execute(insert(table).values(**values))

    await tables.run(work, key.tenant_id, write=True)


async def forget(key: Key) -> None:
    """Delete all readings of a project: another question begins on its thread."""
    await tables.run(
        lambda connection: connection.execute(delete(table).where(*_where(key))),
        key.tenant_id,
        write=True,
    )


async def _select(key: Key, *more: Any) -> list[Reading]:
    statement = select(table).where(*_where(key), *more).order_by(table.c.requested)
    rows = await tables.run(lambda connection: connection.execute(statement).all(), key.tenant_id)
    return [
        Reading(
            requested=row.requested,
            page=None if row.page is None else from_dict(CrawledPage, row.page),
            failure=None if row.failure is None else from_dict(CrawlFailure, row.failure),
            attempts=row.attempts,
        )
        for row in rows
    ]


def _where(key: Key) -> tuple[Any, Any]:
    return table.c.tenant_id == key.tenant_id, table.c.project_id == key.project_id
