"""Remove the tenant conditions from the statements on the graphs' own tables.

Only row-level security then restricts their rows.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event

# Matches comparisons with a value, but no join conditions and no assignments.
_CONDITION = re.compile(r"(\b\w+\.)?\btenant_id (= %\(\w+\)s(::\w+)?|IN \((?:[^()]|%\(\w+\)s)*\))")


def _without(conn: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> tuple[str, Any]:
    return _CONDITION.sub("true", statement), parameters


def remove_conditions() -> None:
    """Remove the tenant conditions until the process ends."""
    event.listen(Engine, "before_cursor_execute", _without, retval=True)


@contextmanager
def without_conditions() -> Iterator[None]:
    """Remove the tenant conditions until the end of the block."""
    remove_conditions()
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", _without)
