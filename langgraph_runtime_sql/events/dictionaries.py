"""Dictionaries: earlier events of a thread, with which segments are compressed.

A stream of states has the whole conversation in each event. A segment with a large event is
compressed with an earlier one as the dictionary, so that it takes the bytes of what is new.

Dictionaries are rows of the log at `EPOCH`, where no reader of events looks. Each is compressed with
the one before it in its chain, and the first of a chain is whole. Rows name the chain that they need
in the column `dictionary`; with the last segment that does, the chain is deleted.
"""

import struct
from typing import NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import bindparam, select

from langgraph_runtime_sql import encryption, patches
from langgraph_runtime_sql.database.connection import Connection, Prefetched
from langgraph_runtime_sql.database.schema import event_segments
from langgraph_runtime_sql.database.statements import Prepared, Row
from langgraph_runtime_sql.encryption import documents, envelope
from langgraph_runtime_sql.errors import DamagedEvents
from langgraph_runtime_sql.memo import Memo

EPOCH = -1
# Segments with such an event are compressed with a dictionary.
LARGE_EVENT = 4096
# The next dictionary follows when a segment has this much that the last one has not.
_NEWS = 1024
# A difference of this part of an event or less shows that it resembles the dictionary.
_RESEMBLES = 1 / 8
# So many segments in a row that do not resemble the dictionary begin another chain.
_MAX_MISSES = 8
# Dictionaries of a chain: a reader decompresses all up to the wanted one.
_LONGEST = 32
_PARENT = struct.Struct(">q")
# Bytes of each memo, and what an entry takes beside its data.
_SIZE, _ENTRY = 32 * 2**20, 300

_c, _other = event_segments.c, event_segments.alias()
_is_thread = _c.thread_id == bindparam("thread")
_is_used = (
    select(_other.c.first)
    .where(
        _other.c.thread_id == _c.thread_id,
        _other.c.epoch != EPOCH,
        _other.c.events.is_not(None),
        _other.c.dictionary == _c.dictionary,
    )
    .exists()
)
# The lock on the first of a chain keeps others from deleting the chain before the commit.
_FIND = Prepared(
    select(_c.first)
    .where(
        _is_thread,
        _c.epoch == EPOCH,
        _c.first.in_([bindparam("chain"), bindparam("number")]),
    )
    .with_for_update(read=True, key_share=True)
)
_CHAIN = Prepared(
    select(event_segments).where(_is_thread, _c.epoch == EPOCH, _c.dictionary == bindparam("chain"))
)
# Locked chains are about to be used.
_UNUSED = Prepared(
    select(_c.first)
    .where(_is_thread, _c.epoch == EPOCH, _c.first == _c.dictionary, ~_is_used)
    .with_for_update(skip_locked=True, of=event_segments)
)
_FREE = Prepared(
    event_segments.delete().where(
        _is_thread, _c.epoch == EPOCH, _c.dictionary == bindparam("chain"), ~_is_used
    )
)


class Dictionary(NamedTuple):
    """The data of an event, and its place among the thread's dictionaries.

    Attributes:
        chain: The number of the first dictionary of its chain.
        number: Its own number, which no other dictionary of the thread has.
        data: The data.
        length: How many dictionaries the chain has up to this one.
        misses: How many segments in a row have not resembled it.
    """

    chain: int
    number: int
    data: bytes
    length: int = 1
    misses: int = 0


class CompressedSegment(NamedTuple):
    """A body that is compressed with a dictionary.

    Attributes:
        frame: The compressed body.
        dictionary: The dictionary.
        stored_as: What its row holds, if the dictionary is new.
        needs: The dictionary that must be stored already, if any.
    """

    frame: bytes
    dictionary: Dictionary
    stored_as: bytes | None
    needs: Dictionary | None


# The last dictionary that this process has used for a thread; None after a failure.
_last: Memo[UUID, Dictionary | None] = Memo(_SIZE)
# Those that were read, by thread and number. They never change.
_read: Memo[tuple[UUID, int], bytes] = Memo(_SIZE)


def compress(thread_id: UUID, body: bytes, largest: bytes) -> CompressedSegment | None:
    """Compress the body of a segment with the last dictionary of its thread, or a new one.

    Args:
        thread_id: The thread.
        body: The body.
        largest: The data of the segment's largest event, which may become a dictionary.

    Returns:
        None if the segment does not resemble the dictionary.
    """
    last = _last.get(thread_id)
    if last is None:
        return _begun(thread_id, body, largest)
    frame = _compress(body, last.data)
    found = CompressedSegment(frame, last, None, last)
    if len(frame) <= _NEWS:
        return _used(thread_id, found)
    difference = _compress(largest, last.data)
    if len(difference) > len(largest) * _RESEMBLES:
        if last.misses + 1 == _MAX_MISSES:
            return _begun(thread_id, body, largest)
        _remember(thread_id, last._replace(misses=last.misses + 1))
        return None
    if len(difference) <= _NEWS // 2:
        # What is new is in smaller events.
        return _used(thread_id, found)
    if last.length == _LONGEST:
        return _begun(thread_id, body, largest)
    new = Dictionary(last.chain, _number(), largest, last.length + 1)
    _remember(thread_id, new)
    stored_as = _PARENT.pack(last.number) + difference
    return CompressedSegment(_compress(body, largest), new, stored_as, last)


