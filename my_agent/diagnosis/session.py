"""Session: append to and read the session of a run, in the graphs' own database."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import ExecutionInfo
from sqlalchemy import Connection

from my_agent import parsing
from my_agent.diagnosis.reading import digest
from my_agent.diagnosis.reading.digest import Digest
from my_agent.diagnosis.record import branching, following, log, texts
from my_agent.diagnosis.record.events import CONTENTS, Event, New
from my_agent.diagnosis.record.fold import State, apply
from my_agent.diagnosis.record.log import Moment
from my_agent.diagnosis.record.texts import Found
from my_agent.tables import tables
from my_agent.user import caller

T = TypeVar("T")
READING_SECONDS = 120.0
"""Time that the reading of one source may take."""


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
        self._written = 0
        # The last event that this run knows, for the thread's state.
        self.place: dict[str, Any] = {}

    async def now(self) -> Moment:
        """Return the session as it is."""
        return await self._read(log.moment)

    async def resume(self, known: Mapping[str, Any] | None) -> Moment:
        """Return the session as the thread knows it, and go on from there.

        A copied thread takes over the session that it was copied from. A run from an earlier
        checkpoint goes on from the state that the checkpoint has.

        Args:
            known: where the thread's session was: `place` of that run; None: nowhere yet.
        """
        if known is None:
            return await self.now()
        tenant, session, task = self.tenant, self.id, self.task
        origin = await tables.run(lambda conn: branching.known(conn, tenant, known), tenant)
        if origin is not None and origin[0] != session and not (await self.now()).seq:
            await branching.copy_texts(tables, tenant, *origin, session)

        def work(connection: Connection) -> Moment:
            return branching.resume(connection, tenant, session, known, task)

        return await tables.run(work, tenant, write=True)

    async def record(self, events: Sequence[New], given: Mapping[str, str] | None = None) -> State:
        """Append the events of a node with a snapshot, in one transaction; return the state.

        Args:
            events: the events.
            given: the texts of the sources that they add, by id.
        """

        # A node that is repeated appends in the same order.
        command = None if self.task is None else f"{self.task} {self._written}"
        self._written += 1

        def work(connection: Connection) -> Moment:
            for source, text in (given or {}).items():
                texts.write(connection, self.tenant, self.id, source, text)
            done = log.append(
                connection, self.tenant, self.id, events, command=command, snapshot=True
            )
            self.place = branching.place(connection, self.tenant, self.id)
            return done

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

    async def digests(self, state: State) -> dict[str, Digest]:
        """Return what each source of a state says, by id. A source is read once."""
        return {name: await self._digest(name, each) for name, each in state["sources"].items()}

    async def search(
        self, words: Sequence[str], source: str | None, most: int, *, first: int = 0
    ) -> list[Found]:
        """Return lines with all words, of one source or of all, from the line `first` on."""

        def work(connection: Connection) -> list[Found]:
            return texts.search(
                connection, self.tenant, self.id, words, source=source, most=most, first=first
            )

        return await tables.run(work, self.tenant)

    async def lines(self, source: str, line: int, count: int) -> list[Found]:
        """Return lines of a source, from a number on."""
        return await self._read(texts.lines, source, line, count)

    async def parts(self, places: Sequence[tuple[str, int, int]]) -> list[str]:
        """Return parts of sources: each of a source's id, a start and an end."""
        tenant, session = self.tenant, self.id
        return await tables.run(
            lambda conn: [texts.read(conn, tenant, session, *each) for each in places], tenant
        )

    async def read(
        self, text: str, about: Mapping[str, Any], *, seconds: float = parsing.SECONDS
    ) -> Digest:
        """Return what a text says, which is a source or a part of it.

        Args:
            text: the text.
            about: the source, as the state has it.
            seconds: the time that it may take.

        Raises:
            Unreadable: it takes longer.
        """
        known = (about["name"], about["kind"], about["format"], about["at"])
        return await parsing.run(digest.digest, text, *known, tenant=self.tenant, seconds=seconds)

    async def _digest(self, name: str, about: Mapping[str, Any]) -> Digest:
        known: Digest | None = await self._read(texts.digest, name, digest.READER)
        if known is not None:
            return known
        made = await self.read(await self._read(_whole, name), about, seconds=READING_SECONDS)

        def keep(connection: Connection) -> None:
            texts.keep_digest(connection, self.tenant, self.id, name, digest.READER, made)

        await tables.run(keep, self.tenant, write=True)
        return made

    async def _read(self, work: Callable[..., T], *arguments: Any) -> T:
        tenant, session = self.tenant, self.id
        return await tables.run(lambda conn: work(conn, tenant, session, *arguments), tenant)


def _whole(connection: Connection, tenant: str, session: str, source: str) -> str:
    return "".join(texts.stream(connection, tenant, session, source))
