"""Request context: everything that travels beside the arguments of a call.

Each of these crosses code that is not ours (`langgraph_api`, a graph, the host's middleware),
which passes no arguments through. What only we call takes an argument instead.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from langgraph_runtime_sql.claim import Claim

if TYPE_CHECKING:
    from langgraph_runtime_sql.database.connection import Connection
    from langgraph_runtime_sql.ops.crons.firing import Firing
    from langgraph_runtime_sql.ops.runs.batch import Batch
    from langgraph_runtime_sql.tenancy.scope import Scope

claim: ContextVar[Claim | None] = ContextVar("run_claim", default=None)
"""The attempt at a run that this task works for.

Set by the queue before it starts the API's worker. Read by every write of a checkpoint or store
item, which the attempt's loss refuses, by the events that a run publishes, and by the guard
against `sys.exit`. `StateGuard` clears it, because a client's state update is no run's write.
"""

write_guard: "ContextVar[Callable[[Connection, str | None], None] | None]" = ContextVar(
    "checkpoint_write_guard", default=None
)
"""Called first in the transaction of each checkpoint write; what it raises undoes the write.

It takes the id of a checkpoint that is put, and None for writes onto one. Set by `StateGuard`
around a client's state update. Read by `checkpoint.admission`.
"""

scope: "ContextVar[Scope | None]" = ContextVar("scope", default=None)
"""The rows that this task's transactions may touch; None means those of the authenticated user.

Set by `tenancy.scope.within` and `tenancy.scope.as_caller`. Read by `tenancy.scope.current`.
"""

batch: "ContextVar[Batch | None]" = ContextVar("run_batch", default=None)
"""The batch of runs that a request creates together.

Set by the HTTP layer, which has read the request's body. Read and cleared by `Runs.put`, which
the API calls once for each run of the batch.
"""

firing: "ContextVar[Firing | None]" = ContextVar("cron_firing", default=None)
"""The slot of a cron whose run the API's scheduler is about to create.

Set by `Crons.next` before it yields the cron. Read by `Runs.put` and `Crons.set_next_run_date`.
"""

unanswered: ContextVar[dict[str, Any] | None] = ContextVar("unanswered_thread", default=None)
"""The row of a thread that the request has created and not yet answered with.

Set by `Threads.put`. Read by the state operations: where the same request goes on to write the
thread's state, the answer shows the thread as it is then.
"""

_note: ContextVar[Mapping[str, Any] | None] = ContextVar("request_note", default=None)


@contextmanager
def noting(**words: Any) -> Iterator[None]:
    """Let hooks read `words`, as `tx.caller.note`, in what the platform is asked in here.

    For middleware of the host around the platform: clients cannot set it.
    """
    token = _note.set({**(_note.get() or {}), **words})
    try:
        yield
    finally:
        _note.reset(token)


def note() -> Mapping[str, Any]:
    """What `noting` says of the request at hand. Read where a hook's `Caller` is made."""
    return _note.get() or {}
