"""Stream keys: the tenant, thread and run of a stream.

Every log and subscription has a key, so that events never reach another tenant, thread or run.
"""

from typing import Any, NamedTuple, Self
from urllib.parse import quote

from langgraph_runtime_sql import process
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.tenancy import scope

# Replaces the run's id in the key of a thread.
THREAD = "*"


class StreamKey(NamedTuple):
    """The key of a stream.

    Attributes:
        tenant: The tenant of the run or thread; None without tenants.
        thread_id: The thread's id.
        run_id: The run's id; `THREAD` for events of the thread itself.
    """

    tenant: str | None
    thread_id: str
    run_id: str = THREAD

    @property
    def topic(self) -> str:
        """The name that all streams of the thread share. Tenants never share one."""
        if self.tenant is None:
            return self.thread_id
        return f"{quote(self.tenant, safe='')}/{self.thread_id}"

    @property
    def thread(self) -> Self:
        """The key of the run's thread."""
        return self._replace(run_id=THREAD)

    @classmethod
    def of_run(cls, row: Row) -> Self:
        """Return the key of a run, from its row."""
        return cls(_tenant(row), str(row["thread_id"]), str(row["run_id"]))

    @classmethod
    def of_thread(cls, row: Row) -> Self:
        """Return the key of a thread, from its row."""
        return cls(_tenant(row), str(row["thread_id"]))

    @classmethod
    def here(cls, thread_id: Any, run_id: Any = THREAD) -> Self:
        """Return a key in the tenant of the calling task."""
        return cls(
            scope.current(process.current().options.tenant_key).tenant, str(thread_id), str(run_id)
        )


def _tenant(row: Row) -> str | None:
    # Without a tenant key, the column may hold values of an earlier configuration.
    tenant: str | None = row["tenant"] if process.current().options.tenant_key is not None else None
    return tenant
