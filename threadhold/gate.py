"""Gate: let a host's own routes write for their callers as the platform's routes do.

Around a route, `client_request` refuses each write that was not admitted. `admitted` admits one for a
caller whom the platform has accepted, and writes its entry to the audit log. A host's own database
asks `require_admission` before each write transaction.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from types import MappingProxyType
from typing import Any

from starlette.types import Scope

from langgraph_runtime_sql import request_context, runtime
from langgraph_runtime_sql.audit import recorder
from langgraph_runtime_sql.audit.entry import Actor
from langgraph_runtime_sql.errors import UngatedWrite
from langgraph_runtime_sql.gate import entries, writes
from langgraph_runtime_sql.gate.operations import Operation
from langgraph_runtime_sql.gate.writes import own_write
from langgraph_runtime_sql.request_context import require_admission
from threadhold.http.audit import HostRequest

__all__ = [
    "Operation",
    "UngatedWrite",
    "acting",
    "admitted",
    "client_request",
    "entered",
    "own_write",
    "require_admission",
]

NO_VALUES: Mapping[str, Any] = MappingProxyType({})


@contextmanager
def client_request(
    scope: Scope, route: str, values: Mapping[str, Any] = NO_VALUES
) -> Iterator[HostRequest]:
    """Refuse, in the block, writes that were not admitted. The audit log names the route.

    Answer with `recorded(send)` of the yielded request, so that the log has its refusals.

    Args:
        scope: The ASGI scope of the client's request.
        route: Its path, with names for the parameters.
        values: The values of the parameters.
    """
    origin = HostRequest(scope, route, values)
    with writes.in_client_request(), _from(origin):
        yield origin


@contextmanager
def acting(accepted: Mapping[str, Any]) -> Iterator[None]:
    """Let the entries of the block name the caller.

    Args:
        accepted: The ASGI scope of a request of the caller, which the platform has answered.

    Raises:
        UngatedWrite: the platform has authenticated nobody for it.
    """
    if "user" not in accepted:
        raise UngatedWrite("The platform has accepted no request of this caller: send one first.")
    current = request_context.origin.get() or Actor
    with _from(partial(recorder.of_scope, current(), accepted)):
        yield


@asynccontextmanager
async def admitted(
    operation: Operation, accepted: Mapping[str, Any], **detail: Any
) -> AsyncIterator[None]:
    """Let the block write to the host's own tables, and enter it in the audit log before.

    The entry comes first, because the host's transaction is another one: no change is without its entry.

    Args:
        operation: What the caller asks for. The caller's right to it has been checked.
        accepted: As in `acting`.
        **detail: Facts for the entry, as JSON values.

    Raises:
        UngatedWrite: as in `acting`.
    """
    await entered(operation, accepted, **detail)
    with acting(accepted), writes.checked(operation):
        yield


async def entered(operation: Operation, accepted: Mapping[str, Any], **detail: Any) -> None:
    """Enter in the audit log what a caller does without a write to the platform, such as an export.

    Args:
        operation: What the caller asks for. The caller's right to it has been checked.
        accepted: As in `acting`.
        **detail: Facts for the entry, as JSON values.

    Raises:
        UngatedWrite: as in `acting`.
    """
    with acting(accepted):
        entry = entries.of(operation, None, detail=detail)
        await recorder.write(runtime.current().database, recorder.current_actor(), entry)


@contextmanager
def _from(origin: Callable[[], Actor]) -> Iterator[None]:
    token = request_context.origin.set(origin)
    try:
        yield
    finally:
        request_context.origin.reset(token)
