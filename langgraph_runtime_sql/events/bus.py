"""Bus: carries the events of runs to their followers, and requests and wake-ups to workers.

Other processes on the same database take part over wires.
"""

import asyncio
from collections.abc import Callable

from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.events import wire
from langgraph_runtime_sql.events.changes import Changes
from langgraph_runtime_sql.events.controls import Controls
from langgraph_runtime_sql.events.event import Event
from langgraph_runtime_sql.events.followers import Followers
from langgraph_runtime_sql.events.known_runs import KnownRuns
from langgraph_runtime_sql.events.log_reader import LogReader
from langgraph_runtime_sql.events.publisher import Publisher
from langgraph_runtime_sql.events.tasks import end_all
from langgraph_runtime_sql.events.topic import Topics
from langgraph_runtime_sql.events.wire import Control, Message
from langgraph_runtime_sql.events.wires import Wires
from langgraph_runtime_sql.events.writers import Writers


class Bus:
    """The bus of one process.

    Args:
        database: Where the log is.
        name: The unique name of this process, under which it claims runs.
        connect: Makes the wires to other processes, which deliver to this bus. Without it, no other
            process may use the database.

    Attributes:
        name: The name of this process.
        wires: The wires to other processes.
        runs: What this process knows about runs.
        controls: Control messages and wake-ups.
        changes: The changes of threads, for the clients that list them.
        publisher: Publishes events and stores them.
        writers: The runs that this process executes.
        reader: Reads the events of other processes; None without them.
        followers: The readers of streams.
    """

    def __init__(
        self, database: Database, name: str, connect: "Callable[[Bus], Wires] | None" = None
    ) -> None:
        self.name = name
        self.wires = Wires() if connect is None else connect(self)
        self._topics = topics = Topics()
        self.runs = KnownRuns()
        self.controls = Controls(self.wires)
        self.changes = Changes(database, self.wires)
        self.publisher = Publisher(database, name, topics, self.wires)
        self.writers = Writers(topics, self.publisher, self.runs, self.controls, self.wires)
        self.reader: LogReader | None = None
        if self.shared:
            self.reader = LogReader(database, topics, self.publisher, self.wires)
        self.followers = Followers(
            database, topics, self.publisher, self.reader, self.runs, self.wires
        )
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def shared(self) -> bool:
        """Whether other processes take part."""
        return self.wires.shared

    async def start(self) -> None:
        """Start to store events, and connect to other processes if there are any.

        Raises:
            BadRedis: this Redis can never work.
        """
        await self.wires.start()
        works = [self.publisher.run(), self.changes.run(), *self.wires.loops()]
        if self.reader is not None:
            works += self.reader.loops()
        self._tasks = [asyncio.create_task(each) for each in works]

    async def stop(self) -> None:
        """Store the remaining events, and disconnect from other processes. Repeatable."""
        tasks, self._tasks = self._tasks, []
        if tasks:
            await self.publisher.flush_in_time()
        await end_all(tasks)
        await self.wires.close()

    # --- what the wires deliver

    def receive(self, message: Message) -> None:
        """Handle a message of another process. It may be repeated, late, or of a newer version."""
        kind, *args = message
        if kind == wire.WAKE:
            self.controls.wake_here()
        elif kind == wire.CONTROL and len(args) == 3 and args[1] in ("interrupt", "rollback"):
            self.controls.receive(str(args[0]), Control(str(args[1]), args[2]))
        elif kind == wire.DROP and len(args) == 2:
            self.followers.drop_topic(str(args[0]), str(args[1]))
        elif kind == wire.LOG and len(args) == 1:
            self._topics.look_at(str(args[0]))
        elif kind == wire.CHANGED and len(args) == 3:
            self.changes.receive(str(args[0]), args[1], args[2])

    def receive_events(self, topic: str, base: int, events: list[Event]) -> None:
        """Deliver events of another process that came over a wire.

        Args:
            base: The number before the first event of their epoch.
        """
        if self.reader is not None:
            self.reader.receive_events(topic, base, events)

    def look_again(self) -> None:
        """Look at all that a lost message may have told."""
        self.controls.wake_here()
        self.changes.look_again()
        self._topics.look_at_followed()
