"""Gate: let a host's own routes write for their callers as the platform's routes do.

`admitted` admits a write to the host's own tables for a user of `threadhold.users`, and writes its
entry to the audit log. A host's own database asks `require_admission` before each write transaction:
in the routes of `platform.include`, a write that was not admitted is refused.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langgraph_runtime_sql import runtime
from langgraph_runtime_sql.audit import recorder
from langgraph_runtime_sql.errors import UngatedWrite
from langgraph_runtime_sql.gate import entries, writes
from langgraph_runtime_sql.gate.operations import Operation
from langgraph_runtime_sql.gate.writes import own_write
from langgraph_runtime_sql.request_context import require_admission
from threadhold.users import User, acting

__all__ = [
    "Operation",
    "UngatedWrite",
    "acting",
    "admitted",
    "entered",
    "own_write",
    "require_admission",
]


@asynccontextmanager
async def admitted(operation: Operation, user: User, **detail: Any) -> AsyncIterator[None]:
    """Let the block write to the host's own tables, and enter it in the audit log before.

    The entry comes first, because the host's transaction is another one: no change is without its entry.

    Args:
        operation: What the user asks for. The host has checked the right to it.
        user: The user to act for.
        **detail: Facts for the entry, as JSON values.
    """
    await entered(operation, user, **detail)
    with acting(user), writes.checked(operation):
        yield


async def entered(operation: Operation, user: User, **detail: Any) -> None:
    """Enter in the audit log what a user does without a write to the platform, such as an export.

    Args:
        operation: What the user asks for. The host has checked the right to it.
        user: The user to act for.
        **detail: Facts for the entry, as JSON values.
    """
    with acting(user):
        entry = entries.of(operation, None, detail=detail)
        await recorder.write(runtime.current().database, recorder.current_actor(), entry)
