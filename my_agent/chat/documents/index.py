"""The document index: write it, and read from it by id.

These are plain functions of a connection. Each statement filters by tenant.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import PurePath
from typing import Any
from uuid import uuid4

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from my_agent.chat.documents.chunking import Passage
from my_agent.chat.tables import documents, files, passages, staged, versions
from my_agent.embedding import Vectors, from_bytes, to_bytes
from threadhold.tables import SHARED, lock

# Vectors per read: 6 MB.
BLOCK = 4096
Block = tuple[list[int], Vectors]


def version(connection: Connection, tenant: str) -> str | None:
    """Return the version of a tenant's index, or None if it never had a document."""
    found: str | None = connection.scalar(
        select(versions.c.version).where(versions.c.tenant_id == tenant)
    )
    return found


def is_empty(connection: Connection, tenant: str) -> bool:
    """Return whether the tenant can read no passage at all, own or shared."""
    readable = passages.c.tenant_id.in_({tenant, SHARED})
    return (
        connection.execute(select(passages.c.passage_id).where(readable).limit(1)).first() is None
    )


def size(connection: Connection, tenant: str) -> int:
    """Return the number of the tenant's own passages."""
    return (
        connection.scalar(
            select(func.count()).select_from(passages).where(passages.c.tenant_id == tenant)
        )
        or 0
    )


def exact(connection: Connection, tenant: str, ids: Sequence[int]) -> list[Block]:
    """Return ids and vectors of those of the tenant's own passages that still exist."""
    columns = passages.c
    wanted = select(columns.passage_id, columns.vector).where(
        columns.passage_id.in_(ids), columns.tenant_id == tenant
    )
    rows = connection.execute(wanted).all() if ids else []
    if not rows:
        return []
    return [([row.passage_id for row in rows], from_bytes([row.vector for row in rows]))]


def blocks(connection: Connection, tenant: str, after: int = 0) -> Iterator[Block]:
    """Yield ids and vectors of the tenant's own passages behind an id, `BLOCK` at a time."""
    wanted = select(passages.c.passage_id, passages.c.vector).order_by(passages.c.passage_id)
    wanted = wanted.where(passages.c.tenant_id == tenant).limit(BLOCK)
    last = after
    while rows := connection.execute(wanted.where(passages.c.passage_id > last)).all():
        last = rows[-1].passage_id
        yield [row.passage_id for row in rows], from_bytes([row.vector for row in rows])


def fetch(connection: Connection, tenant: str, ids: Sequence[int]) -> dict[int, Passage]:
    """Return the passages with these ids that the tenant may read."""
    columns = passages.c
    path = (
        select(func.min(files.c.path))
        .where(files.c.document_id == columns.document_id)
        .scalar_subquery()
    )
    wanted = select(
        *(columns.passage_id, columns.number, columns.title, columns.section, columns.text),
        *(columns.document_id, path, columns.page, columns.start_offset, columns.end_offset),
    ).where(columns.passage_id.in_(ids), columns.tenant_id.in_({tenant, SHARED}))
    return {
        row[0]: Passage(
            number=row[1],
            title=row[2],
            section=row[3],
            text=row[4],
            document_id=row[5],
            # Only the name: the folders of the server are no business of a client.
            path=PurePath(row[6] or "").name,
            page=row[7],
            start=row[8],
            end=row[9],
        )
        for row in connection.execute(wanted)
    }


def vectors_of(connection: Connection, tenant: str, ids: Sequence[int]) -> dict[int, Vectors]:
    """Return the vectors of the passages with these ids that the tenant may read."""
    columns = passages.c
    wanted = select(columns.passage_id, columns.vector).where(
        columns.passage_id.in_(ids), columns.tenant_id.in_({tenant, SHARED})
    )
    return {row.passage_id: from_bytes([row.vector])[0] for row in connection.execute(wanted)}


def vectors_by_text(connection: Connection, tenant: str, path: str) -> dict[str, Vectors]:
    """Return the vectors of the document that a file refers to, by what was embedded."""
    held = _held(connection, tenant, path)
    if held is None:
        return {}
    columns = passages.c
    wanted = select(
        columns.number, columns.title, columns.section, columns.text, columns.vector
    ).where(columns.tenant_id == tenant, columns.document_id == held)
    return {
        Passage(*row[:4]).in_context: from_bytes([row.vector])[0]
        for row in connection.execute(wanted)
    }


def known_files(connection: Connection, tenant: str, root: str) -> dict[str, str]:
    """Return the digest of each ingested file below a folder, by path. `root` may be one file."""
    wanted = (
        select(files.c.path, documents.c.digest)
        .join(documents, documents.c.document_id == files.c.document_id)
        .where(files.c.tenant_id == tenant, _below(root))
    )
    return {row.path: row.digest for row in connection.execute(wanted)}


def point(connection: Connection, tenant: str, path: str, digest: str) -> bool:
    """Link a file to the stored document with this digest. Return False if there is none."""
    _hold(connection, tenant)
    found = _document(connection, tenant, digest)
    if found is not None:
        _assign(connection, tenant, path, found)
    return found is not None


