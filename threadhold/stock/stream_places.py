"""Stream places: cursors of protocol 2, and where a connection is in the event log.

A sequence number and an id of an event are places in the log, the same on every connection.
"""

import re
from contextlib import suppress
from typing import Any, NamedTuple
from uuid import UUID

from langgraph_runtime_sql.events.event import Event, Order
from langgraph_runtime_sql.ops.threads.cursor import EPOCH_TAGS, Begin, Seen

# A sequence number is number * 2**22 + epoch tag * 2**12 + index. JavaScript counts exactly up to
# 2**53, which is enough for 2**31 events of a thread.
_NUMBER_BITS, _INDEX_BITS = 22, 12
MAX_INDEX = (1 << _INDEX_BITS) - 1
MAX_SEQ = 2**53 - 1
# `<epoch>-<number>`, with `.<n>` for later events that the protocol makes of one event.
_LOGGED_ID = re.compile(r"(\d{1,15})-(\d{1,10})(?:\.\d{1,9})?")
# An event that the protocol adds: of a run, and a description.
_MADE_ID = re.compile(r"synth:([0-9a-f-]{36}):.+", re.DOTALL)


class Cursor(NamedTuple):
    """The last event that a client has seen.

    Attributes:
        seen: Its place in the log, as far as the client knows it.
        part: Which of the events that the protocol makes of one event, if known.
        event_id: Its id, if known.
        asked: The cursor as the client wrote it.
    """

    seen: Seen
    part: int | None
    event_id: str | None
    asked: int | str


class InvalidCursor(ValueError):
    """A cursor that no event has."""


def sequence_number(order: Order, index: int) -> int:
    """Return the sequence number of an event that the protocol makes of an event of the log.

    Args:
        order: The position in the log.
        index: Which of the events that are made of it, from 1.
    """
    epoch, number = order
    tag: int = max(epoch, 0) % EPOCH_TAGS
    place: int = max(number, 0) << _NUMBER_BITS | tag << _INDEX_BITS
    return place + min(index, MAX_INDEX)


def parse_cursor(since: object = None, event_id: object = None) -> Cursor | None:
    """Return the cursor of a request, or None if it has none.

    Args:
        since: A sequence number.
        event_id: The id of an event, which takes precedence, or a sequence number as text.

    Raises:
        InvalidCursor: no event has it.
    """
    if isinstance(event_id, str) and event_id.isascii() and event_id.isdigit():
        since, event_id = int(event_id[:20]), None
    if event_id is not None:
        return _parse_id(event_id)
    if since is None:
        return None
    if not isinstance(since, int) or isinstance(since, bool) or not 0 <= since <= MAX_SEQ:
        raise InvalidCursor(f"since must be the `seq` of an event: 0 to {MAX_SEQ}.")
    tag = (since >> _INDEX_BITS) % 2 ** (_NUMBER_BITS - _INDEX_BITS)
    return Cursor(Seen(since >> _NUMBER_BITS, epoch_tag=tag), since & MAX_INDEX, None, since)


def _parse_id(event_id: object) -> Cursor:
    if isinstance(event_id, str):
        if logged := _LOGGED_ID.fullmatch(event_id):
            return Cursor(Seen(int(logged[2]), int(logged[1])), None, event_id, event_id)
        if made := _MADE_ID.fullmatch(event_id):
            with suppress(ValueError):
                return Cursor(Seen(run_id=str(UUID(made[1]))), None, event_id, event_id)
    raise InvalidCursor("since_event_id or Last-Event-ID must be the id or `seq` of an event.")


class View:
    """What one connection has been sent of a thread, and what it shall not be sent.

    Args:
        cursor: The last event that the client has.
        begin: Where the stream begins.
    """

    def __init__(self, cursor: Cursor | None, begin: Begin) -> None:
        self.order = begin.after
        self.begin = begin
        self.run_id = ""
        self.values: dict[str, Any] | None = None
        self.index = 0
        self._cursor = cursor
        self._seeks = begin.exact
        # A `values` event that waits for its checkpoint.
        self.held: Event | None = None
        # Messages that were streamed since the last checkpoint, with their places in the stream.
        self.unsaved: dict[str, tuple[list[str], str | None]] = {}

    def next_seq(self) -> int:
        """Return the sequence number of the next event."""
        self.index += 1
        return sequence_number(self.order, self.index)

    def move(self, event: Event) -> None:
        """Go on to an event of the log."""
        if event.order != self.order:
            self.order, self.index = event.order, 0
        if event.run_id != self.run_id:
            self.run_id, self.values = event.run_id, None
            self.unsaved.clear()

    @property
    def has_lost_its_place(self) -> bool:
        """Whether the event that the client has seen was not found where it should be."""
        made = self._cursor is not None and self._cursor.seen.number is None
        return made and self._seeks and self.order > self.begin.head

    def give_up(self) -> None:
        """Send all later events."""
        self._seeks = False

    def is_old(self, event: dict[str, Any]) -> bool:
        """Return whether the client has the event."""
        begin, wanted = self.begin, self._cursor
        if wanted is None:
            return False
        if wanted.seen.number is None:
            if self._seeks and event["event_id"] == wanted.event_id:
                self._seeks = False
                return True
            return self._seeks
        if self.order != begin.seen or not begin.exact:
            return self.order <= begin.seen
        if wanted.part is not None:
            return self.index <= wanted.part
        was_before, self._seeks = self._seeks, self._seeks and event["event_id"] != wanted.event_id
        return was_before

    def is_hidden(self, event: dict[str, Any]) -> bool:
        """Return whether the event is about an interrupt that was answered."""
        if self._cursor is not None or self.run_id not in self.begin.over:
            return False
        if event["method"] == "input.requested":
            data = event["params"]["data"]
            return data.get("interrupt_id") not in self.begin.interrupts
        return self.run_id == self.begin.only_interrupts_of

    def note(self, event: dict[str, Any]) -> None:
        """Remember what a new attempt at the run would take back."""
        params = event["params"]
        data, namespace = params["data"], params["namespace"]
        if event["method"] == "messages" and data.get("event") == "message-start":
            if isinstance(data.get("id"), str):
                self.unsaved[data["id"]] = (namespace, params.get("node"))
        elif namespace:
            return
        elif event["method"] == "checkpoints":
            self.unsaved.clear()
        elif event["method"] == "values" and isinstance(data, dict):
            self.values = data
