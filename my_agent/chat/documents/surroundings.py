"""Surroundings: the passages before and after a passage, for a client that shows a citation."""

from sqlalchemy import Connection, select

from my_agent.chat.state import Found
from my_agent.chat.tables import passages
from threadhold.tables import SHARED

NEIGHBOURS = 1
"""Passages shown on each side."""


def around(connection: Connection, tenant: str, document_id: str, number: int) -> list[Found]:
    """Return a passage with its neighbours, in the order of the document.

    Args:
        connection: in any transaction of the tenant.
        tenant: the reader; shared documents are readable by every tenant.
        document_id: the document.
        number: position of the passage in the document, from 1.
    """
    columns = passages.c
    wanted = (
        select(
            *(columns.number, columns.title, columns.section, columns.text),
            *(columns.page, columns.start_offset, columns.end_offset),
        )
        .where(
            columns.document_id == document_id,
            columns.tenant_id.in_({tenant, SHARED}),
            columns.number.between(number - NEIGHBOURS, number + NEIGHBOURS),
        )
        .order_by(columns.number)
    )
    return [
        Found(
            number=row.number,
            title=row.title,
            section=row.section,
            text=row.text,
            document_id=document_id,
            page=row.page,
            start=row.start_offset,
            end=row.end_offset,
        )
        for row in connection.execute(wanted)
    ]
