"""Arguments of operations, checked: ids and sort columns."""

import uuid
from typing import Any

from sqlalchemy import ColumnElement
from starlette.exceptions import HTTPException


def as_uuid(value: Any, what: str, status: int = 422) -> uuid.UUID:
    """Return `value` as a UUID.

    Raises:
        HTTPException: (`status`) it is not one.
    """
    if isinstance(value, uuid.UUID):
        return value
    try:
        return uuid.UUID(value)
    except (ValueError, TypeError, AttributeError) as error:
        raise HTTPException(status, f"Invalid {what}: {value!r} is not a UUID") from error


def sort_column(columns: Any, sort_by: str, sortable: tuple[str, ...]) -> ColumnElement[Any]:
    """Return the column to sort by.

    Raises:
        HTTPException: (422) `sort_by` is not in `sortable`.
    """
    if sort_by.lower() not in sortable:
        raise HTTPException(
            422, f"Invalid sort_by field: {sort_by!r}. Expected one of: {', '.join(sortable)}"
        )
    column: ColumnElement[Any] = columns[sort_by.lower()]
    return column
