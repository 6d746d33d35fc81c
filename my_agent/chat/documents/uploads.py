"""Uploads: store, list and delete documents of a tenant that have a name instead of a path."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from my_agent import parsing
from my_agent.chat.documents import chunking, index, reading
from my_agent.chat.documents.chunking import Passage
from my_agent.chat.documents.ingestion import digest_of, embed_and_add
from my_agent.chat.settings import ChatSettings
from my_agent.parsing import Unreadable
from my_agent.tables import tables

FOLDER = "upload"
PREFIX = f"{FOLDER}/"
"""Begins the path of an upload in the index. Paths of files are absolute."""
LONGEST_NAME = 200


class TooManyDocuments(Exception):
    """Raised when a tenant has as many documents as the settings allow."""


@dataclass(frozen=True)
class Stored:
    """A document in the index.

    Attributes:
        name: name of the upload.
        document_id: id of the document; equal contents of a tenant share it.
        title: its title.
        passages: number of its passages.
    """

    name: str
    document_id: str
    title: str
    passages: int


def find_problem(name: str) -> str | None:
    """Return what is wrong with the name of an upload, or None."""
    if not name or len(name) > LONGEST_NAME or "/" in name or not name.isprintable():
        return f"The name must have 1 to {LONGEST_NAME} printable characters, without a slash"
    if Path(name).suffix.lower() not in reading.suffixes():
        return f"The name must end with one of {', '.join(sorted(reading.suffixes()))}"
    return None


def is_stored(tenant: str, name: str, content: bytes) -> bool:
    """Return whether a document of the tenant has this content, and give it the name. Blocks.

    Args:
        tenant: the owner; not empty.
        name: a name without a problem.
        content: the bytes of the file.

    Raises:
        Unreadable: the content is empty or too large.
        TooManyDocuments: the tenant has too many documents.
    """
    settings = ChatSettings.from_environment()
    if not content:
        raise Unreadable("it is empty")
    if len(content) > settings.document_max_bytes:
        raise Unreadable(f"it is larger than {settings.document_max_bytes:,} bytes")
    path, digest = PREFIX + name, digest_of(content)

    def point(connection: Connection) -> bool:
        full = index.number_of_files(connection, tenant) >= settings.tenant_documents
        if full and not index.has_file(connection, tenant, path):
            raise TooManyDocuments(f"You have {settings.tenant_documents} documents: delete some")
        return index.point(connection, tenant, path, digest)

    return tables.write(point, tenant)


async def parse(tenant: str, name: str, content: bytes) -> list[Passage]:
    """Return the passages of a document, from a worker process.

    Raises:
        Unreadable: the content cannot be read, or takes too much time or memory.
        TooManyWaiting: so many documents of the tenant wait already.
    """
    settings = ChatSettings.from_environment()
    return await parsing.run(
        chunking.passages,
        name,
        content,
        tenant=tenant,
        seconds=settings.document_seconds,
        memory=settings.document_memory_bytes,
    )


def store(tenant: str, name: str, content: bytes, passages: Sequence[Passage]) -> Iterator[float]:
    """Store or replace a document. Yield the fraction done, from 0 to 1. Blocks.

    Args:
        tenant: the owner; not empty.
        name: a name without a problem.
        content: the bytes of the file.
        passages: its passages, as `parse` returns them.
    """
    yield from embed_and_add(tenant, PREFIX + name, digest_of(content), passages)


def find(tenant: str, name: str) -> Stored | None:
    """Return an upload of a tenant, or None."""
    rows = tables.read(lambda connection: index.listed(connection, tenant, PREFIX + name), tenant)
    return next(map(_shown, rows), None)


def listed(tenant: str, after: str, most: int) -> list[Stored]:
    """Return a tenant's uploads in the order of their names, behind `after`."""
    rows = tables.read(
        lambda connection: index.listed(connection, tenant, FOLDER, PREFIX + after, most), tenant
    )
    return [_shown(row) for row in rows]


def delete(tenant: str, name: str) -> bool:
    """Delete an upload of a tenant. Return False if there is none with this name."""

    def work(connection: Connection) -> bool:
        found = index.has_file(connection, tenant, PREFIX + name)
        if found:
            index.forget(connection, tenant, [PREFIX + name])
        return found

    return tables.write(work, tenant)


def _shown(row: Sequence[Any]) -> Stored:
    path, document_id, passages, title = row
    return Stored(
        name=path.removeprefix(PREFIX), document_id=document_id, title=title, passages=passages
    )
