"""Stream keys: whose stream it is, of which thread and of which run.

Every log and every subscription has one, so that an event of one tenant, thread or run
reaches no other's followers.
"""

from typing import Any, NamedTuple, Self
from urllib.parse import quote

from langgraph_runtime_sql import runtime
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.tenancy import scope

# In the place of a run's id: the thread itself.
THREAD = "*"


class StreamKey(NamedTuple):
    """The key of a stream.

    Attributes:
        tenant: The tenant that the run or thread belongs to; None without tenants.
        thread_id: The thread's id.
        run_id: The run's id; `THREAD` for events of the thread itself.
    """

    tenant: str | None
    thread_id: str
    run_id: str = THREAD

    @property
    def topic(self) -> str:
        """The name that all streams of the thread share, unlike any other tenant's."""
        if self.tenant is None:
            return self.thread_id
        return f"{quote(self.tenant, safe='')}/{self.thread_id}"

    @property
    def thread(self) -> Self:
        """The key of the run's thread."""
        return self._replace(run_id=THREAD)

    @classmethod
    def of_run(cls, row: Row) -> Self:
        """The key of a stored run, from its row."""
        return cls(_tenant(row), str(row["thread_id"]), str(row["run_id"]))

    @classmethod
    def of_thread(cls, row: Row) -> Self:
        """The key of a stored thread, from its row."""
        return cls(_tenant(row), str(row["thread_id"]))

    @classmethod
    def here(cls, thread_id: Any, run_id: Any = THREAD) -> Self:
        """The key for what the calling task publishes, or makes, in its own scope."""
        return cls(
            scope.current(runtime.current().options.tenant_key).tenant, str(thread_id), str(run_id)
        )


def _tenant(row: Row) -> str | None:
    # Without a key the column may hold what an earlier key has left.
    tenant: str | None = row["tenant"] if runtime.current().options.tenant_key is not None else None
    return tenant
