"""Answers of operations: rows, their selected fields, and pages."""

from collections.abc import AsyncIterator, Iterable

from langgraph_runtime_sql.database.statements import Row

Rows = AsyncIterator[Row]


async def rows(found: Iterable[Row]) -> Rows:
    """Yield rows that were already read, as the interface expects."""
    for row in found:
        yield row


def pick(row: Row, select: Iterable[str] | None) -> Row:
    """Return the selected fields of `row`, by default all."""
    if not select:
        return row
    wanted = set(select)
    return {key: value for key, value in row.items() if key in wanted}


def page_of(found: list[Row], limit: int, offset: int) -> tuple[list[Row], int | None]:
    """Split up to `limit + 1` rows into a page and the offset of the next page, or None."""
    return found[:limit], offset + limit if len(found) > limit else None
