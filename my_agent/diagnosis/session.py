"""Session: append to and read the session of a run, in the graphs' own database."""

from collections.abc import Sequence
from datetime import UTC, datetime

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import ExecutionInfo
from sqlalchemy import Connection

from my_agent.diagnosis import following, log
from my_agent.diagnosis.events import CONTENTS, Event, New
from my_agent.diagnosis.fold import State, apply
from my_agent.diagnosis.log import Moment
from my_agent.diagnosis.reading.reader import Source
from my_agent.tables import tables
from my_agent.user import caller


class NoThreadError(RuntimeError):
    """A run has no thread, and so no session.

    A RuntimeError, since the API hides from its callers the message of any class it does not know.
    """

    def __init__(self) -> None:
        super().__init__("A diagnosis needs a thread: start the run on one")


class Session:
    """The session of a run: that of its thread and of its user's tenant.

    Args:
        config: the config of the run.
        info: the execution of the node, if it is known. Its task names what the node appends: a
            node that is repeated after a crash appends nothing again.

    Raises:
        NoTenantError: the user belongs to no tenant.
        NoThreadError: the run has no thread.
    """

    def __init__(self, config: RunnableConfig, info: ExecutionInfo | None = None) -> None:
        self.tenant = caller(config).tenant_id
        thread = (config.get("configurable") or {}).get("thread_id")
        if not thread:
            raise NoThreadError
        self.id = str(thread)
        self.task = info.task_id if info is not None else None

    async def now(self) -> Moment:
        """Return the session as it is."""
        tenant, session = self.tenant, self.id
        return await tables.run(lambda conn: log.moment(conn, tenant, session), tenant)

    async def record(self, events: Sequence[New]) -> State:
        """Append the events of a node with a snapshot, in one transaction; return the state."""

        def work(connection: Connection) -> Moment:
            return log.append(
                connection, self.tenant, self.id, events, command=self.task, snapshot=True
            )

        done = await tables.run(work, self.tenant, write=True)
        following.wake(self.tenant, self.id)
        return done.state

    async def preview(self, events: Sequence[New]) -> State:
        """Return the state that the session would have after these events. It writes nothing."""
        now = await self.now()
        state = now.state
        for seq, each in enumerate(events, now.seq + 1):
            version = CONTENTS[each.type].VERSION
            state = apply(state, Event(seq, each.type, version, each.data, 0, None, "", ""))
        return state

    async def sources(self, state: State) -> list[Source]:
        """Return the sources of a state with their texts, which the state does not hold."""
        numbers = sorted(each["seq"] for each in state["sources"].values())

        def work(connection: Connection) -> list[Source]:
            return [
                _source(event.data, event.at)
                for seq in numbers
                for event in log.page(
                    connection, self.tenant, self.id, after=seq - 1, to=seq, count=1
                )
            ]

        return await tables.run(work, self.tenant)


def _source(data: dict[str, str], at: int) -> Source:
    given = datetime.fromtimestamp(at / 1e6, UTC)
    return Source(data["id"], data["kind"], data["format"], data["name"], data["text"], given)
