"""Writers: the runs that this process executes, each the only writer of its thread."""

from collections.abc import Collection
from functools import partial
from uuid import UUID

from langgraph_runtime_sql.clock import milliseconds
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.events import log
from langgraph_runtime_sql.events.controls import Controls
from langgraph_runtime_sql.events.event import CONTROL, DONE, Event
from langgraph_runtime_sql.events.known_runs import KnownRuns
from langgraph_runtime_sql.events.publisher import Publisher
from langgraph_runtime_sql.events.segment import Segment
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.events.tasks import Background
from langgraph_runtime_sql.events.topic import Topic, Topics
from langgraph_runtime_sql.events.wires import Wires
from langgraph_runtime_sql.events.writer import Writer


class Writers:
    """The writers of one process.

    Args:
        topics: The followers and writers in this process.
        publisher: Publishes the ends of runs.
        runs: What this process knows about runs.
        controls: The control messages for the workers of the runs.
        wires: The wires to other processes.
    """

    def __init__(
        self,
        topics: Topics,
        publisher: Publisher,
        runs: KnownRuns,
        controls: Controls,
        wires: Wires,
    ) -> None:
        self._topics, self._publisher, self._wires = topics, publisher, wires
        self._runs, self._controls = runs, controls
        self._by_run: dict[str, Writer] = {}
        self._background = Background()

    def claimed(self, conn: Connection, key: StreamKey, run: Row) -> None:
        """Make this process the writer of the thread, with the commit of its claim.

        Args:
            key: The key of the run.
            run: The claimed run, with its attempt.
        """
        waiting = None
        if self._wires.shared:
            # Both before the first answer, for one round trip less. The lock comes before the look.
            log.lock(conn, run["thread_id"])
            waiting = log.prefetch_waiting(conn, run["thread_id"])
        asked = log.ask_head(conn, run["thread_id"])
        resumable = bool(run["kwargs"].get("resumable"))
        writer = Writer(key, run["attempt"], log.new_head(conn, asked), resumable=resumable)
        conn.after_commit(partial(self._started, writer))
        if waiting is not None and (events := log.taken(conn, waiting)):
            conn.after_commit(lambda: self._publisher.take_over(key.thread, events))

    def _started(self, writer: Writer) -> None:
        """Note a run that this process executes: it is live until its end."""
        key = writer.key
        with self._topics.lock:
            if not self._runs.begin(key.run_id, resumable=writer.resumable):
                return
            topic = self._topics.open(key)
            if topic.writer is not None:
                writer.number = max(writer.number, topic.writer.number)
                writer.epoch = max(writer.epoch, topic.writer.epoch + 1)
            # Events without a place in the log may be ahead of the clock.
            writer.epoch = max(writer.epoch, topic.position[0])
            if self._wires.shared:
                self._take_turn(topic, writer)
            topic.writer = self._by_run[key.run_id] = writer

    @staticmethod
    def _take_turn(topic: Topic, writer: Writer) -> None:
        """Let the followers of a thread, which other processes have written, follow a new writer."""
        if topic.position[1] != writer.number:
            # Events of the last writer have not arrived yet. The followers find them in the log.
            for each in topic.subscriptions:
                # The creator of a run that only begins can have missed nothing of it. The log of a
                # stateless run is deleted at its end.
                if not (each.by_creator and each.key == writer.key and writer.attempt == 1):
                    each.fall_behind()
        topic.position = max(topic.position, writer.base)

    def store(self, conn: Connection, run_id: str) -> None:
        """Store the events of a run in a transaction of its worker, which checks the claim."""
        with self._topics.lock:
            writer = self._by_run.get(run_id)
            if writer is None or writer.is_stored:
                return
            segments = writer.cut()
        self._publisher.store(conn, writer, segments)

    # --- the end

    def end(self, conn: Connection, key: StreamKey, *, resumable: bool) -> None:
        """Announce a run's end with the commit of `conn`, and store it in the same transaction."""
        self._end(conn, key, resumable=resumable)
        # What others stored after the writer's last look. It would wait for the thread's next run.
        if self._wires.shared and log.prefetch_waiting(conn, UUID(key.thread_id)).all():
            conn.after_commit(partial(self._wires.soon, self._place_rest, key.thread))

    def _place_rest(self, thread: StreamKey) -> None:
        self._background.start(self._publisher.place_rest(thread))

    def _end(self, conn: Connection, key: StreamKey, *, resumable: bool) -> None:
        with self._topics.lock:
            topic = self._topics.find(key.topic)
            writer = None if topic is None else topic.writer
            is_own = writer is not None and writer.key.run_id == key.run_id
            if not self._publisher.logs(resumable=resumable) or (writer is not None and not is_own):
                # The writer of another run places the end among its own events.
                conn.after_commit(partial(self.ended, key, resumable=resumable))
                return
            end = Event((0, 0), key.run_id, CONTROL, DONE, resumable, at=milliseconds())
            if writer is not None:
                writer.is_ending = True
                segments = writer.cut()
                end = end._replace(order=(writer.epoch, writer.number + 1), attempt=writer.attempt)
        if writer is None:
            self._publisher.place(conn, key.thread, [end])
            conn.after_commit(partial(self._note_end, key))
            return
        log.lock(conn, UUID(key.thread_id))
        log.store(conn, [*segments, Segment(key.thread, [end])])
        conn.after_commit(partial(self._ended_by_writer, writer, segments, end))

    def _ended_by_writer(self, writer: Writer, segments: list[Segment], end: Event) -> None:
        with self._topics.lock:
            self._publisher.send(self._topics.open(writer.key), writer, end)
        self._publisher.stored(writer, segments)
        self._note_end(writer.key)

    def ended(self, key: StreamKey, *, resumable: bool) -> None:
        """Announce a run's end, unless that is done. Call it after the commit of its status."""
        if not self._runs.has_ended(key.run_id):
            self._publisher.publish(key, CONTROL, DONE, resumable=resumable)
        self._note_end(key)

    def _note_end(self, key: StreamKey) -> None:
        with self._topics.lock:
            self._runs.end(key.run_id)
            self._close_writer(key)
        self._controls.forget(key.run_id)

    def _close_writer(self, key: StreamKey) -> None:
        """Let another process or run write the thread. Events that are not stored are kept."""
        self._by_run.pop(key.run_id, None)
        topic = self._topics.find(key.topic)
        if topic is not None:
            if topic.writer is not None and topic.writer.key.run_id == key.run_id:
                topic.writer = None
            self._topics.forget(topic)

    def released(self, run_id: str, attempt: int | None = None) -> None:
        """Release the run: another process may continue it, and its end may not arrive here.

        Args:
            attempt: The attempt that is over. A later one that this process has claimed goes on.
        """
        with self._topics.lock:
            writer = self._by_run.get(run_id)
            if attempt is None or writer is None or writer.attempt <= attempt:
                self._release(run_id)

    def release_others(self, executed: Collection[str]) -> None:
        """Release runs that were lost or handed back. Other processes announce their end.

        Args:
            executed: The ids of the runs that this process executes. No claim may be under way.
        """
        with self._topics.lock:
            for run_id in {*self._runs.live(), *self._by_run}.difference(executed):
                self._release(run_id)

    def _release(self, run_id: str) -> None:
        if not self._wires.shared:
            # This process continues the run itself.
            return
        self._runs.release(run_id)
        if (writer := self._by_run.get(run_id)) is not None:
            self._close_writer(writer.key)