def add(
    connection: Connection,
    tenant: str,
    path: str,
    digest: str,
    content: Mapping[Passage, Vectors],
) -> None:
    """Store a document and link the file to it. If the digest is stored already, only link.

    Args:
        connection: in a transaction that writes.
        tenant: the owner of the file.
        path: the file.
        digest: identifies the content of the document.
        content: each passage with its vector.
    """
    if point(connection, tenant, path, digest):
        return
    document_id = str(uuid4())
    connection.execute(
        insert(documents).values(document_id=document_id, tenant_id=tenant, digest=digest)
    )
    rows = (
        {
            "tenant_id": tenant,
            "document_id": document_id,
            "number": passage.number,
            "title": passage.title,
            "section": passage.section,
            "text": passage.text,
            "page": passage.page,
            "start_offset": passage.start,
            "end_offset": passage.end,
            "vector": to_bytes(vector),
        }
        for passage, vector in content.items()
    )
    while batch := list(islice(rows, 100)):
        # One statement: Postgres then stores the words of all these passages together.
        connection.execute(insert(passages).values(batch))
    connection.execute(
        delete(staged).where(staged.c.tenant_id == tenant, staged.c.digest == digest)
    )
    _assign(connection, tenant, path, document_id)


def stage(
    connection: Connection, tenant: str, digest: str, first: int, vectors: Sequence[Vectors]
) -> None:
    """Keep vectors of an incomplete document. `first` is the position of the first one, from 1."""
    _hold(connection, tenant)
    numbers = range(first, first + len(vectors))
    place = (staged.c.tenant_id == tenant, staged.c.digest == digest)
    # Another process may embed the same document.
    connection.execute(delete(staged).where(*place, staged.c.number.in_(list(numbers))))
    rows = [
        {
            "tenant_id": tenant,
            "digest": digest,
            "number": number,
            "vector": to_bytes(vector),
            "staged_at": time.time(),
        }
        for number, vector in zip(numbers, vectors, strict=True)
    ]
    connection.execute(insert(staged), rows)


def staged_vectors(connection: Connection, tenant: str, digest: str) -> list[Vectors]:
    """Return the kept vectors of an incomplete document, from the first one on without a gap."""
    wanted = select(staged.c.number, staged.c.vector).order_by(staged.c.number)
    wanted = wanted.where(staged.c.tenant_id == tenant, staged.c.digest == digest)
    rows = connection.execute(wanted).all()
    found = [row for place, row in enumerate(rows, 1) if row.number == place]
    return list(from_bytes([row.vector for row in found])) if found else []


def listed(
    connection: Connection, tenant: str, folder: str, after: str = "", most: int | None = None
) -> list[Row[Any]]:
    """Return path, document id, number of passages and title of the tenant's own files.

    Args:
        connection: in any transaction of the tenant.
        tenant: the owner.
        folder: only files below this folder, or this file.
        after: only paths behind this one, in the database's order.
        most: maximum number of files.
    """
    columns = passages.c
    wanted = (
        select(files.c.path, files.c.document_id, func.count(), func.min(columns.title))
        .join(passages, columns.document_id == files.c.document_id)
        .where(files.c.tenant_id == tenant, _below(folder), files.c.path > after)
        .group_by(files.c.path, files.c.document_id)
        .order_by(files.c.path)
        .limit(most)
    )
    return list(connection.execute(wanted).all())


def number_of_files(connection: Connection, tenant: str) -> int:
    """Return the number of the tenant's own files."""
    wanted = select(func.count()).select_from(files).where(files.c.tenant_id == tenant)
    return connection.scalar(wanted) or 0


def has_file(connection: Connection, tenant: str, path: str) -> bool:
    """Return whether the tenant has a file of its own with this path."""
    return _held(connection, tenant, path) is not None


def forget(connection: Connection, tenant: str, paths: Sequence[str]) -> None:
    """Delete files, and the documents that no file refers to any more."""
    _hold(connection, tenant)
    for path in paths:
        held = _held(connection, tenant, path)
        connection.execute(delete(files).where(_is(tenant, path)))
        _drop_unused(connection, tenant, held)
    _renew(connection, tenant)


def _assign(connection: Connection, tenant: str, path: str, document_id: str) -> None:
    held = _held(connection, tenant, path)
    new = {"tenant_id": tenant, "path": path, "document_id": document_id}
    if held is None:
        connection.execute(insert(files).values(new))
    else:
        connection.execute(update(files).where(_is(tenant, path)).values(new))
    _drop_unused(connection, tenant, held)
    _renew(connection, tenant)


def _held(connection: Connection, tenant: str, path: str) -> str | None:
    """Return the id of the document that a file refers to."""
    found: str | None = connection.scalar(select(files.c.document_id).where(_is(tenant, path)))
    return found


def _drop_unused(connection: Connection, tenant: str, document_id: str | None) -> None:
    """Delete a document and its passages unless a file still refers to it."""
    used = select(files.c.path).where(files.c.document_id == documents.c.document_id)
    connection.execute(
        delete(documents).where(
            documents.c.tenant_id == tenant,
            documents.c.document_id == document_id,
            ~used.exists(),
        )
    )


def _renew(connection: Connection, tenant: str) -> None:
    """Write a new version of the tenant's index, so that caches notice the change."""
    connection.execute(delete(versions).where(versions.c.tenant_id == tenant))
    connection.execute(insert(versions).values(tenant_id=tenant, version=uuid4().hex))


def _document(connection: Connection, tenant: str, digest: str) -> str | None:
    found: str | None = connection.scalar(
        select(documents.c.document_id).where(
            documents.c.tenant_id == tenant, documents.c.digest == digest
        )
    )
    return found


def _hold(connection: Connection, tenant: str) -> None:
    lock(connection, f"chat documents of {tenant}")


def _is(tenant: str, path: str) -> ColumnElement[bool]:
    return and_(files.c.tenant_id == tenant, files.c.path == path)


def _below(root: str) -> ColumnElement[bool]:
    folder = f"{root}/".replace("//", "/")
    return or_(files.c.path == root, func.substr(files.c.path, 1, len(folder)) == folder)
