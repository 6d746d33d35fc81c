"""Request context: context variables that cross code which is not ours.

`langgraph_api`, graphs and the host's middleware do not pass our arguments through. Calls within
this package take arguments instead.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Literal

from langgraph_runtime_sql.claim import Claim
from langgraph_runtime_sql.errors import UngatedWrite

# Types that lie above this module are named in the docstrings: `Connection`, `Scope`, `Batch` and
# `Firing`. Their owners annotate what they read.
claim: ContextVar[Claim | None] = ContextVar("run_claim", default=None)
"""The attempt at a run that the current task executes.

The queue sets it before it starts the API's worker. Three readers use it: writes of checkpoints and
store items, which fail if the attempt is superseded; published events; the guard against
`sys.exit`. `StateGuard` clears it, because a client's state update belongs to no run.
"""

write_guard: ContextVar[Callable[[Any, str | None], None] | None] = ContextVar(
    "checkpoint_write_guard", default=None
)
"""A check that runs first in the transaction of each checkpoint write. An exception aborts it.

Its arguments are the `Connection` and the id of a new checkpoint, or None for writes onto an existing one. `StateGuard`
sets it around a client's state update. `checkpoint.admission` reads it.
"""

scope: ContextVar[Any] = ContextVar("scope", default=None)
"""The `Scope`: the rows that the task's transactions may touch. None means those of the authenticated user.

`tenancy.scope.within` and `tenancy.scope.as_caller` set it. `tenancy.scope.current` reads it.
"""

batch: ContextVar[Any] = ContextVar("run_batch", default=None)
"""The `Batch` of runs that a request creates together.

The HTTP layer sets it from the request's body. `Runs.put`, which the API calls once for each run,
reads and clears it.
"""

firing: ContextVar[Any] = ContextVar("cron_firing", default=None)
"""The `Firing`: the slot of a cron whose run the API's scheduler is about to create.

`Crons.next` sets it before it yields the cron. `Runs.put` and `Crons.set_next_run_date` read it.
"""

unanswered: ContextVar[dict[str, Any] | None] = ContextVar("unanswered_thread", default=None)
"""The row of a thread that the request has created but not returned yet.

`Threads.put` sets it. A state update in the same request changes the row, so that the response
shows the thread after the update.
"""

idempotency: ContextVar[Any] = ContextVar("idempotency", default=None)
"""The `Repeatable` request with the header `Idempotency-Key`.

The HTTP layer sets it. `Threads.put` and `Runs.put` take it once, by `gate.idempotency.take`.
"""

origin: ContextVar[Any] = ContextVar("audit_origin", default=None)
"""Returns the `audit.entry.Actor` of the request, without its user: address, method and route.

A function, because the route is known only after routing. The HTTP layer sets it. `audit.recorder`
calls it when an operation writes audit entries. None outside of requests, so in the work of a run.
"""

patient_since: ContextVar[float] = ContextVar("patient_since", default=-math.inf)
"""Whether the task's operations wait for the end of an outage of the database, and how long.

Minus infinity: they fail. Infinity: they wait without limit, as those of runs and of the platform's own
tasks do. Otherwise when the wait or stream that they are for began, by `clock.elapsed`.
`database.outage.waited_for` sets it. `Database` reads it.
"""

NOTHING = ""
admitted: ContextVar[str | None] = ContextVar("admitted", default=None)
"""What the task may write for the client whose request it handles; None outside of requests.

The name of an operation, of an `OwnWrite`, or `NOTHING`, with which `Database` refuses to write.
`gate.writes` says who sets it.
"""

OwnWrite = Literal["audit", "events", "expiry", "health", "keys", "product", "result"]
"""A write of the server itself, which a client's request causes but does not ask for.

- `audit`: the entry of a refused request.
- `events`: the event log, and the places of events in it.
- `expiry`: the new expiry of items that were read.
- `health`: the check that the database accepts writes.
- `keys`: a tenant's key for encryption.
- `product`: what a host's own route corrects in its tables, such as the status of a run that is over.
- `result`: the deletion of a stateless run's result that was read.
"""


@contextmanager
def admitting(name: str) -> Iterator[None]:
    """Set `admitted` in the block and in the tasks started in it."""
    token = admitted.set(name)
    try:
        yield
    finally:
        admitted.reset(token)


def require_admission() -> None:
    """Refuse a write in a client's request that nothing has admitted.

    Raises:
        UngatedWrite: nothing has.
    """
    if admitted.get() == NOTHING:
        raise UngatedWrite


def own_write(name: OwnWrite) -> AbstractContextManager[None]:
    """Let the block do a write of the server itself."""
    return admitting(name)


_note: ContextVar[Mapping[str, Any] | None] = ContextVar("request_note", default=None)


@contextmanager
def request_note(**fields: Any) -> Iterator[None]:
    """Pass `fields` to the hooks of the requests made in this block, as `tx.caller.note`.

    Middleware of the host uses it. Clients cannot set a note.
    """
    token = _note.set({**(_note.get() or {}), **fields})
    try:
        yield
    finally:
        _note.reset(token)


def note() -> Mapping[str, Any]:
    """Return the note of the current request, for a hook's `Caller`."""
    return _note.get() or {}
