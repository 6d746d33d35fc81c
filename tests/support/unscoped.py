"""The statements of the graphs' own tables, without their conditions on a tenant.

What they find then is what the database itself lets them.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event

# A comparison with a value: not what joins tables, nor what sets a column.
_CONDITION = re.compile(r"(\b\w+\.)?\btenant_id (= %\(\w+\)s(::\w+)?|IN \((?:[^()]|%\(\w+\)s)*\))")


def _without(conn: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> tuple[str, Any]:
    return _CONDITION.sub("true", statement), parameters


def forget() -> None:
    """Let no statement ask for a tenant, until the process ends."""
    event.listen(Engine, "before_cursor_execute", _without, retval=True)


@contextmanager
def forgotten() -> Iterator[None]:
    """Let no statement ask for a tenant, until the end of the block."""
    forget()
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", _without)
