"""Named documents: the passages of those whose file has a name of some form."""

from pathlib import PurePath

from sqlalchemy import Connection, func, select

from my_agent.chat.documents.chunking import Passage
from my_agent.chat.tables import files, passages
from threadhold.tables import SHARED


def passages_of(connection: Connection, tenant: str, form: str, most: int) -> list[Passage]:
    """Return passages of the documents of a form, document by document; the newest documents first.

    Args:
        connection: in any transaction of the tenant.
        tenant: the reader; shared documents are readable by every tenant.
        form: of the path in lower case, as LIKE takes it. That of an upload is `upload/NAME`.
        most: maximum number of passages.
    """
    columns = passages.c
    # Two files with the same content are one document.
    paths = (
        select(files.c.document_id, func.min(files.c.path).label("path"))
        .where(files.c.tenant_id.in_({tenant, SHARED}), func.lower(files.c.path).like(form))
        .group_by(files.c.document_id)
        .subquery()
    )
    inner = passages.alias()
    newest = (
        select(func.max(inner.c.passage_id))
        .where(inner.c.document_id == paths.c.document_id)
        .correlate(paths)
        .scalar_subquery()
    )
    wanted = (
        select(
            *(columns.number, columns.title, columns.section, columns.text, columns.document_id),
            *(paths.c.path, columns.page, columns.start_offset, columns.end_offset),
        )
        .join(paths, paths.c.document_id == columns.document_id)
        .where(columns.tenant_id.in_({tenant, SHARED}))
        .order_by(newest.desc(), columns.number)
        .limit(most)
    )
    return [
        Passage(*row[:5], path=PurePath(row[5]).name, page=row[6], start=row[7], end=row[8])
        for row in connection.execute(wanted)
    ]