def _begun(thread_id: UUID, body: bytes, largest: bytes) -> CompressedSegment:
    """Begin a chain with the data of an event."""
    number = _number()
    new = Dictionary(number, number, largest)
    _remember(thread_id, new)
    stored_as = _PARENT.pack(number) + _compress(largest, None)
    return CompressedSegment(_compress(body, largest), new, stored_as, None)


def _used(thread_id: UUID, found: CompressedSegment) -> CompressedSegment:
    if found.dictionary.misses:
        _remember(thread_id, found.dictionary._replace(misses=0))
    return found


def _remember(thread_id: UUID, dictionary: Dictionary) -> None:
    _last.put(thread_id, dictionary, len(dictionary.data) + _ENTRY)


def forget(thread_id: UUID) -> None:
    """Begin a new chain with the thread's next large event."""
    _last.put(thread_id, None, _ENTRY)


def _number() -> int:
    # Processes choose numbers at the same time.
    return uuid4().int >> 66


def ask(conn: Connection, thread_id: UUID, dictionary: Dictionary) -> Prefetched:
    """Ask whether a dictionary is stored, for `is_there`. If so, it stays until the commit."""
    values = {"thread": thread_id, "chain": dictionary.chain, "number": dictionary.number}
    return conn.prefetch(_FIND, values)


def is_there(dictionary: Dictionary, asked: Prefetched) -> bool:
    """Return whether a dictionary is stored, and so all before it in its chain."""
    return {row["first"] for row in asked.all()} == {dictionary.chain, dictionary.number}


def expand(conn: Connection, row: Row, number: int, frame: bytes) -> bytes:
    """Return the body of a segment.

    Args:
        conn: The connection.
        row: The segment's row.
        number: The dictionary of the body.
        frame: The compressed body.

    Raises:
        DamagedEvents: a dictionary is missing, or the bytes are not those that were stored.
    """
    return _decompress(frame, _data(conn, row, number))


def _data(conn: Connection, row: Row, number: int) -> bytes:
    thread_id = row["thread_id"]
    if (known := _read.get((thread_id, number))) is not None:
        return known
    chain = conn.fetchall(_CHAIN, {"thread": thread_id, "chain": row["dictionary"]})
    stored = {each["first"]: each for each in chain}
    data, frames, at = None, list[bytes](), number
    while data is None:
        if at not in stored or stored[at]["events"] is None:
            raise DamagedEvents(f"dictionary {at} of the events of thread {thread_id} is missing")
        body = opened(conn, stored[at])
        frames.append(body[_PARENT.size :])
        (parent,) = _PARENT.unpack_from(body)
        if parent == at:
            break
        at, data = parent, _read.get((thread_id, parent))
    for frame in reversed(frames):
        data = _decompress(frame, data)
    # The loop runs at least once.
    found = data or b""
    if not encryption.active():
        _read.put((thread_id, number), found, len(found) + _ENTRY)
    return found


def place(row: Row) -> tuple[str, ...]:
    """Return what binds the ciphertext of a row of the log to its place."""
    return "event_segments", str(row["thread_id"]), f"{row['epoch']}-{row['first']}"


def opened(conn: Connection, row: Row) -> bytes:
    """Return the decrypted body of a row of the log.

    Raises:
        KeyErased, CannotDecrypt: as in `encryption.open_`; or it is plain after `keys encrypt`.
    """
    body = bytes(row["events"])
    if body[:1] == envelope.PLAIN:
        documents.refuse_plain(conn, place(row))
    return encryption.open_(row["tenant"], body, place(row), conn)


def free(conn: Connection, thread_id: UUID) -> int:
    """Delete the chains that no segment of a thread needs. Return how many."""
    unused = conn.fetchall(_UNUSED, {"thread": thread_id})
    for row in unused:
        # On Postgres this statement sees what was committed before the lock.
        conn.send(_FREE, {"thread": thread_id, "chain": row["first"]})
    return len(unused)


def lose(conn: Connection, thread_id: UUID, chain: int) -> None:
    """Delete a damaged chain and the events that need it, so that readers learn of the loss."""
    of_chain = _c.thread_id == thread_id, _c.dictionary == chain
    conn.execute(event_segments.delete().where(*of_chain, _c.epoch == EPOCH))
    conn.execute(
        event_segments.update().where(*of_chain).values(events=None, size=0, dictionary=None)
    )


def _compress(data: bytes, dictionary: bytes | None) -> bytes:
    return patches.whole(data) if dictionary is None else patches.patch(data, dictionary)


def _decompress(frame: bytes, dictionary: bytes | None) -> bytes:
    try:
        return patches.expanded(frame, dictionary)
    except ValueError as error:
        raise DamagedEvents(f"compressed events are damaged: {error}") from error
